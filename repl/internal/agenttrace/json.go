package agenttrace

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
)

// The bounds of a trace. Exceeding one is an error.
const (
	MaxBytes  = 32 << 20 // of the source
	MaxDepth  = 64       // of nesting
	MaxValues = 1 << 20  // of JSON, keys among them
	MaxSteps  = 50_000
	MaxText   = 8 << 20 // bytes of one text
)

// located is a JSON value of a source with its path: "messages[3].content".
type located struct {
	any

	path string
}

// decodeTrace reads JSON within the bounds.
func decodeTrace(data []byte) (located, error) {
	if err := checkBounds(data); err != nil {
		return located{}, err
	}
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.UseNumber()
	var v any
	if err := decoder.Decode(&v); err != nil {
		if errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) {
			return located{}, errors.New("cannot read the trace: its JSON ends too early")
		}
		return located{}, fmt.Errorf("cannot read the trace: it is not JSON: %w", err)
	}

	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return located{}, fmt.Errorf(
			"cannot read the trace: there is more data after its JSON, at byte %d",
			decoder.InputOffset(),
		)
	}

	return located{v, ""}, nil
}

// checkBounds refuses JSON that is too large, too deep or has too many parts, before it
// takes memory. Text that is not JSON passes.
func checkBounds(data []byte) error {
	if len(data) > MaxBytes {
		return fmt.Errorf(
			"cannot read the trace: it has %d bytes, more than %d", len(data), MaxBytes,
		)
	}

	depth, values, quoted := 0, 1, false
	for i := 0; i < len(data); i++ {
		switch c := data[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '[' || c == '{':
			depth++
			values++
		case c == ']' || c == '}':
			depth--
		case c == ',' || c == ':':
			values++
		}

		if depth > MaxDepth {
			return fmt.Errorf(
				"cannot read the trace: it is nested deeper than %d, at byte %d", MaxDepth, i,
			)
		}
	}

	if values > MaxValues {
		return fmt.Errorf("cannot read the trace: it has more than %d values", MaxValues)
	}
	return nil
}

// wrong returns the error for a value of a wrong type.
func (l located) wrong(expected string) error {
	path := l.path
	if path == "" {
		path = "the trace"
	}
	return fmt.Errorf("%s: expected %s, not %s", path, expected, l.kind())
}

// kind names the type of a value, for messages.
func (l located) kind() string {
	switch l.any.(type) {
	case nil:
		return "nothing"
	case string:
		return "text"
	case bool:
		return "a boolean"
	case []any:
		return "a list"
	case map[string]any:
		return "an object"
	}

	return "a number"
}

// member returns the value of a key; a value without members yields nothing.
func (l located) member(key string) located {
	path := key
	if l.path != "" {
		path = l.path + "." + key
	}
	object, _ := l.any.(map[string]any)
	return located{object[key], path}
}

// first returns the first existing member, else the first of all.
func (l located) first(keys ...string) located {
	for _, key := range keys {
		if m := l.member(key); m.any != nil {
			return m
		}
	}
	return l.member(keys[0])
}

// object refuses values without members.
func (l located) object() error {
	if _, ok := l.any.(map[string]any); !ok {
		return l.wrong("an object")
	}
	return nil
}

// list returns the items of a list. Nothing is an empty list.
func (l located) list() ([]located, error) {
	if l.any == nil {
		return nil, nil
	}
	items, ok := l.any.([]any)
	if !ok {
		return nil, l.wrong("a list")
	}

	all := make([]located, len(items))
	for i, item := range items {
		all[i] = located{item, fmt.Sprintf("%s[%d]", l.path, i)}
	}
	return all, nil
}

// text returns a text. Nothing is an empty text.
func (l located) text() (string, error) {
	if l.any == nil {
		return "", nil
	}
	s, ok := l.any.(string)
	if !ok {
		return "", l.wrong("text")
	}
	return s, l.checkLength(s)
}

func (l located) checkLength(text string) error {
	if len(text) > MaxText {
		return fmt.Errorf("%s: the text has %d bytes, more than %d", l.path, len(text), MaxText)
	}
	return nil
}

// show returns a text as it is and any other value as JSON.
func (l located) show() (string, error) {
	if s, ok := l.any.(string); ok || l.any == nil {
		return s, l.checkLength(s)
	}
	text := jsonText(l.any)
	return text, l.checkLength(text)
}

// truth returns a boolean. Nothing is false.
func (l located) truth() (bool, error) {
	if l.any == nil {
		return false, nil
	}
	b, ok := l.any.(bool)
	if !ok {
		return false, l.wrong("a boolean")
	}
	return b, nil
}

// seconds returns a point in time, nil if it is not a number.
func (l located) seconds() *float64 {
	number, ok := l.any.(json.Number)
	if !ok {
		return nil
	}
	f, err := number.Float64()
	if err != nil {
		return nil
	}
	return &f
}

// jsonText writes a value as Python's json.dumps does with sort_keys and without
// ensure_ascii: a trace reads the same whether the host or a snippet made it.
func jsonText(v any) string {
	var b strings.Builder
	writeJSON(&b, v)
	return b.String()
}

func writeJSON(b *strings.Builder, v any) {
	switch v := v.(type) {
	case nil:
		b.WriteString("null")
	case bool:
		b.WriteString(strconv.FormatBool(v))
	case string:
		writeString(b, v)
	case json.Number:
		b.WriteString(pythonNumber(v.String()))
	case []any:
		b.WriteByte('[')
		for i, item := range v {
			if i > 0 {
				b.WriteString(", ")
			}
			writeJSON(b, item)
		}
		b.WriteByte(']')
	case map[string]any:
		b.WriteByte('{')
		for i, key := range slices.Sorted(maps.Keys(v)) {
			if i > 0 {
				b.WriteString(", ")
			}
			writeString(b, key)
			b.WriteString(": ")
			writeJSON(b, v[key])
		}
		b.WriteByte('}')
	}
}

var jsonEscapes = map[rune]string{
	'"': `\"`, '\\': `\\`, '\n': `\n`, '\r': `\r`, '\t': `\t`, '\b': `\b`, '\f': `\f`,
}

func writeString(b *strings.Builder, s string) {
	b.WriteByte('"')
	for _, r := range s {
		escape, ok := jsonEscapes[r]
		switch {
		case ok:
			b.WriteString(escape)
		case r < ' ':
			fmt.Fprintf(b, `\u%04x`, r)
		default:
			b.WriteRune(r)
		}
	}

	b.WriteByte('"')
}

// pythonNumber returns a number as Python would write it: integers unchanged, others as
// the shortest decimal of the same float.
func pythonNumber(literal string) string {
	if !strings.ContainsAny(literal, ".eE") {
		if literal == "-0" {
			return "0"
		}
		return literal
	}

	f, err := strconv.ParseFloat(literal, 64)
	switch {
	case err != nil && f > 0:
		return "Infinity"
	case err != nil:
		return "-Infinity"
	}

	text := strconv.FormatFloat(f, 'f', -1, 64)
	if size := math.Abs(f); size != 0 && (size < 1e-4 || size >= 1e16) {
		return strconv.FormatFloat(f, 'e', -1, 64)
	}
	if !strings.Contains(text, ".") {
		text += ".0"
	}

	return text
}
