package bigtext

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"unicode/utf8"
)

// check compares everything except regular expressions with the model.
func check(t *testing.T, r *rand.Rand, b []byte) {
	t.Helper()
	text, m := shrink(FromBytes("text", b)), newModel(b)
	n, err := text.Len(bg)
	if err != nil || n != int64(len(m)) {
		t.Fatalf("%q: Len %d, %v; want %d", b, n, err, len(m))
	}
	checkInvalid(t, text, b, m)
	for range 6 {
		x, y := r.IntN(len(m)+1), r.IntN(len(m)+1)
		x, y = min(x, y), max(x, y)
		if r.IntN(3) == 0 {
			x, y = 0, len(m)
		}
		checkSlice(t, text, m, x, y)
		checkFind(t, r, text, b, m, x, y)
		checkParts(t, r, text, m, x, y)
	}
}

func checkInvalid(t *testing.T, text *Text, b []byte, m model) {
	t.Helper()
	want, first, at, ascii := int64(0), int64(-1), int64(0), true
	for i, c := range m {
		if len(c) == 1 && c[0] >= 0x80 {
			if want++; first < 0 {
				first = at
			}
		}
		ascii = ascii && c[0] < 0x80
		if off, err := offsetOf(text, int64(i)); off != at || err != nil {
			t.Fatalf("%q: offset of %d %d, %v; want %d", b, i, off, err, at)
		}
		for k := range c { // inside a character, it is counted
			if n, err := charsBefore(text, at+int64(k)); n != int64(i)+b2i(k > 0) || err != nil {
				t.Fatalf("%q: characters before %d %d, %v; want %d", b, at+int64(k), n, err, i)
			}
		}
		at += int64(len(c))
	}
	n, _ := text.Invalid(bg)
	f, _ := text.FirstInvalid(bg)
	a, _ := text.ASCII(bg)
	if n != want || f != first || a != ascii {
		t.Fatalf("%q: invalid %d first %d ascii %v; want %d %d %v", b, n, f, a, want, first, ascii)
	}
}

func checkSlice(t *testing.T, text *Text, m model, a, b int) {
	t.Helper()
	var want []byte
	ascii := true
	for _, c := range m[a:b] {
		want = append(want, c...)
		ascii = ascii && c[0] < 0x80
	}
	got, isASCII, err := text.Slice(bg, int64(a), int64(b))
	if err != nil || !bytes.Equal(got, want) || isASCII != ascii {
		t.Fatalf("%q: Slice(%d,%d) %q %v %v; want %q %v",
			text.data, a, b, got, isASCII, err, want, ascii)
	}
}

func checkFind(t *testing.T, r *rand.Rand, text *Text, b []byte, m model, x, y int) {
	t.Helper()
	needle := randomText(r, 2)
	if len(b) > 0 && r.IntN(2) == 0 { // bytes of the text, cut anywhere
		i := r.IntN(len(b))
		needle = b[i:min(len(b), i+r.IntN(9))]
	}
	nm := newModel(needle)
	X, Y := int64(x), int64(y)
	if got, err := text.Find(bg, needle, X, Y); err != nil || got != int64(m.find(nm, x, y)) {
		t.Fatalf("%q: Find(%q,%d,%d) %d %v; want %d", b, needle, x, y, got, err, m.find(nm, x, y))
	}
	if got, err := text.RFind(bg, needle, X, Y); err != nil || got != int64(m.rfind(nm, x, y)) {
		t.Fatalf("%q: RFind(%q,%d,%d) %d %v; want %d", b, needle, x, y, got, err, m.rfind(nm, x, y))
	}
	if got, err := text.Count(bg, needle, X, Y); err != nil || got != int64(m.count(nm, x, y)) {
		t.Fatalf("%q: Count(%q,%d,%d) %d %v; want %d", b, needle, x, y, got, err, m.count(nm, x, y))
	}
}

func checkParts(t *testing.T, r *rand.Rand, text *Text, m model, x, y int) {
	t.Helper()
	seps := []string{
		"a",
		"aa",
		"ab",
		"\n\n",
		"\xa9",
		"é",
		"\r\n",
		" ",
		"aba",
		nasty[r.IntN(len(nasty))],
	}
	splitters := []Splitter{Lines(), Newlines(), Fields(), Sep([]byte(seps[r.IntN(len(seps))]))}
	for _, s := range splitters {
		want := m.parts(s, x, y)
		n, err := text.Parts(bg, s, int64(x), int64(y))
		if err != nil || n != int64(len(want)) {
			t.Fatalf("%q: %v of [%d,%d): %d parts, %v; want %v", text.data, s, x, y, n, err, want)
		}
		for i, w := range want {
			a, b, err := partOf(text, s, int64(x), int64(y), int64(i))
			if got := [2]int{int(a), int(b)}; err != nil || got != w {
				t.Fatalf("%q: %v of [%d,%d): part %d is %v, %v; want %v",
					text.data, s, x, y, i, got, err, want)
			}
		}
		if _, _, err := partOf(text, s, int64(x), int64(y), n); err == nil {
			t.Fatalf("part %d of %d is no error", n, n)
		}
		checkPartsRange(t, r, text, s, want, x, y)
		checkEachPart(t, text, s, m, want, x, y)
	}
}

