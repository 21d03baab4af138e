package config

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/rlmhq/rlm/internal/text/lazyregexp"
	"github.com/rlmhq/rlm/repl/llm"
)

// unset means that the server chooses the value for a depth.
const unset = "default"

// byDepth holds a value for each depth; the last one also applies to all greater depths. Its text
// form separates the values by commas.
type byDepth struct {
	to    *[]string
	check func(string) error
}

func (b byDepth) Set(s string) error { return b.setAll(splitList(s)) }

func (b byDepth) setAll(items []string) error {
	for _, item := range items {
		if item == unset {
			continue
		}
		if err := b.check(item); err != nil {
			return fmt.Errorf("%q: %w, or %s", item, err, unset)
		}
	}

	*b.to = items
	return nil
}

func (b byDepth) String() string {
	return showValue(b.to, func(items []string) string { return strings.Join(items, ",") })
}
func (b byDepth) Type() string { return "depths" }
func (b byDepth) JSON() any    { return append([]string{}, *b.to...) }

func checkTemperature(text string) error {
	if n, err := strconv.ParseFloat(text, 64); err != nil || !(n >= 0 && n <= 2) {
		return errors.New("give a number from 0 to 2")
	}
	return nil
}

func checkTopP(text string) error {
	if n, err := strconv.ParseFloat(text, 64); err != nil || !(n > 0 && n <= 1) {
		return errors.New("give a number above 0, at most 1")
	}
	return nil
}

func checkInteger(text string) error {
	if _, err := strconv.ParseInt(text, 10, 64); err != nil {
		return errors.New("give a whole number")
	}
	return nil
}

var plainWord = lazyregexp.New(`^[a-z][a-z_-]{0,31}$`)

func checkWord(text string) error {
	if !plainWord.MatchString(text) {
		return errors.New("give a word, such as low")
	}
	return nil
}

// objects is a JSON object, or a list of objects and nulls.
type objects struct{ to *string }

func (o objects) Set(s string) error {
	if _, err := readObjects(s); err != nil {
		return err
	}
	*o.to = s
	return nil
}
func (o objects) String() string { return showValue(o.to, func(s string) string { return s }) }
func (o objects) Type() string   { return "objects" }
func (o objects) JSON() any      { return json.RawMessage(cmp.Or(*o.to, "null")) }

// readObjects returns the objects in a string, with nil for each null.
func readObjects(s string) ([]json.RawMessage, error) {
	if s == "" {
		return nil, nil
	}
	all := []json.RawMessage{json.RawMessage(s)}
	if strings.HasPrefix(strings.TrimSpace(s), "[") {
		if err := json.Unmarshal([]byte(s), &all); err != nil {
			return nil, fmt.Errorf("give JSON: %w", err)
		}
	}

	for i, text := range all {
		var object map[string]json.RawMessage
		if err := json.Unmarshal(text, &object); err != nil {
			return nil, errors.New("give a JSON object, or a list of them, such as " +
				`{"chat_template_kwargs": {"enable_thinking": false}}`)
		}
		if object == nil {
			all[i] = nil
		}
	}
	return all, nil
}

// objectsText converts a mapping or a list in a file to the text form of the setting.
func objectsText(n *yaml.Node) (string, error) {
	var value any
	if err := n.Decode(&value); err != nil {
		return "", errors.New("a key in it is repeated, or not a text")
	}
	text, err := json.Marshal(value)
	if err != nil {
		return "", errors.New("a key in it is not a text")
	}
	return string(text), nil
}

// Samplings returns the sampling for each depth.
func (c *Config) Samplings() ([]llm.Sampling, error) {
	extra, err := readObjects(c.ExtraBody)
	if err != nil {
		return nil, err
	}
	depths := slices.Max([]int{
		len(c.Temperature), len(c.TopP), len(c.Seed), len(c.ReasoningEffort), len(extra),
	})

	all := make([]llm.Sampling, depths)
	for i := range all {
		s := &all[i]
		s.Temperature, s.TopP = parseNumber(c.Temperature, i), parseNumber(c.TopP, i)
		if text := textAt(c.Seed, i); text != "" {
			seed, err := strconv.ParseInt(text, 10, 64)
			if err != nil {
				return nil, err
			}
			s.Seed = &seed
		}
		s.ReasoningEffort = textAt(c.ReasoningEffort, i)
		if len(extra) > 0 {
			s.ExtraBody = extra[min(i, len(extra)-1)]
		}
	}
	return all, nil
}

// textAt returns the value for a depth, or "" if the server chooses it.
func textAt(items []string, depth int) string {
	if len(items) == 0 || items[min(depth, len(items)-1)] == unset {
		return ""
	}
	return items[min(depth, len(items)-1)]
}

// parseNumber returns the number for a depth, or nil if the server chooses it.
func parseNumber(items []string, depth int) *float64 {
	n, err := strconv.ParseFloat(textAt(items, depth), 64)
	if err != nil {
		return nil
	}
	return &n
}
