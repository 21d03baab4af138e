package main

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// answer writes a model's text and a line end: byte for byte to a file or a pipe, and to a
// terminal without control sequences.
func (e *env) answer(text string) error {
	if isTerminal(e.stdout) {
		text = escapeKeepingLines(text)
	}
	_, err := fmt.Fprintln(e.stdout, text)
	return err
}

// escape makes a text of a model or a file safe for a terminal, on one line: unprintable
// characters become escapes.
func escape(text string) string { return escapeText(text, false) }

// escapeKeepingLines is escape, but keeps line ends and tabs.
func escapeKeepingLines(text string) string { return escapeText(text, true) }

func escapeText(text string, lines bool) string {
	var b strings.Builder
	for i := 0; i < len(text); {
		r, n := utf8.DecodeRuneInString(text[i:])
		switch {
		case r == utf8.RuneError && n == 1:
			fmt.Fprintf(&b, `\x%02x`, text[i])
		case lines && (r == '\n' || r == '\t'), unicode.IsPrint(r):
			b.WriteRune(r)
		case r == '\n':
			b.WriteString(`\n`)
		case r == '\t':
			b.WriteString(`\t`)
		case r == '\r' && lines && strings.HasPrefix(text[i+n:], "\n"):
		case r < 0x100:
			fmt.Fprintf(&b, `\x%02x`, r)
		case r < 0x10000:
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			fmt.Fprintf(&b, `\U%08x`, r)
		}

		i += n
	}

	return b.String()
}

// shorten escapes a text and cuts it to limit characters.
func shorten(text string, limit int) string {
	text = escape(strings.Join(strings.Fields(cutBytes(text, 4*limit)), " "))
	if utf8.RuneCountInString(text) <= limit {
		return text
	}
	return string([]rune(text)[:limit-1]) + "…"
}

// cutBytes returns about the first n bytes of a text, cut between characters.
func cutBytes(text string, n int) string {
	if len(text) <= n {
		return text
	}
	for n > 0 && !utf8.RuneStart(text[n]) {
		n--
	}
	return text[:n]
}