func checkEachPart(t *testing.T, text *Text, s Splitter, m model, want [][2]int, x, y int) {
	t.Helper()
	if !utf8.ValidString(s.sep) {
		return
	}
	data, i := []byte(strings.Join(m[x:y], "")), 0
	s.EachPart(t.Context(), data, func(part []byte, next int64) bool {
		if i == len(want) {
			t.Fatalf("%q: %v of [%d,%d): more than %d parts", text.data, s, x, y, i)
		}
		w, following := want[i], -1
		if i++; i < len(want) {
			following = len(strings.Join(m[x:want[i][0]], ""))
		}
		if string(part) != strings.Join(m[w[0]:w[1]], "") || next != int64(following) {
			t.Fatalf("%q: %v of [%d,%d): part %d is %q, then %d; want %v, then %d",
				text.data, s, x, y, i-1, part, next, w, following)
		}
		return true
	})
	if i != len(want) {
		t.Fatalf("%q: %v of [%d,%d): %d parts, want %d", text.data, s, x, y, i, len(want))
	}
}

func checkPartsRange(t *testing.T, r *rand.Rand, text *Text, s Splitter, want [][2]int, x, y int) {
	t.Helper()
	i, j := r.IntN(len(want)+1), r.IntN(len(want)+1)
	i, j = min(i, j), max(i, j)
	a, b, err := text.PartsRange(bg, s, int64(x), int64(y), int64(i), int64(j))
	ok := err == nil && a == b
	if i < j {
		ok = err == nil && int(a) == want[i][0] && int(b) == want[j-1][1]
	}
	if !ok {
		t.Fatalf("%q: %v of [%d,%d): parts %d to %d are [%d,%d), %v; want %v",
			text.data, s, x, y, i, j, a, b, err, want)
	}
}

func TestAgainstModel(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for i := range 1000 {
		check(t, r, randomText(r, 5+i/8))
	}
}

func TestEdges(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	texts := []string{
		"", "a", "é", "\xff", "\ufeff", "\ufeffa", "a\r\nb\r\n", "\r\n", "\xed\xa0\x80", "\xc0\x80",
		"\x00", "\n\n\n", "   ", ",,,,", "aaaaaaa",
	}
	for _, s := range []string{
		"é", "€", "🎉", "\xff", "\xe2\x82", "\x80", "\x00", " ", "\n", "\r\n", "\u2028", "aa",
	} {
		for shift := range 4 { // across each block's border
			texts = append(texts,
				fmt.Sprintf("%.*s", shift, "xyz")+string(bytes.Repeat([]byte(s), 60)))
		}
	}
	for _, s := range texts {
		t.Run(s, func(t *testing.T) {
			for range 5 {
				check(t, r, []byte(s))
			}
		})
	}
}

func TestBadRanges(t *testing.T) {
	text := FromBytes("text", []byte("aéb"))
	re, err := CompileRegexp(t.Context(), "a")
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range [][2]int64{{-1, 0}, {0, 4}, {2, 1}, {4, 4}, {-5, -3}, {1 << 62, 1 << 62}} {
		a, b := r[0], r[1]
		errs := map[string]error{}
		_, _, errs["Slice"] = text.Slice(bg, a, b)
		_, errs["Find"] = text.Find(bg, []byte("a"), a, b)
		_, errs["RFind"] = text.RFind(bg, []byte("a"), a, b)
		_, errs["Count"] = text.Count(bg, []byte(""), a, b)
		_, errs["Parts"] = text.Parts(bg, Lines(), a, b)
		_, _, errs["PartsRange"] = text.PartsRange(bg, Lines(), a, b, 0, 0)
		_, _, errs["FindRegexp"] = text.FindRegexp(bg, re, a, b, a, 1)
		for name, err := range errs {
			if !errorsIs(err, errRange) {
				t.Errorf("%s of [%d,%d): %v", name, a, b, err)
			}
		}
	}
	if _, err := text.Parts(bg, Sep(nil), 0, 3); err == nil {
		t.Error("an empty separator is no error")
	}
}

func FuzzText(f *testing.F) {
	for _, s := range nasty {
		f.Add([]byte(s+s), uint64(1))
	}
	f.Fuzz(func(t *testing.T, b []byte, seed uint64) {
		if len(b) < 1<<12 {
			check(t, rand.New(rand.NewPCG(seed, 1)), b)
		}
	})
}
