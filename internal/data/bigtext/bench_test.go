package bigtext

import (
	"bufio"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

var (
	benchEnglish = strings.Fields(`the of and running singing lines error: file not found in
		configuration Walking through the Building near King street with number 42 and more
		things to be done before 2024-05-17 arrives at once while nobody Looking out saw it`)
	benchOther = strings.Fields(`это пример текста на русском языке для проверки
		这是一个多语言文本 用于测试 速度和正确性 Größe Straße Übung schön über 🎉 👍 é naïve`)
)

// benchFile returns the path of a text in many languages: RLM_BENCH_FILE, or a generated one of
// RLM_BENCH_BYTES bytes (256 MiB).
func benchFile(b *testing.B) string {
	b.Helper()
	if path := os.Getenv("RLM_BENCH_FILE"); path != "" {
		return path
	}
	size := int64(256 << 20)
	if n, err := strconv.ParseInt(os.Getenv("RLM_BENCH_BYTES"), 10, 64); err == nil {
		size = n
	}
	path := filepath.Join(b.TempDir(), "text")
	f, err := os.Create(path)
	if err != nil {
		b.Fatal(err)
	}
	defer f.Close()
	w := bufio.NewWriter(f)
	block := benchBlock()
	for ; size > 0; size -= int64(len(block)) {
		if _, err := w.WriteString(block[:min(size, int64(len(block)))]); err != nil {
			b.Fatal(err)
		}
	}
	if err := w.Flush(); err != nil {
		b.Fatal(err)
	}
	return path
}

func benchBlock() string {
	r := rand.New(rand.NewPCG(1, 1))
	var s strings.Builder
	for s.Len() < 8<<20 {
		words := benchEnglish
		if r.IntN(5) == 0 {
			words = benchOther
		}
		for range 4 + r.IntN(16) {
			s.WriteString(words[r.IntN(len(words))] + " ")
		}
		s.WriteString("\n")
	}
	return s.String()
}

// benchText returns the text with its index built, and its length.
func benchText(b *testing.B) (*Text, int64) {
	b.Helper()
	text := open(b, benchFile(b))
	n, err := text.Len(bg)
	if err != nil {
		b.Fatal(err)
	}
	b.ResetTimer()
	return text, n
}

func BenchmarkIndex(b *testing.B) {
	path := benchFile(b)
	b.ResetTimer()
	for range b.N { // a new mapping each time: the cost for a process that runs once
		text := open(b, path)
		if _, err := text.Len(bg); err != nil {
			b.Fatal(err)
		}
		b.SetBytes(text.Size())
		if err := text.Close(); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkCount(b *testing.B) {
	for _, needle := range []string{"error", "absent needle", "\n", "  "} {
		b.Run(strconv.Quote(needle), func(b *testing.B) {
			text, n := benchText(b)
			b.SetBytes(text.Size())
			for range b.N {
				if _, err := text.Count(bg, []byte(needle), 0, n); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkFind(b *testing.B) {
	text, n := benchText(b)
	b.SetBytes(text.Size())
	for range b.N {
		if at, err := text.Find(bg, []byte("absent needle"), 0, n); err != nil || at >= 0 {
			b.Fatal(at, err)
		}
	}
}

func BenchmarkRFind(b *testing.B) {
	text, n := benchText(b)
	b.SetBytes(text.Size())
	for range b.N {
		if at, err := text.RFind(bg, []byte("absent needle"), 0, n); err != nil || at >= 0 {
			b.Fatal(at, err)
		}
	}
}

func BenchmarkRegexp(b *testing.B) {
	for _, expr := range []string{
		`[A-Z][a-z]+ing\b`, `\d{4}-\d{2}-\d{2}`, `error: \w+`, `\bfound\b`, `\w+`, `(?i)king`,
		`пример|test`,
	} {
		b.Run(expr, func(b *testing.B) {
			text, n := benchText(b)
			re, err := CompileRegexp(b.Context(), expr)
			if err != nil {
				b.Fatal(err)
			}
			b.SetBytes(text.Size())
			count := int64(0)
			for range b.N {
				if count, err = countRegexp(text, re, n); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(count), "matches")
		})
	}
}

func BenchmarkFindRegexp(b *testing.B) {
	for _, expr := range []string{`error: (\w+)`, `absent \w+ needle`} {
		b.Run(expr, func(b *testing.B) {
			text, n := benchText(b)
			re, err := CompileRegexp(b.Context(), expr)
			if err != nil {
				b.Fatal(err)
			}
			for range b.N {
				if _, _, err := text.FindRegexp(bg, re, 0, n, 0, 1000); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkSplitIndex(b *testing.B) {
	for _, s := range []Splitter{
		Lines(), Newlines(), Fields(), Sep([]byte(", ")), Sep([]byte("\n\n")),
	} {
		b.Run(s.String(), func(b *testing.B) {
			text, n := benchText(b)
			b.SetBytes(text.Size())
			for range b.N {
				text.splits.all = nil
				if _, err := text.Parts(bg, s, 0, n); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkSlice1000(b *testing.B) {
	text, n := benchText(b)
	r := rand.New(rand.NewPCG(1, 1))
	for range b.N {
		at := r.Int64N(n - 1000)
		if _, _, err := text.Slice(bg, at, at+1000); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkPart(b *testing.B) {
	for _, s := range []Splitter{Lines(), Newlines(), Fields()} {
		b.Run(s.String(), func(b *testing.B) {
			text, n := benchText(b)
			r := rand.New(rand.NewPCG(1, 1))
			parts, err := text.Parts(bg, s, 0, n)
			if err != nil {
				b.Fatal(err)
			}
			b.ResetTimer()
			for range b.N {
				if _, _, err := partOf(text, s, 0, n, r.Int64N(parts)); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
