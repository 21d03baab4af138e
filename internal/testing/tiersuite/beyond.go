package tiersuite

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/rlmhq/rlm/internal/testing/skip"
	"github.com/rlmhq/rlm/tiers"
)

// testBeyond checks a context from a sparse file of more than 2 GiB.
func (s *suite) testBeyond(t *testing.T) {
	if testing.Short() {
		t.Skip("it reads 3 GiB")
	}
	path := filepath.Join(t.TempDir(), "sparse")
	const size = 3 << 30
	makeSparse(t, path, size, "the tail é")
	box := s.open(t, tiers.Config{
		Inputs: []tiers.Input{openInput(t, path)},
		Limits: tiers.Limits{Memory: 256 << 20, Wall: s.opt.Patience},
	})

	r := box.mustRun(t, `print(context.size, context[-6:], repr(context[2 ** 31 + 5]),
      context.find('tail') == context.size - 6)
try:
    print(len(context) == context.size)
except OverflowError as e:
    print('size' in str(e))
print(context[context.size - 10:context.size - 7],
      context.search('t[a-z]il').start() == context.size - 6, context.count('tail', 2 ** 31))`)

	if want := formatDecimal(size+10) + " tail é '\\x00' True\nTrue\nthe True 1\n"; r.Stdout != want {
		t.Errorf("got %q, want %q", r.Stdout, want)
	}
	if r.Usage.PeakMemory > 64<<20 {
		t.Errorf("the guest used %d MiB for a search", r.Usage.PeakMemory>>20)
	}
}

// wideScript is code that compares CPython's searches in a str with known results. Each pattern
// contains an element that the host's search does not support.
const wideScript = `import io, re
n, text = len(context), context
def raised(f):
    try: return f()
    except (MemoryError, OverflowError) as e: return type(e).__name__
ballast = [1] * 1_000_000
print(isinstance(text, str), n, text.isascii(), text in {1, text}, hash(text) == hash(text))
print([str.find(text, s) - n for s in ("t", "tail")])
print([str.rfind(text, s) - n for s in ("\U0001F600", "tail", "\0", "\0\0")])
print(str.count(text, "t"), str.index(text, "tail", n - 5) - n, "tail" in text, text < "a", text == text[:n])
print([m.span()[0] - n for m in re.compile("(?<=\U0001F600)(t)ai|l(?<!x)").finditer(text, n - 2000)])
print(re.compile(r"\0{3}(?<!x)").match(text, 5).span())
print(raised(text.encode), raised(text.upper), raised(lambda: io.StringIO().write(text)), text.__sizeof__() > 4 * n)
print(len(text[1 << 20:]), text[n // 2:].find("tail") - (n - n // 2), text[::-(n - 1)] == "l\0")`

// testWideBeyond uses a text whose characters occupy more bytes than a signed 32-bit address can
// count.
func (s *suite) testWideBeyond(t *testing.T) {
	skip.Short(t, "it reads 2 GiB")
	path := filepath.Join(t.TempDir(), "wide")
	const size = 540 << 20
	makeSparse(t, path, size, "\U0001F600tail")
	box := s.open(t, tiers.Config{
		Inputs: []tiers.Input{openInput(t, path)},
		Limits: tiers.Limits{Memory: 256 << 20, Wall: s.opt.Patience},
	})

	if r := box.run(t, "print(isinstance(context, str))"); r.Stdout != "True\n" {
		t.Skip("the context is no str in this tier")
	}
	r := box.mustRun(t, wideScript)

	want := fmt.Sprintf("True %d False True True\n", size+5) + `[-4, -4]
[-5, -4, -6, -7]
1 -4 True True True
[-4, -1]
(5, 8)
MemoryError OverflowError MemoryError True
` + fmt.Sprintf("%d -4 True\n", size+5-1<<20)
	if r.Stdout != want {
		t.Errorf("got %q, want %q", r.Stdout, want)
	}
}

// makeSparse creates a file with a hole of size bytes, followed by tail.
func makeSparse(t *testing.T, path string, size int64, tail string) {
	t.Helper()
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	_, err = f.WriteAt([]byte(tail), size)
	if err := errors.Join(err, f.Close()); err != nil {
		t.Skipf("no sparse files here: %v", err)
	}
}
