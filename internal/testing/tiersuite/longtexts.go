package tiersuite

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/rlmhq/rlm/tiers"
)

// LongTexts tests the long texts of a tier whose guests map files of the host, with any CPython. A
// mistake there would change or crash the interpreter.
func LongTexts(t *testing.T, tier tiers.Tier) {
	if runtime.GOOS != "linux" {
		t.Skip("only Linux has links to files without a name")
	}
	s := newSuite(tier, Options{})
	s.requireUsable(t)
	t.Run("Forms", s.testForms)
	t.Run("Reuse", s.testReuse)
	t.Run("Restore", s.testRestoredText)
	t.Run("Memory", s.testTextBeyondMemory)
	t.Run("Files", s.testTextFiles)
}

// formLength is the length in characters of the texts of testForms.
const formLength = 9_000_000

// makeForm returns a text of one letter, with ASCII in its second half.
func makeForm(letter string) []byte {
	return []byte(strings.Repeat(letter, formLength/2) + strings.Repeat("012345678\n", formLength/20))
}

// testForms compares texts in each form that a str can have, and their parts in that form and in a
// narrower one, with a copy.
func (s *suite) testForms(t *testing.T) {
	cfg := tiers.Config{Limits: tiers.Limits{Memory: 1 << 30, Wall: s.opt.Patience}}
	for _, letter := range []string{"z", "é", "Ω", "𝄞"} {
		in, _ := makeFileInput(t, makeForm(letter))
		cfg.Inputs = append(cfg.Inputs, in)
	}

	box := s.open(t, cfg)
	box.mustPrint(t, `import json
for text in context_0, context_1, context_2, context_3:
    n, plain = len(text), "".join(list(text))
    print(isinstance(text, str), type(plain) is str, n, text == plain, plain == text, hash(text) == hash(plain),
          {text: 5}[plain], json.dumps(text)[-6:-1], text.encode() == plain.encode(), text.isascii() == plain.isascii(),
          text.upper() == plain.upper(), "".join(reversed(text)) == plain[::-1], str(text) is text, text[:] is text)
    for a, b in (0, n // 2), (1, n), (n // 2 - 1, n), (n // 2, n), (5, -5), (n // 2 - 70_000, n // 2 + 2_000_000):
        part, copied = text[a:b], plain[a:b]
        if not (part == copied and hash(part) == hash(copied) and part in {copied}
                and part.isascii() == copied.isascii() and part.encode() == copied.encode()
                and part[7:2_000_000] == copied[7:2_000_000]
                and part[-1] == copied[-1] and part[len(part) - 1:] == copied[-1:]):
            print("different", ascii(text[0]), a, b)
    shares = [type(text[a:b]) is type(text) for a, b in ((0, n // 2), (n // 2, n))]
    print(shares == [True, text.isascii()])
`, strings.Repeat(fmt.Sprintf("True True %d True True True 5 678\\n True True True True True True\n"+
		"True\n", formLength), 4))
}

// testReuse makes thousands of parts. The parts that stay in use must not change, and the others
// must not occupy memory permanently.
func (s *suite) testReuse(t *testing.T) {
	in, _ := makeFileInput(t, makeForm("Ω"))
	box := s.open(t, tiers.Config{Inputs: []tiers.Input{in}, Limits: tiers.Limits{Memory: 256 << 20}})
	box.mustPrint(t, `import gc, threading
kept, wrong = {}, []
def work(first):
    for i in range(first, first + 3000):
        part = context[i : i + 2_000_000 + i]
        if len(part) != 2_000_000 + i or part[0] != "Ω" or part._a != i:
            wrong.append(i)
        if i % 100 == 0:
            kept[i] = part
            hash(part)
threads = [threading.Thread(target=work, args=(n * 3000,)) for n in range(3)]
for thread in threads: thread.start()
for thread in threads: thread.join()
print(wrong, len(kept), all(part == context[i : i + 2_000_000 + i] for i, part in kept.items()))
print(sum(type(o) is type(context) for o in gc.get_objects()) < 500)`, "[] 90 True\nTrue\n")
}

// testRestoredText checks a text and a part after the process has ended.
func (s *suite) testRestoredText(t *testing.T) {
	in, _ := makeFileInput(t, makeForm("é"))
	box := s.open(t, tiers.Config{Inputs: []tiers.Input{in}})
	box.mustRun(t, "half = context[:4_500_000]\nmine = len(context)")
	const look = "print(isinstance(context, str), context[-3:], len(half), half[-1], mine)"
	const looked = "True 78\n 4500000 é 9000000\n"
	for range 2 {
		time.Sleep(200 * time.Millisecond) // enough time for the tier to save a copy again
		box.mustPrint(t, look, looked)
		if r := box.run(t, "import ctypes\nctypes.string_at(0)"); r.Status != tiers.StatusCrashed || r.Lost == nil {
			t.Fatal(describe(r))
		}
	}
	box.mustPrint(t, look, looked)
}

