package bm25_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/rlmhq/rlm/internal/data/bigtext"
	"github.com/rlmhq/rlm/internal/data/bm25"
)

// folder creates a folder with files, by name.
func folder(tb testing.TB, files map[string]string) string {
	tb.Helper()
	dir := tb.TempDir()
	for name, text := range files {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			tb.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			tb.Fatal(err)
		}
	}
	return dir
}

func open(tb testing.TB, bounds bm25.Bounds, paths ...string) *bm25.Library {
	tb.Helper()
	l, err := bm25.Open(tb.Context(), paths, bounds)
	if err != nil {
		tb.Fatal(err)
	}
	return l
}

func TestTerms(t *testing.T) {
	for text, want := range map[string]string{
		"":                             "",
		"Database migrations, please!": "database migrations please",
		"createReflexionLoop":          "create reflexion loop createreflexionloop",
		"openURLFile":                  "open url file openurlfile",
		"max_reply v2":                 "max reply v2",
		"HTTP":                         "http",
		"été naïve":                    "été naïve",
		"数据库迁移":                        "数据 据库 库迁 迁移",
		"用Python写":                     "用 python 写",
		"漢":                            "漢",
		"हिन्दी":                       "हिन्दी",
		strings.Repeat("x", 65) + " y": "y",
		"\xff\xfe a":                   "a",
	} {
		t.Run(fmt.Sprintf("%.60s", text), func(t *testing.T) {
			if got := strings.Join(slices.Collect(bm25.Terms(text)), " "); got != want {
				t.Errorf("%q has the terms %q, want %q", text, got, want)
			}
		})
	}
	for term := range bm25.Terms("stop after one") {
		if term != "stop" {
			t.Errorf("it went on to %q", term)
		}
		break
	}
}

// TestTheScoreIsBM25 compares the scores with the formula, evaluated by hand for two passages.
func TestTheScoreIsBM25(t *testing.T) {
	dir := folder(t, map[string]string{"a.txt": "red red fox", "b.txt": "a red sky over the sea"})
	hits := open(t, bm25.Bounds{}, dir).Search("red fox", 10)
	if len(hits) != 2 || hits[0].Text != "red red fox" {
		t.Fatalf("the hits are %+v", hits)
	}
	weight := func(n float64) float64 { return math.Log(1 + (2-n+0.5)/(n+0.5)) }
	part := func(count,
		length float64,
	) float64 {
		return count * 2.2 / (count + 1.2*(0.25+0.75*length/4.5))
	}
	highest := 2.2 * (weight(2) + weight(1))
	for i, want := range []float64{
		(weight(2)*part(2, 3) + weight(1)*part(1, 3)) / highest,
		weight(2) * part(1, 6) / highest,
	} {
		if math.Abs(hits[i].Relevance-want) > 1e-12 {
			t.Errorf("hit %d has the relevance %v, want %v", i, hits[i].Relevance, want)
		}
	}
}

func TestSearch(t *testing.T) {
	l := open(t, bm25.Bounds{}, folder(t, map[string]string{
		"one.md":   "the cat sat",
		"two.md":   "the cat and the dog sat",
		"three.go": "package three // nothing of the kind",
	}))
	hits := l.Search("cat dog", 1)
	if len(hits) != 1 || !strings.HasSuffix(hits[0].Path, "two.md") || hits[0].Line != 1 ||
		hits[0].Kind != bigtext.KindText {
		t.Errorf("the best hit is %+v", hits)
	}
	for _, query := range []string{"", "unheard", "!?"} {
		t.Run(query, func(t *testing.T) {
			if hits := l.Search(query, 5); len(hits) != 0 {
				t.Errorf("%q finds %+v", query, hits)
			}
		})
	}
	known, with := l.Search("cat", 1)[0].Relevance, l.Search("cat unheard", 1)[0].Relevance
	if with != known {
		t.Errorf("a word that stands nowhere changes the relevance: %v, %v", known, with)
	}
	if hits := l.Search("cats sitting", 5); len(hits) != 2 {
		t.Errorf("other forms of the words find %+v", hits)
	}
	if l.Search("cat", 0) != nil {
		t.Error("no hit was asked for")
	}
}

