package cli

import (
	"strings"
	"testing"
)

func TestControlCharactersAreEscaped(t *testing.T) {
	for text, want := range map[string]string{
		"plain ünï 漢字 😀": "plain ünï 漢字 😀", "a\x1b[31mb": `a\x1b[31mb`, "a\nb\tc": `a\nb\tc`,
		"\u202eevil": `\u202eevil`, "\xff": `\xff`,
		"\u009b31m": `\x9b31m`, "\x7f": `\x7f`, "\U000e0041": `\U000e0041`, "\u2028": `\u2028`,
	} {
		t.Run(text, func(t *testing.T) {
			if got := Escape(text); got != want {
				t.Errorf("%q is shown as %q, want %q", text, got, want)
			}
		})
	}
	if got := EscapeKeepingLines("a\r\nb\rc\td"); got != "a\nb\\x0dc\td" {
		t.Errorf("%q", got)
	}
	if got := Shorten(strings.Repeat("漢", 50), 10); got != strings.Repeat("漢", 9)+"…" {
		t.Errorf("%q", got)
	}
}
