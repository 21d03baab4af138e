package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Answer writes a model's text and a line end. A file or a pipe receives it unchanged, a terminal
// without control sequences.
func (e *Env) Answer(text string) error {
	_, err := fmt.Fprintln(e.Stdout, e.Harmless(e.Stdout, text))
	return err
}

// Harmless makes the output of a model or a snippet safe for a writer. Control sequences could
// write to the clipboard of a terminal, or forge a note of this program.
func (e *Env) Harmless(w io.Writer, text string) string {
	if e.isEscaped(w) {
		return EscapeKeepingLines(text)
	}
	return text
}

// isEscaped reports whether a writer is a terminal and --raw is not set.
func (e *Env) isEscaped(w io.Writer) bool { return !e.raw && IsTerminal(w) }

// cutIncomplete cuts off the end of the output if later bytes may change its meaning. This can be
// an incomplete character, or a carriage return, which may belong to a line end.
func cutIncomplete(text []byte) (whole, rest []byte) {
	at := len(text)
	if at > 0 && text[at-1] == '\r' {
		at--
	}

	for n := 1; n < utf8.UTFMax && n <= at; n++ {
		begins := utf8.RuneStart(text[at-n])
		if begins && !utf8.FullRune(text[at-n:at]) {
			at -= n
		}
		if begins {
			break
		}
	}
	return text[:at], text[at:]
}

// Escape makes a string from a model or a file safe for one line of a terminal. It escapes
// unprintable characters.
func Escape(text string) string { return escapeText(text, false) }

// EscapeKeepingLines is like Escape, but keeps line ends and tabs.
func EscapeKeepingLines(text string) string { return escapeText(text, true) }

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

// Shorten escapes a string and cuts it to limit characters.
func Shorten(text string, limit int) string {
	text = Escape(strings.Join(strings.Fields(cutBytes(text, 4*limit)), " "))
	if utf8.RuneCountInString(text) <= limit {
		return text
	}
	return string([]rune(text)[:limit-1]) + "…"
}

// cutBytes returns about the first n bytes of a string, cut between characters.
func cutBytes(text string, n int) string {
	if len(text) <= n {
		return text
	}
	for n > 0 && !utf8.RuneStart(text[n]) {
		n--
	}
	return text[:n]
}

// PrintLine prints a value as one line of JSON.
func PrintLine(w io.Writer, v any) error {
	encoder := json.NewEncoder(w)
	encoder.SetEscapeHTML(false)
	return encoder.Encode(v)
}