// testTextBeyondMemory reads a text from the disk that is larger than the memory that the session's
// processes may use. Reading it must not count
// towards the limit, which must still apply to everything else.
func (s *suite) testTextBeyondMemory(t *testing.T) {
	const size, limit = 160 << 20, 40 << 20
	line := "one line of the text, and the end of it\n"
	in, _ := makeFileInput(t, bytes.Repeat([]byte(line), size/len(line)))
	box := s.open(t, tiers.Config{Inputs: []tiers.Input{in}, Limits: tiers.Limits{Memory: limit}})
	box.mustPrint(t, "print(len(context), context[5])", fmt.Sprintf("%d i\n", size/len(line)*len(line)))
	evict(t, int64(size/len(line)*len(line))+1)

	r := box.mustRun(t, "print(str.count(context, 'end'), str.find(context, 'nothing'))")
	if want := fmt.Sprintf("%d -1\n", size/len(line)); r.Stdout != want || r.Usage.PeakMemory > limit {
		t.Errorf("%q, peak %d MiB", r.Stdout, r.Usage.PeakMemory>>20)
	}
	if r := box.run(t, "x = bytearray(40 << 20)"); r.Limit != tiers.LimitMemory {
		t.Error(describe(r))
	}
	box.mustPrint(t, "print(isinstance(context, str), repr(context[-6:]))", `True 'of it\n'`+"\n")
}

// evict drops the files of texts of the given size from the page cache.
func evict(t *testing.T, size int64) {
	t.Helper()
	evicted := 0
	for _, name := range textFiles(t) {
		f, err := os.Open(name)
		if err != nil {
			continue // from another session, which has ended
		}
		info, err := f.Stat()
		if err == nil && info.Size() == size {
			err = f.Sync() // dirty pages stay
			if err == nil {
				err = dropCache(f)
			}
			evicted++
		}
		if closed := f.Close(); err != nil || closed != nil {
			t.Fatal(err, closed)
		}
	}
	if evicted == 0 {
		t.Fatal("no text is in a file")
	}
}

// textFiles returns the files of the texts of all sessions.
func textFiles(t *testing.T) []string {
	t.Helper()
	all, err := filepath.Glob(filepath.Join(os.TempDir(), "rlm-texts-*", "texts", "*"))
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// testTextFiles runs a snippet that tries, in every possible way, to write to a text that another
// session reads.
func (s *suite) testTextFiles(t *testing.T) {
	in, _ := makeFileInput(t, makeForm("a"))
	var boxes []*session
	for range 2 {
		box := s.open(t, tiers.Config{Inputs: []tiers.Input{in}})
		box.mustPrint(t, "print(len(context), context[:3])", "9000000 aaa\n")
		boxes = append(boxes, box)
	}

	boxes[0].mustPrint(t, `import ctypes, mmap, os
path = "/context/texts/0"
file = os.open(path, os.O_RDONLY)
own = f"/proc/self/fd/{file}"
library = ctypes.CDLL(None, use_errno=True)
address = library.mmap
address.restype = ctypes.c_void_p
def protect():
    page = ctypes.c_void_p(address(None, ctypes.c_size_t(4096), 1, mmap.MAP_SHARED, file, ctypes.c_longlong(0)))
    if library.mprotect(page, ctypes.c_size_t(4096), 3):
        raise PermissionError
for attempt in (
    lambda: open(path, "r+b"), lambda: open(own, "r+b"), lambda: open(path, "ab"), lambda: os.truncate(path, 5),
    lambda: os.truncate(own, 5), lambda: os.chmod(path, 0o777), lambda: os.fchmod(file, 0o777), lambda: os.remove(path),
    lambda: os.rename(path, "/tmp/x"), lambda: os.link(path, "/context/texts/1"), lambda: os.link(path, "/tmp/x"),
    lambda: os.write(file, b"x"), lambda: mmap.mmap(file, 4096, flags=mmap.MAP_SHARED), protect,
    lambda: open("/context/texts/1", "w"), lambda: os.mkdir("/context/texts/x"), lambda: os.utime(path),
    lambda: os.setxattr(path, "user.x", b"x"),
):
    try:
        attempt()
        print("it worked")
    except OSError:
        pass`, "")
	for _, box := range boxes {
		box.mustPrint(t, "print(context[:3], str.count(context, 'a'), context[-1:])", "aaa 4500000 \n\n")
	}
	if r := boxes[0].run(t, `import ctypes, os
words = (ctypes.c_size_t * (str.__basicsize__ // 8)).from_address(id(context))
ctypes.memset(words[len(words) - 1], 120, 3)`); r.Status != tiers.StatusCrashed {
		t.Errorf("a write to the characters did not end the process\n%s", describe(r))
	}
	boxes[1].mustPrint(t, "print(context[:3], str.count(context, 'x'))", "aaa 0\n")
}
