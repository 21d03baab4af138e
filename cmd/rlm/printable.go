package main

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// answer writes a text that a model wrote, and a line end: byte for byte to a file or a
// pipe, and to a terminal without anything that it obeys.
func (e *env) answer(text string) error {
	if isTerminal(e.stdout) {
		text = printableLines(text)
	}
	_, err := fmt.Fprintln(e.stdout, text)
	return err
}

// printable is a text that models or files wrote, on one line and without
// anything that a terminal obeys: what does not print becomes an escape.
func printable(text string) string { return harmless(text, false) }

// printableLines is printable with line ends and tabs kept.
func printableLines(text string) string { return harmless(text, true) }

func harmless(text string, lines bool) string {
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

// short cuts a text to so many characters, on one line.
func short(text string, limit int) string {
	text = printable(strings.Join(strings.Fields(headOf(text, 4*limit)), " "))
	if utf8.RuneCountInString(text) <= limit {
		return text
	}
	return string([]rune(text)[:limit-1]) + "…"
}

// headOf is about the first n bytes of a text, cut between characters.
func headOf(text string, n int) string {
	if len(text) <= n {
		return text
	}
	for n > 0 && !utf8.RuneStart(text[n]) {
		n--
	}
	return text[:n]
}
