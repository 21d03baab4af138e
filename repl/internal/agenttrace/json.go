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
	MaxBytes  = 32 << 20 // size of the source
	MaxDepth  = 64       // depth of nesting
	MaxValues = 1 << 20  // number of JSON values, including keys
	MaxSteps  = 50_000
	MaxText   = 8 << 20 // bytes of one string
)

// located is a JSON value of a source with its path: "messages[3].content".
type located struct {
	any

	path  string
	lines []int // line of each item, if the source is JSON Lines
}

// decodeTrace reads JSON or JSON Lines within the bounds. The note reports that the last line
// was left out because it is truncated, as in the log of a run still in progress.
func decodeTrace(data []byte) (root located, note string, err error) {
	if err := checkBounds(data); err != nil {
		return located{}, "", fmt.Errorf("cannot read the trace: %w", err)
	}
	value, whole := decodeJSON(data)
	if whole == nil {
		return located{any: value}, "", nil
	}

	first, rest, _ := bytes.Cut(bytes.TrimLeft(data, blanks), []byte("\n"))
	if _, err := decodeJSON(first); err == nil && len(bytes.Trim(rest, blanks)) > 0 {
		return decodeLines(data)
	}
	if errors.Is(whole, errMore) {
		if root, ok := decodeStream(data); ok {
			return root, "", nil
		}
	}

	return located{}, "", fmt.Errorf("cannot read the trace: %w", whole)
}

// decodeStream reads consecutive JSON values that span several lines each, as a list.
func decodeStream(data []byte) (root located, ok bool) {
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.UseNumber()
	var items []any
	line, begin := 1, 0
	for end := 0; ; end = int(decoder.InputOffset()) {
		gap := data[end:]
		gap = gap[:len(gap)-len(bytes.TrimLeft(gap, blanks))]
		line += bytes.Count(data[begin:end+len(gap)], []byte("\n"))
		begin = end + len(gap)

		var item any
		err := decoder.Decode(&item)
		if errors.Is(err, io.EOF) {
			root.any = items
			return root, true
		}
		if err != nil || end > 0 && !bytes.Contains(gap, []byte("\n")) {
			return located{}, false
		}

		items = append(items, item)
		root.lines = append(root.lines, line)
	}
}

// decodeLines reads JSON Lines as a list.
func decodeLines(data []byte) (root located, note string, err error) {
	var items []any
	for number := 1; len(data) > 0; number++ {
		line, rest, hasEnd := bytes.Cut(data, []byte("\n"))
		if data = rest; len(bytes.Trim(line, blanks)) == 0 {
			continue
		}
		item, err := decodeJSON(line)
		if errors.Is(err, errCut) && !hasEnd {
			note = fmt.Sprintf("line %d, the last one, is incomplete and was skipped", number)
			break
		}
		if err != nil {
			return located{}, "", fmt.Errorf("cannot read the trace: line %d: %w", number, err)
		}
		items = append(items, item)
		root.lines = append(root.lines, number)
	}

	root.any = items
	return root, note, nil
}

var (
	errCut  = errors.New("its JSON ends too early")
	errMore = errors.New("there is more data after its JSON")
)

// decodeJSON reads one JSON value whose bounds have been checked.
func decodeJSON(data []byte) (any, error) {
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.UseNumber()
	var v any
	if err := decoder.Decode(&v); err != nil {
		if errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) {
			return nil, errCut
		}
		return nil, fmt.Errorf("it is not JSON: %w", err)
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("%w, at byte %d", errMore, decoder.InputOffset())
	}

	return v, nil
}

// decode parses the JSON in a string of the source. Any other value is returned unchanged.
func (t *talk) decode(l located) (located, error) {
	text, ok := l.any.(string)
	if !ok {
		return l, nil
	}
	if t.decoded += len(text); t.decoded > MaxBytes {
		return l, fmt.Errorf("%s: the texts with JSON have more than %d bytes", l.path, MaxBytes)
	}
	if err := checkBounds([]byte(text)); err != nil {
		return l, fmt.Errorf("%s: %w", l.path, err)
	}

	value, err := decodeJSON([]byte(text))
	if err != nil {
		return l, fmt.Errorf("%s: %w", l.path, err)
	}
	return located{any: value, path: l.path}, nil
}

// checkBounds rejects JSON that is too large, too deep or has too many values, before any memory
// is allocated for it. Text that is not JSON passes.
func checkBounds(data []byte) error {
	if len(data) > MaxBytes {
		return fmt.Errorf("it has %d bytes, more than %d", len(data), MaxBytes)
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
			depth = max(depth-1, 0)
		case c == ',' || c == ':':
			values++
		}

		if depth > MaxDepth {
			return fmt.Errorf("it is nested deeper than %d, at byte %d", MaxDepth, i)
		}
	}

	if values > MaxValues {
		return fmt.Errorf("it has more than %d values", MaxValues)
	}
	return nil
}

// wrong returns the error for a value of the wrong type.
func (l located) wrong(expected string) error {
	return fmt.Errorf("%s: expected %s, not %s", l.place(), expected, l.kind())
}

// place returns the position of the value in the source, for messages.
func (l located) place() string {
	if l.path == "" {
		return "the trace"
	}
	return l.path
}

// kind returns the type of the value, for messages.
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

// member returns the value of a key, which is empty if l has no members.
func (l located) member(key string) located {
	path := key
	if l.path != "" {
		path = l.path + "." + key
	}
	object, _ := l.any.(map[string]any)
	return located{any: object[key], path: path}
}

// first returns the first existing member, or the member of the first key if none exists.
func (l located) first(keys ...string) located {
	for _, key := range keys {
		if m := l.member(key); m.any != nil {
			return m
		}
	}
	return l.member(keys[0])
}

// keys returns the names of the members, in order.
func (l located) keys() []string {
	object, _ := l.any.(map[string]any)
	return slices.Sorted(maps.Keys(object))
}

// object rejects values without members.
func (l located) object() error {
	if _, ok := l.any.(map[string]any); !ok {
		return l.wrong("an object")
	}
	return nil
}

// list returns the items of a list. A missing value is an empty list.
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
		path := fmt.Sprintf("%s[%d]", l.path, i)
		if l.lines != nil {
			path = fmt.Sprintf("line %d", l.lines[i])
		}
		all[i] = located{any: item, path: path}
	}

	return all, nil
}

// text returns a string. A missing value is an empty string.
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
		return fmt.Errorf("%s: the text has %d bytes, more than %d", l.place(), len(text), MaxText)
	}
	return nil
}

// show returns a string verbatim and any other value as JSON.
func (l located) show() (string, error) {
	if s, ok := l.any.(string); ok || l.any == nil {
		return s, l.checkLength(s)
	}
	text := jsonText(l.any)
	return text, l.checkLength(text)
}

// truth returns a boolean. A missing value is false.
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

// seconds returns a time in seconds, or nil if the value is not a number.
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

// jsonText writes a value as Python's json.dumps does with sort_keys and without ensure_ascii, so
// that the host and a snippet make the same trace.
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
