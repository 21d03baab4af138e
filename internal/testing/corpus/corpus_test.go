package corpus_test

import (
	"bytes"
	"errors"
	"io"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/rlmhq/rlm/internal/testing/corpus"
)

// text returns the text for a size and a seed.
func text(t *testing.T, size int64, seed uint64) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := corpus.Write(&b, size, seed, nil); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestWriteGivesExactlyTheSizeInValidUTF8(t *testing.T) {
	for _, size := range []int64{0, 1, 2, 79, 1000, 4096, 1 << 20, 1<<20 + 1, 3<<20 - 5} {
		got := text(t, size, 7)
		if int64(len(got)) != size {
			t.Errorf("asked for %d bytes, got %d", size, len(got))
		}
		if !utf8.Valid(got) {
			t.Errorf("%d bytes are not valid UTF-8", size)
		}
		if size > 0 && got[size-1] != '\n' {
			t.Errorf("%d bytes end in %q, not in a newline", size, got[size-1])
		}
	}
}

func TestWriteDependsOnSeedAndSizeAlone(t *testing.T) {
	const size = 2 << 20
	if !bytes.Equal(text(t, size, 1), text(t, size, 1)) {
		t.Error("two texts of one seed differ")
	}
	if bytes.Equal(text(t, size, 1), text(t, size, 2)) {
		t.Error("two seeds give one text")
	}
}

func TestEverySizeCutsTheSameText(t *testing.T) {
	short, long := text(t, 1<<20, 3), text(t, 4<<20, 3)
	whole := strings.TrimRight(string(short), " \n")
	if !strings.HasPrefix(string(long), whole) {
		t.Error("the shorter text does not begin the longer one")
	}
}

func TestRecordsHaveTheirForm(t *testing.T) {
	header := regexp.MustCompile(
		`^LIB-\d{9} \| \d{4}-\d\d-\d\d \| [^|]+ \| [a-z]{2,3} \| (INFO|WARN|ERROR)$`,
	)
	languages, severities := map[string]int{}, map[string]int{}
	records := strings.Split(strings.TrimSpace(string(text(t, 4<<20, 1))), "\n\n")
	for i, record := range records {
		first, body, found := strings.Cut(record, "\n")
		if !found || body == "" || !header.MatchString(first) {
			t.Fatalf("record %d begins %q", i, first)
		}
		fields := strings.Split(first, " | ")
		languages[fields[3]]++
		severities[fields[4]]++
	}
	if len(languages) < 20 {
		t.Errorf("%d languages, want 20 or more: %v", len(languages), languages)
	}
	for _, s := range []string{"INFO", "WARN", "ERROR"} {
		t.Run(s, func(t *testing.T) {
			if severities[s] < len(records)/50 {
				t.Errorf("%d of %d records are %s", severities[s], len(records), s)
			}
		})
	}
}

func TestTheTextIsMixed(t *testing.T) {
	got := text(t, 4<<20, 1)
	wide := 0
	for _, b := range got {
		if b >= utf8.RuneSelf {
			wide++
		}
	}
	if share := float64(wide) / float64(len(got)); share < 0.2 || share > 0.7 {
		t.Errorf("%.0f%% of the bytes are not ASCII, want 20%% to 70%%", 100*share)
	}
	for _, want := range []string{
		`[a-z.]+\d+@[a-z.]+`, `E-\d{4}\b`, `\d+\.\d\d EUR`, `978-\d-\d{5}-\d{3}-\d`, `\p{Han}`,
		`\p{Arabic}`, `\p{Devanagari}`, `📚`,
	} {
		if !regexp.MustCompile(want).Match(got) {
			t.Errorf("the text holds nothing like %s", want)
		}
	}
	if regexp.MustCompile(`[{}]`).Match(got) {
		t.Error("the text holds a slot that was not filled")
	}
}

func TestTheTextDoesNotRepeatItself(t *testing.T) {
	seen, lines := map[string]bool{}, 0
	for line := range strings.Lines(string(text(t, 8<<20, 1))) {
		if len(line) > 1 {
			lines++
			seen[line] = true
		}
	}
	if share := float64(len(seen)) / float64(lines); share < 0.9 {
		t.Errorf("only %.0f%% of the lines are different", 100*share)
	}
}

func TestProgressRises(t *testing.T) {
	const size = 3<<20 + 11
	var last int64
	err := corpus.Write(io.Discard, size, 1, func(done int64) {
		if done <= last {
			t.Errorf("progress went from %d to %d", last, done)
		}
		last = done
	})
	if err != nil || last != size {
		t.Errorf("progress ended at %d of %d, error %v", last, size, err)
	}
}

var errFull = errors.New("disk full")

// full is a writer that always fails.
type full struct{}

func (full) Write([]byte) (int, error) { return 0, errFull }

func TestWriteReportsWhatWentWrong(t *testing.T) {
	if err := corpus.Write(full{}, 10, 1, nil); !errors.Is(err, errFull) {
		t.Errorf("error %v, want the writer's own", err)
	}
	if err := corpus.Write(io.Discard, -1, 1, nil); err == nil {
		t.Error("a negative size was accepted")
	}
}

func BenchmarkWrite(b *testing.B) {
	const size = 16 << 20
	b.SetBytes(size)
	for b.Loop() {
		if err := corpus.Write(io.Discard, size, 1, nil); err != nil {
			b.Fatal(err)
		}
	}
}
