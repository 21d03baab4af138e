package tables

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
)

// Members calls use for each member of the JSON object on a line, with the undecoded key and value,
// without surrounding white space. It reports whether the line is an object. It does not check
// values.
func Members(line []byte, use func(key, value []byte)) bool {
	d := &jsonDecoder{text: line}
	d.skipSpace()
	if !d.take('{') {
		return false
	}
	if d.take('}') {
		return d.isAtEnd()
	}

	for {
		d.skipSpace()
		from := d.at
		if d.peek() != '"' || !d.skipString() {
			return false
		}
		key := d.text[from:d.at]

		if !d.take(':') {
			return false
		}
		d.skipSpace()
		from = d.at
		if !d.skipValue() {
			return false
		}
		use(key, d.text[from:d.at])

		if d.take('}') {
			return d.isAtEnd()
		}
		if !d.take(',') {
			return false
		}
	}
}

// String decodes a JSON string.
func String(written []byte) ([]byte, bool) {
	if len(written) < 2 || written[0] != '"' {
		return nil, false
	}
	if bytes.IndexByte(written, '\\') < 0 {
		return written[1 : len(written)-1], true
	}
	var text string
	if json.Unmarshal(written, &text) != nil {
		return nil, false
	}
	return []byte(text), true
}

// Keys returns the ways in which programs write an object's key if they avoid needless escapes.
func Keys(name string) []string {
	short := strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`, "\r", `\r`, "\t", `\t`, "\b", `\b`, "\f", `\f`)
	keys := []string{escapeControls(short.Replace(name)), escapeControls(
		strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(name))}
	return slices.Compact(keys)
}

// escapeControls quotes a text, writing the remaining control characters as \u00xx.
func escapeControls(text string) string {
	const hex = "0123456789abcdef"
	out := []byte{'"'}
	for i := range len(text) {
		if c := text[i]; c < ' ' {
			out = append(out, `\u00`...)
			out = append(out, hex[c>>4], hex[c&15])
		} else {
			out = append(out, c)
		}
	}
	return string(append(out, '"'))
}

func (d *jsonDecoder) isAtEnd() bool {
	d.skipSpace()
	return d.at == len(d.text)
}

func (d *jsonDecoder) skipString() bool {
	for d.at++; d.at < len(d.text); d.at++ {
		switch d.text[d.at] {
		case '"':
			d.at++
			return true
		case '\\':
			d.at++
		}
	}
	return false
}

// skipValue skips a value; its brackets must balance.
func (d *jsonDecoder) skipValue() bool {
	depth := 0
	for d.at < len(d.text) {
		switch d.text[d.at] {
		case '"':
			if !d.skipString() {
				return false
			}
			if depth == 0 {
				return true
			}
			continue
		case '{', '[':
			depth++
		case '}', ']':
			if depth == 0 {
				return true
			}
			if depth--; depth == 0 {
				d.at++
				return true
			}
		case ',', ' ', '\t', '\r':
			if depth == 0 {
				return true
			}
		}
		d.at++
	}
	return false
}
