package scripted

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/rlmhq/rlm/internal/text/lazyregexp"
	"github.com/rlmhq/rlm/repl/internal/usage"
	"github.com/rlmhq/rlm/repl/llm"
)

// Rule is an answer and its condition. It sets exactly one of Reply, Expand, Error and Do.
type Rule struct {
	When   When          `yaml:"when"`
	Reply  *string       `yaml:"reply"`  // given verbatim
	Expand *string       `yaml:"expand"` // given with ${name} and ${json:name} replaced
	Error  *llm.Error    `yaml:"-"`      // given with provider and model filled in
	Do     llm.Func      `yaml:"-"`      // called for the answer
	Finish string        `yaml:"finish"` // "stop" if empty
	Usage  *llm.Usage    `yaml:"usage"`  // estimated if nil
	Delay  time.Duration `yaml:"delay"`  // before the answer

	last, system, any *regexp.Regexp
}

// When is the condition of a rule. A field that is not set matches every request.
type When struct {
	Purpose string `yaml:"purpose"`
	Depth   *int   `yaml:"depth"`
	Turn    *int   `yaml:"turn"`
	Slot    *int   `yaml:"slot"`
	Said    *int   `yaml:"said"`   // number of replies of the model in the conversation
	Schema  *bool  `yaml:"schema"` // whether the request has a schema
	Model   string `yaml:"model"`
	Last    string `yaml:"last"`   // a regular expression (RE2) for the last message
	System  string `yaml:"system"` // for one of the system messages
	Any     string `yaml:"any"`    // for one of the messages
}

// compile checks a rule and compiles its expressions.
func (rule *Rule) compile() error {
	if err := rule.check(); err != nil {
		return err
	}

	for _, e := range []struct {
		text   string
		target **regexp.Regexp
	}{
		{rule.When.Last, &rule.last},
		{rule.When.System, &rule.system},
		{rule.When.Any, &rule.any},
	} {
		if e.text == "" {
			continue
		}
		compiled, err := regexp.Compile(e.text)
		if err != nil {
			return err
		}
		*e.target = compiled
	}
	return rule.checkNames()
}

// check returns the first mistake in a rule, except in its expressions.
func (rule *Rule) check() error {
	answers := 0
	for _, isGiven := range []bool{
		rule.Reply != nil, rule.Expand != nil, rule.Error != nil, rule.Do != nil,
	} {
		if isGiven {
			answers++
		}
	}

	switch {
	case answers != 1:
		return errors.New("give exactly one of reply, expand and error")
	case rule.Delay < 0 || rule.Delay > maxDelay:
		return fmt.Errorf("the delay %s is not between 0 and %s", rule.Delay, maxDelay)
	case rule.Usage != nil && !usage.IsPlausible(*rule.Usage):
		return fmt.Errorf("the usage has negative or implausible numbers: %+v", *rule.Usage)
	}
	return nil
}

// checkNames returns an error if Expand uses a name without a value.
func (rule *Rule) checkNames() error {
	if rule.Expand == nil {
		return nil
	}

	known := builtinNames(llm.Request{Messages: []llm.Message{{}}})
	for _, e := range []*regexp.Regexp{rule.last, rule.system, rule.any} {
		if e == nil {
			continue
		}
		for _, name := range e.SubexpNames() {
			known[name] = ""
		}
	}
	for _, found := range placeholder.FindAllStringSubmatch(*rule.Expand, -1) {
		if _, ok := known[found[2]]; !ok {
			return fmt.Errorf("${%s} is not defined: give this name to a group of an expression, "+
				"as in (?P<%s>…)", found[2], found[2])
		}
	}
	return nil
}

// builtinNames returns the names that every Expand can use, with their values.
func builtinNames(r llm.Request) map[string]string {
	last := r.Messages[len(r.Messages)-1]
	return map[string]string{
		"last":    last.Content,
		"images":  strconv.Itoa(len(last.Images)),
		"model":   r.Model,
		"purpose": r.Metadata.Purpose,
		"depth":   strconv.Itoa(r.Metadata.Depth),
		"turn":    strconv.Itoa(r.Metadata.Turn),
		"slot":    strconv.Itoa(r.Metadata.Slot),
		"said":    strconv.Itoa(countReplies(r)),
	}
}

// countReplies counts the model's own replies in a conversation.
func countReplies(r llm.Request) int {
	n := 0
	for _, m := range r.Messages {
		if m.Role == llm.RoleAssistant {
			n++
		}
	}
	return n
}

// match reports whether a rule answers a request, and returns the values of the names that its
// Expand can use.
func (rule *Rule) match(r llm.Request) (names map[string]string, ok bool) {
	if !rule.When.fits(r) {
		return nil, false
	}

	names = builtinNames(r)
	last := r.Messages[len(r.Messages)-1:]
	ok = findGroups(rule.last, last, "", names) &&
		findGroups(rule.system, r.Messages, llm.RoleSystem, names) &&
		findGroups(rule.any, r.Messages, "", names)
	return names, ok
}

// fits reports whether a request meets the condition, except for its expressions.
func (w When) fits(r llm.Request) bool {
	if w.Purpose != "" && w.Purpose != r.Metadata.Purpose || w.Model != "" && w.Model != r.Model {
		return false
	}
	if w.Schema != nil && *w.Schema != (r.Schema != nil) {
		return false
	}

	for _, number := range []struct {
		want *int
		got  int
	}{
		{w.Depth, r.Metadata.Depth},
		{w.Turn, r.Metadata.Turn},
		{w.Slot, r.Metadata.Slot},
		{w.Said, countReplies(r)},
	} {
		if number.want != nil && *number.want != number.got {
			return false
		}
	}
	return true
}

// findGroups searches the messages of a role, or of all roles, for an expression and
// stores the values of its named groups.
func findGroups(
	e *regexp.Regexp, messages []llm.Message, role llm.Role, names map[string]string,
) bool {
	if e == nil {
		return true
	}

	for _, m := range messages {
		if role != "" && m.Role != role {
			continue
		}
		groups := e.FindStringSubmatch(m.Content)
		if groups == nil {
			continue
		}
		for i, name := range e.SubexpNames() {
			if name != "" {
				names[name] = groups[i]
			}
		}
		return true
	}
	return false
}

// placeholder matches a name in a string to expand: ${name}, or ${json:name} for the value as a
// JSON string, which is also a string literal in Python.
var placeholder = lazyregexp.New(`\$\{(json:)?(\w+)\}`)

// expand replaces the names in text with their values.
func expand(text string, names map[string]string) (string, error) {
	var out strings.Builder
	end := 0
	for _, at := range placeholder.FindAllStringSubmatchIndex(text, -1) {
		value := names[text[at[4]:at[5]]]
		if asJSON := at[2] >= 0; asJSON {
			quoted, err := json.Marshal(value)
			if err != nil {
				return "", err
			}
			value = string(quoted)
		}

		out.WriteString(text[end:at[0]])
		out.WriteString(value)
		end = at[1]
		if out.Len() > maxReply {
			return "", fmt.Errorf("the reply has more than %d bytes", maxReply)
		}
	}
	out.WriteString(text[end:])
	return out.String(), nil
}