func TestTextsAreCutIntoPassages(t *testing.T) {
	var text strings.Builder
	for i := range 100 {
		fmt.Fprintf(&text, "paragraph %d %s\n\n", i, strings.Repeat("word ", 50))
	}
	long := strings.Repeat("é", 5000)
	l := open(
		t,
		bm25.Bounds{},
		folder(
			t,
			map[string]string{
				"a.txt": text.String(), "b.txt": "\n\n\nfirst\n" + long + "\nlast line",
			},
		),
	)
	for query, line := range map[string]int{"paragraph 0": 1, "first": 4, "last": 6} {
		t.Run(query, func(t *testing.T) {
			hits := l.Search(query, 200)
			if len(hits) == 0 || hits[0].Line > line ||
				hits[0].Line+strings.Count(hits[0].Text, "\n") < line {
				t.Fatalf("%q is at line %d, found was %+v", query, line, hits)
			}
		})
	}
	for _, hit := range append(l.Search("paragraph", 200), l.Search("last first", 200)...) {
		if len(hit.Text) > 1600 || !utf8.ValidString(hit.Text) {
			t.Errorf("a passage has %d bytes", len(hit.Text))
		}
	}
	if n := len(l.Search("paragraph", 200)); n < 20 || n > 50 {
		t.Errorf("100 paragraphs are in %d passages", n)
	}
}

func TestLeftOutHitsAreCounted(t *testing.T) {
	dir := folder(t, map[string]string{
		"a.txt":       "some text",
		"empty.txt":   "",
		"large.txt":   strings.Repeat("x", 200),
		".git/config": "hidden", "node_modules/m.js": "m",
		"image.bin":  "\x00\x01\x02\x00\x00",
		"mended.txt": "caf\xe9 is not UTF-8, and the rest of this line is",
	})
	outside := folder(t, map[string]string{"secret.txt": "the secret word is xyzzy"})
	links := 0
	if runtime.GOOS != "windows" {
		for name, to := range map[string]string{
			"link.txt": filepath.Join(outside, "secret.txt"),
			"up":       outside, "loop": dir,
		} {
			if err := os.Symlink(to, filepath.Join(dir, name)); err != nil {
				t.Fatal(err)
			}
			links++
		}
	}
	l := open(t, bm25.Bounds{FileBytes: 100}, dir)
	want := bm25.Skipped{Links: links, Hidden: 2, Binary: 1, Large: 1}
	if got := l.Skipped(); got != want {
		t.Errorf("left out are %+v, want %+v", got, want)
	}
	if hits := l.Search("xyzzy secret", 5); len(hits) != 0 {
		t.Errorf("a link led to %+v", hits)
	}
	hits := l.Search("rest of this line", 5)
	if len(hits) != 1 || !strings.HasPrefix(hits[0].Text, "caf\uFFFD is") {
		t.Errorf("mended is %+v", hits)
	}
	if text := want.String(); links > 0 &&
		text != "3 links or special, 2 hidden, 1 binary, 1 too large" {
		t.Errorf("they are told as %q", text)
	}
	if l := open(t, bm25.Bounds{Files: 1}, dir); l.Skipped().Rest != 3 {
		t.Errorf("beyond one file are %+v", l.Skipped())
	}
	if l := open(t, bm25.Bounds{Bytes: 60}, dir); l.Skipped().Rest == 0 {
		t.Errorf("beyond 60 bytes are %+v", l.Skipped())
	}
}

func TestTextsAreAdded(t *testing.T) {
	l := bm25.New(bm25.Bounds{Files: 3, FileBytes: 20, Bytes: 1000})
	for path, text := range map[string]string{"a": "red apple", "b": "green apple", "c": "blue sky \xff"} {
		if !l.Add(path, text) {
			t.Errorf("%s is not added", path)
		}
	}
	if l.Add("d", "one more") || l.Skipped().Rest != 1 {
		t.Error("a text beyond the bounds is added")
	}
	if l := bm25.New(bm25.Bounds{FileBytes: 5}); l.Add("a", "too long") {
		t.Error("a text that is too long is added")
	}

	hits := l.Search("sky", 5)
	if len(hits) != 1 || hits[0].Path != "c" || hits[0].Text != "blue sky \uFFFD" {
		t.Errorf("%v", hits)
	}
	if hits := l.Search("apple green", 5); len(hits) != 2 || hits[0].Path != "b" {
		t.Errorf("%v", hits)
	}
}

