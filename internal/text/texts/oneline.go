package texts

import (
	"strings"
	"unicode"
)

// maxLine bounds the text that OneLine shows, in bytes.
const maxLine = 200

// OneLine shortens text and makes it safe for a table and a terminal, because snippets are
// untrusted.
func OneLine(text string) string { return Line(text, maxLine) }

// Line cuts text to most bytes and makes it safe for a table and a terminal.
func Line(text string, most int) string {
	clean := func(r rune) rune {
		if unicode.IsControl(r) || !unicode.IsPrint(r) && r != ' ' {
			return ' '
		}
		return r
	}
	text = strings.TrimSpace(strings.Map(clean, text))
	if len(text) > most {
		return strings.ToValidUTF8(text[:most], "") + "…"
	}
	return text
}
