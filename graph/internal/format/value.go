package format

import (
	"encoding/json"
	"math"
	"strconv"
	"strings"
)

// appendValue appends the JSON of a property. A float64 has a point or an exponent, so that readers
// recognise it as a float.
func appendValue(b []byte, value any) []byte {
	switch v := value.(type) {
	case nil:
		return append(b, "null"...)
	case bool:
		return strconv.AppendBool(b, v)
	case int64:
		return strconv.AppendInt(b, v, 10)
	case float64:
		return append(b, formatFloat(v)...)
	case string:
		return appendString(b, v)
	case []any:
		b = append(b, '[')
		for i, element := range v {
			if i > 0 {
				b = append(b, ',')
			}
			b = appendValue(b, element)
		}
		return append(b, ']')
	case map[string]any:
		return appendObject(b, v)
	}

	return append(b, "null"...)
}

func appendObject(b []byte, properties map[string]any) []byte {
	b = append(b, '{')
	for i, name := range sortedNames(properties) {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(appendString(b, name), ':')
		b = appendValue(b, properties[name])
	}

	return append(b, '}')
}

func appendString(b []byte, text string) []byte {
	var quoted strings.Builder
	enc := json.NewEncoder(&quoted)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(text); err != nil { // encoding a string never fails
		return append(b, `""`...)
	}
	return append(b, strings.TrimSuffix(quoted.String(), "\n")...)
}

func formatFloat(f float64) string {
	text := strconv.FormatFloat(f, 'g', -1, 64)
	if !strings.ContainsAny(text, ".e") && !math.IsInf(f, 0) && !math.IsNaN(f) {
		text += ".0"
	}
	return text
}
