package schema

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// repairJSON reads the value at the start of a text that is almost JSON, and returns the value as
// JSON, with the number of bytes that it takes up in the text. It accepts deviations that models
// write and that have one meaning: comments, a comma before a closing bracket, quotes of other
// kinds, keys without quotes, line breaks in strings, and Python's True, False and None. It returns
// false for any other text, such as one that is cut off. The caller decodes the result strictly.
func repairJSON(text string) (repaired string, length int, ok bool) {
	r := repairer{text: text}
	ok = r.readValue(0)
	return r.out.String(), r.at, ok
}

// repairer rewrites a text as JSON.
type repairer struct {
	text string
	at   int
	out  strings.Builder
}

// readValue rewrites the value at the current position.
func (r *repairer) readValue(depth int) bool {
	if depth > valueBounds.depth || !r.skipSpace() {
		return false
	}
	switch c := r.text[r.at]; {
	case c == '{' || c == '[':
		return r.readNested(depth)
	case r.atQuote() != "":
		return r.readText()
	case c == '-' || c >= '0' && c <= '9':
		return r.readWord("+-.0123456789eE")
	default:
		return r.readName()
	}
}

// skipSpace skips white space and comments. It returns false at the end of the text.
func (r *repairer) skipSpace() bool {
	for r.at < len(r.text) {
		rest := r.text[r.at:]
		switch {
		case strings.ContainsRune(" \t\r\n", rune(rest[0])):
			r.at++
		case rest[0] == '#' || strings.HasPrefix(rest, "//"):
			end := strings.IndexByte(rest, '\n')
			if end < 0 {
				return false
			}
			r.at += end
		case strings.HasPrefix(rest, "/*"):
			end := strings.Index(rest, "*/")
			if end < 0 {
				return false
			}
			r.at += end + len("*/")
		default:
			return true
		}
	}
	return false
}

// take skips white space and then c, if c is next.
func (r *repairer) take(c byte) bool {
	if !r.skipSpace() || r.text[r.at] != c {
		return false
	}
	r.at++
	return true
}

// readNested rewrites an object or an array.
func (r *repairer) readNested(depth int) bool {
	isObject, closing := r.text[r.at] == '{', byte(']')
	if isObject {
		closing = '}'
	}
	r.out.WriteByte(r.text[r.at])
	r.at++

	for isFirst := true; !r.take(closing); isFirst = false {
		if !isFirst {
			if !r.take(',') {
				return false
			}
			if r.take(closing) {
				break
			}
			r.out.WriteByte(',')
		}
		if isObject && !r.readKey() || !r.readValue(depth+1) {
			return false
		}
	}
	r.out.WriteByte(closing)
	return true
}

// readKey rewrites the key of a member and the colon.
func (r *repairer) readKey() bool {
	if !r.skipSpace() {
		return false
	}
	if r.atQuote() != "" {
		if !r.readText() {
			return false
		}
	} else {
		name := r.name()
		if name == "" {
			return false
		}
		r.at += len(name)
		r.out.WriteString(`"` + name + `"`)
	}
	r.out.WriteByte(':')
	return r.take(':')
}

// closingQuotes maps each quote that may open a string to the quote that closes it.
var closingQuotes = map[string]string{`"`: `"`, "'": "'", "“": "”", "‘": "’"}

// atQuote returns the quote at the current position, or "".
func (r *repairer) atQuote() string {
	_, size := utf8.DecodeRuneInString(r.text[r.at:])
	if quote := r.text[r.at : r.at+size]; closingQuotes[quote] != "" {
		return quote
	}
	return ""
}

// readText rewrites a string in quotes.
func (r *repairer) readText() bool {
	quote := r.atQuote()
	closing := closingQuotes[quote]
	r.at += len(quote)
	r.out.WriteByte('"')
	for r.at < len(r.text) {
		rest := r.text[r.at:]
		switch c := rest[0]; {
		case strings.HasPrefix(rest, closing):
			r.at += len(closing)
			r.out.WriteByte('"')
			return r.endsText()
		case c == '\\' && len(rest) > 1:
			if rest[1] == '\'' {
				r.out.WriteByte('\'')
			} else {
				r.out.WriteString(rest[:2])
			}
			r.at += 2
		case c == '"':
			r.out.WriteString(`\"`)
			r.at++
		case c < ' ':
			escaped, isKnown := map[byte]string{'\n': `\n`, '\r': `\r`, '\t': `\t`}[c]
			if !isKnown {
				return false
			}
			r.out.WriteString(escaped)
			r.at++
		default:
			r.out.WriteByte(c)
			r.at++
		}
	}
	return false
}

// endsText reports whether a string may end at the current position. A quote followed by anything
// else is part of the string, like an apostrophe, and the text then has more than one meaning.
func (r *repairer) endsText() bool {
	return !r.skipSpace() || strings.IndexByte(",:]}", r.text[r.at]) >= 0
}

// readWord copies the word that consists of the given characters.
func (r *repairer) readWord(of string) bool {
	end := r.at
	for end < len(r.text) && strings.IndexByte(of, r.text[end]) >= 0 {
		end++
	}
	r.out.WriteString(r.text[r.at:end])
	r.at = end
	return true
}

// name returns the name at the current position, or "".
func (r *repairer) name() string {
	rest := r.text[r.at:]
	for i, c := range rest {
		if c != '_' && !unicode.IsLetter(c) && (i == 0 || !unicode.IsDigit(c)) {
			return rest[:i]
		}
	}
	return rest
}

// readName rewrites a name that is a value.
func (r *repairer) readName() bool {
	name := r.name()
	word, isKnown := map[string]string{
		"true": "true", "True": "true", "false": "false", "False": "false", "null": "null", "None": "null",
	}[name]
	r.at += len(name)
	r.out.WriteString(word)
	return isKnown
}
