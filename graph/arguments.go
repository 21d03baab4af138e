package graph

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"

	"github.com/rlmhq/rlm/tiers"
)

// These limits apply to the arguments of snippets, in bytes, and to the number of views.
const (
	maxQuery  = 256 << 10
	maxParams = 2 << 20
	maxName   = 1_000
	maxViews  = 20
)

// arguments are the arguments of a call, by name.
type arguments map[string]tiers.Value

// isNone reports whether an argument is missing or None.
func isNone(value tiers.Value) bool { return len(value) == 0 || string(value) == "null" }

// text returns a required str argument.
func (args arguments) text(name string, most int) (string, error) {
	value := args[name]
	if isNone(value) {
		return "", fmt.Errorf("the argument %s is missing", name)
	}
	if len(value) > 6*most { // JSON may escape each byte
		return "", fmt.Errorf("%s is longer than %d bytes", name, most)
	}

	var text string
	if json.Unmarshal(value, &text) != nil {
		return "", fmt.Errorf("%s must be a str, not %s", name, clip(value))
	}
	switch {
	case len(text) > most:
		return "", fmt.Errorf("%s is longer than %d bytes", name, most)
	case strings.TrimSpace(text) == "":
		return "", fmt.Errorf("%s is empty", name)
	}
	return text, nil
}

// count returns a positive number.
func (args arguments) count(name string, standard int) (int, error) {
	value := args[name]
	if isNone(value) {
		return standard, nil
	}
	var n int
	if json.Unmarshal(value, &n) != nil || n < 1 {
		return 0, fmt.Errorf("%s must be a positive int, not %s", name, clip(value))
	}
	return n, nil
}

// names returns a str, or a list of str.
func (args arguments) names(name string) ([]string, error) {
	value := args[name]
	if isNone(value) {
		return nil, nil
	}
	if len(value) > 6*maxViews*maxName {
		return nil, fmt.Errorf("%s is too long", name)
	}

	var one string
	if json.Unmarshal(value, &one) == nil {
		return []string{one}, nil
	}
	var all []string
	if json.Unmarshal(value, &all) != nil || len(all) > maxViews {
		return nil, fmt.Errorf("%s must be a list of at most %d str, not %s",
			name, maxViews, clip(value))
	}
	return all, nil
}

// params returns the parameters of a query, or nil if there are none.
func (args arguments) params(name string) (map[string]any, error) {
	value := args[name]
	if isNone(value) {
		return nil, nil
	}
	if len(value) > maxParams {
		return nil, fmt.Errorf("%s has %d bytes of JSON, more than %d: pass fewer at once",
			name, len(value), maxParams)
	}
	if bytes.Contains(value, []byte(`"__rlm_text__"`)) {
		return nil, errors.New("a part of a large context is not a str: pass str(part)")
	}

	decoder := json.NewDecoder(bytes.NewReader(value))
	decoder.UseNumber()
	var params map[string]any
	if decoder.Decode(&params) != nil {
		return nil, fmt.Errorf("%s must be a dict, not %s", name, clip(value))
	}
	return params, nil
}

func clip(value tiers.Value) string {
	return shorten(strings.ToValidUTF8(string(value), "\uFFFD"), 80)
}

// encodeRows returns rows as a JSON list of objects, with members in the order of the columns if
// there are any. Truncated rows end with an object that reports the truncation.
func encodeRows(columns []string, rows []map[string]any, isCut bool) (tiers.Value, error) {
	var b bytes.Buffer
	b.WriteByte('[')
	for i, row := range rows {
		if i > 0 {
			b.WriteByte(',')
		}
		if err := encodeRow(&b, columns, row); err != nil {
			return nil, err
		}
	}

	if isCut {
		if len(rows) > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, `{"truncated":"only the first %d rows are here: ask for fewer, or in parts"}`,
			len(rows))
	}
	b.WriteByte(']')
	return b.Bytes(), nil
}

func encodeRow(b *bytes.Buffer, columns []string, row map[string]any) error {
	if columns == nil {
		value, err := encodeValue(row)
		b.Write(value)
		return err
	}

	b.WriteByte('{')
	for i, column := range columns {
		if i > 0 {
			b.WriteByte(',')
		}
		name, err := json.Marshal(column)
		if err != nil {
			return err
		}
		value, err := encodeValue(row[column])
		if err != nil {
			return err
		}
		b.Write(name)
		b.WriteByte(':')
		b.Write(value)
	}
	b.WriteByte('}')
	return nil
}

// encodeValue returns a value as JSON, in which the three floats that JSON cannot represent become
// their Python names.
func encodeValue(value any) (tiers.Value, error) {
	return json.Marshal(nameFloats(value))
}

func nameFloats(value any) any {
	switch v := value.(type) {
	case float64:
		switch {
		case math.IsNaN(v):
			return "nan"
		case math.IsInf(v, 1):
			return "inf"
		case math.IsInf(v, -1):
			return "-inf"
		}
	case []any:
		for i := range v {
			v[i] = nameFloats(v[i])
		}
	case map[string][]map[string]any:
		for _, rows := range v {
			nameFloats(rows)
		}
	case []map[string]any:
		for _, row := range v {
			nameFloats(row)
		}
	case map[string]any:
		for key := range v {
			v[key] = nameFloats(v[key])
		}
	}
	return value
}