func TestPathsThatCannotBeSearchedAreErrors(t *testing.T) {
	dir := folder(
		t,
		map[string]string{"x/.hidden": "x", "big": strings.Repeat("x", 20), "bin": "\x00\x00\x00"},
	)
	for path, says := range map[string]string{
		"missing": "no such file", "x": "holds no text", "big": "20 bytes, more than 10",
		"bin": "holds no text (files left out so far: 1 binary)",
	} {
		t.Run(path, func(t *testing.T) {
			_, err := bm25.Open(
				t.Context(), []string{filepath.Join(dir, path)}, bm25.Bounds{FileBytes: 10},
			)
			if err == nil || !strings.Contains(err.Error(), says) ||
				!strings.Contains(err.Error(), "cannot search") {
				t.Errorf("%s: %v", path, err)
			}
		})
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	gone := errors.New("gone")
	cancel(gone)
	if _, err := bm25.Open(ctx, []string{dir}, bm25.Bounds{}); !errors.Is(err, gone) {
		t.Errorf("an ended context gives %v", err)
	}
}

func FuzzSearch(f *testing.F) {
	f.Add("one\n\ntwo three\n", "three")
	f.Add("\xff\xfe数据库 openURLFile\r\n", "url 据")
	f.Add(strings.Repeat("a b\n\n", 500), "b")
	f.Fuzz(func(t *testing.T, text, query string) {
		l, err := bm25.Open(
			t.Context(), []string{folder(t, map[string]string{"f.txt": text})}, bm25.Bounds{},
		)
		if err != nil {
			return
		}
		for _, hit := range l.Search(query, 1000) {
			if !(hit.Relevance > 0 && hit.Relevance < 1) || len(hit.Text) > 1600 ||
				!utf8.ValidString(hit.Text) || hit.Line < 1 {
				t.Errorf("%q finds %+v", query, hit)
			}
		}
	})
}

// words returns lines of code and prose that differ in each file.
func words(n int) string {
	var b strings.Builder
	for i := range 200 {
		fmt.Fprintf(
			&b,
			"func handler%d(request%d *Request) error { return store.Save(item%d, \"value %d\") "+
				"}\n",
			i%17, n, i*n%1000, i,
		)
		if i%8 == 0 {
			b.WriteString("\n")
		}
	}
	return b.String()
}

func benchFolder(b *testing.B) string {
	b.Helper()
	files := map[string]string{}
	for i := range 200 {
		files[fmt.Sprintf("pkg%d/file%d.go", i%10, i)] = words(i)
	}
	return folder(b, files)
}

// BenchmarkOpen reads and indexes 200 files of about 16 KB.
func BenchmarkOpen(b *testing.B) {
	dir := benchFolder(b)
	for b.Loop() {
		open(b, bm25.Bounds{}, dir)
	}
}

// BenchmarkSearch searches the files of BenchmarkOpen for a sentence.
func BenchmarkSearch(b *testing.B) {
	l := open(b, bm25.Bounds{}, benchFolder(b))
	for b.Loop() {
		found := l.Search("the handler17 does not return an error when store.Save fails for item42", 3)
		if len(found) == 0 {
			b.Fatal("nothing was found")
		}
	}
}

// TestALongQueryIsCut checks that a long query is cut; otherwise it would take minutes.
func TestALongQueryIsCut(t *testing.T) {
	l := bm25.New(bm25.Bounds{})
	l.Add("a", "an apple and a pear")
	query := strings.Repeat("apple ", 30<<20)
	if hits := l.Search(query+"pear", 1); len(hits) != 1 || hits[0].Relevance != l.Search("apple", 1)[0].Relevance {
		t.Errorf("%v", hits)
	}
}
