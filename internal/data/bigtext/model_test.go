package bigtext

import (
	"context"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var bg = context.Background()

// model is a text as a naive list of characters, each represented by its bytes.
type model []string

func newModel(b []byte) model {
	var m model
	for len(b) > 0 {
		_, w := utf8.DecodeRune(b)
		m = append(m, string(b[:w]))
		b = b[w:]
	}
	return m
}

func (m model) hasAt(n model, i int) bool {
	return i+len(n) <= len(m) && slices.Equal(m[i:i+len(n)], n)
}

func (m model) find(n model, a, b int) int {
	for i := a; i+len(n) <= b; i++ {
		if m.hasAt(n, i) {
			return i
		}
	}
	return -1
}

func (m model) rfind(n model, a, b int) int {
	for i := b - len(n); i >= a; i-- {
		if m.hasAt(n, i) {
			return i
		}
	}
	return -1
}

func (m model) count(n model, a, b int) int {
	if len(n) == 0 {
		return b - a + 1
	}
	count := 0
	for i := m.find(n, a, b); i >= 0; i = m.find(n, i+len(n), b) {
		count++
	}
	return count
}

const (
	modelLineEnds = "\n\r\v\f\x1c\x1d\x1e\u0085\u2028\u2029"
	modelSpaces   = " \t\n\v\f\r\x1c\x1d\x1e\x1f\u0085\u00a0\u1680\u2000\u2001\u2002" +
		"\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u2028\u2029\u202f\u205f\u3000"
)

func in(set, c string) bool { return utf8.ValidString(c) && strings.Contains(set, c) }

// parts returns the ranges [start,end) of the parts of m[a:b].
func (m model) parts(s Splitter, a, b int) [][2]int {
	switch s.kind {
	case splitSep:
		return m.split(newModel([]byte(s.sep)), a, b)
	case splitFields:
		return m.fields(a, b)
	case splitLines:
		return m.lines(modelLineEnds, a, b)
	default:
		return m.lines("\n", a, b)
	}
}

func (m model) split(sep model, a, b int) (all [][2]int) {
	for {
		i := m.find(sep, a, b)
		if i < 0 {
			return append(all, [2]int{a, b})
		}
		all = append(all, [2]int{a, i})
		a = i + len(sep)
	}
}

func (m model) fields(a, b int) (all [][2]int) {
	for i := a; i < b; {
		if in(modelSpaces, m[i]) {
			i++
			continue
		}
		start := i
		for i < b && !in(modelSpaces, m[i]) {
			i++
		}
		all = append(all, [2]int{start, i})
	}
	return all
}

func (m model) lines(ends string, a, b int) (all [][2]int) {
	for i := a; i < b; {
		start := i
		for i < b && !in(ends, m[i]) && (m[i] != "\r" || i+1 >= b || m[i+1] != "\n") {
			i++
		}
		all = append(all, [2]int{start, i})
		if i < b && m[i] == "\r" && i+1 < b && m[i+1] == "\n" {
			i++
		}
		i++
	}
	return all
}

// shrink makes blocks and chunks so small that small texts have many.
func shrink(t *Text) *Text {
	t.chunk, t.block, t.splitBlock = 64, 16, 32
	return t
}

// nasty contains pieces of difficult texts: surrogates, overlongs, cut and stray bytes, every
// width, line ends and spaces.
var nasty = []string{
	"a", "b", "ab", "x", "é", "€", "🎉", "中", " ", "  ", "\n", "\n\n", "\r", "\r\n", "\v", "\f",
	"\x1c", "\x1f", "\u0085", "\u00a0", "\u2028", "\u2029", "\u3000", "\u1680", "\u200a", "\u202f",
	"\u205f", "\x00", "\ufeff", "\ufffd", "\xed\xa0\x80", "\xc0\x80", "\xe0\x80\x80",
	"\xf0\x80\x80\x80", "\xf4\x90\x80\x80", "\xf8", "\xff", "\x80", "\xbf", "\xc3", "\xe2\x82",
	"\xf0\x9f\x8e", "\xa9", "\x82", "aaaa", "abab", "foo", "2024-05-17", "King", "word_1", "-",
}

func randomText(r *rand.Rand, n int) []byte {
	var b []byte
	few := nasty
	if r.IntN(2) == 0 { // few distinct pieces give more matches
		few = []string{
			nasty[r.IntN(len(nasty))],
			nasty[r.IntN(len(nasty))],
			nasty[r.IntN(len(nasty))],
		}
	}
	for range r.IntN(n + 1) {
		b = append(b, few[r.IntN(len(few))]...)
	}
	return b
}

func writeFile(tb testing.TB, b []byte) string {
	tb.Helper()
	path := filepath.Join(tb.TempDir(), "text")
	if err := os.WriteFile(path, b, 0o600); err != nil {
		tb.Fatal(err)
	}
	return path
}

func open(tb testing.TB, path string) *Text {
	tb.Helper()
	text, err := Open(path)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = text.Close() })
	return text
}

func errorsIs(err, target error) bool { return err != nil && errors.Is(err, target) }
