package wasm

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rlmhq/rlm/internal/data/bigtext"
	"github.com/rlmhq/rlm/tiers"
)

// newLongText returns a text of 9,000,000 characters that take the given number of bytes each in
// CPython.
func newLongText(t *testing.T, width int) *bigtext.Text {
	t.Helper()
	letter := map[int]string{1: "a", 2: "é", 4: "𝄞"}[width]
	if width == 2 {
		letter = "Ω"
	}
	whole := strings.Repeat(letter, 8_999_990) + "0123456789"
	path := filepath.Join(t.TempDir(), "text")
	if err := os.WriteFile(path, []byte(whole), 0o600); err != nil {
		t.Fatal(err)
	}
	text, err := bigtext.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = text.Close() })
	return text
}

func openWithTexts(t *testing.T, e *engine, limits tiers.Limits, widths ...int) *sandbox {
	t.Helper()
	cfg := tiers.Config{Limits: limits}
	for _, width := range widths {
		cfg.Inputs = append(cfg.Inputs, tiers.Input{Name: "text", Text: newLongText(t, width)})
	}
	s, err := open(t.Context(), e, cfg)
	if err != nil {
		t.Fatal(err)
	}
	return s.(*sandbox)
}

const look = "print(isinstance(context, str), len(context), context[::-1][:10])"

const looked = "True 9000000 9876543210\n"

// TestTextsOfEachWidth checks several mapped texts, which C code reads.
func TestTextsOfEachWidth(t *testing.T) {
	s := openWithTexts(t, readyEngine(t), tiers.Limits{}, 1, 2, 4)
	defer s.Close()
	prints(t, s, "import json\nfor c in context_0, context_1, context_2:\n"+
		"    print(ascii(c[0]), json.dumps(c)[-11:-1], hash(c) == hash(c[:1] + c[1:]), end=' ')",
		`'a' 0123456789 True '\u03a9' 0123456789 True '\U0001d11e' 0123456789 True `)
}

// TestEveryLongPartIsAStr checks that every long part of a context is a str, even if the previous
// snippet only sent requests to the host.
func TestEveryLongPartIsAStr(t *testing.T) {
	dir := t.TempDir()
	text := strings.Repeat("one long line ", 1_000_000)
	if err := os.WriteFile(filepath.Join(dir, "long"), []byte("short\n"+text), 0o600); err != nil {
		t.Fatal(err)
	}
	folder, err := bigtext.OpenDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = folder.Close() })

	e := readyEngine(t)
	for _, source := range []string{
		"print(all(type(c).__mro__[-2] is str for c in context.chunks(9_000_000)))",
		"print([isinstance(line, str) for line in context.lines()] == [True, True])",
		"print(isinstance(context.lines()[1], str), len(json.dumps(context.lines()[1])) > 9_000_000 or '')",
		"print('context' in [n for n, v in globals().items() if isinstance(v, str)])",
		"print(isinstance(eval('con' + 'text'), str))",
		"whole = context_0.lines()[0] + '\\n' + context.lines()[1]\n" +
			"print(isinstance(context_1['long'], str), {context_1['long']: 1}[whole])",
	} {
		t.Run(fmt.Sprintf("%.60s", source), func(t *testing.T) {
			whole, err := bigtext.Open(filepath.Join(dir, "long"))
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = whole.Close() })
			s, err := open(t.Context(), e, tiers.Config{Inputs: []tiers.Input{
				{Name: "long", Text: whole}, {Name: "folder", Dir: folder},
			}})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = s.Close() })

			r := runInternal(t, s.(*sandbox), "import json\n"+source)
			if !strings.HasPrefix(r.Stdout, "True") {
				t.Errorf("%s\nprints %q (%s %+v)", source, r.Stdout, r.Status, r.Exception)
			}
		})
	}
}

// TestAChangedFileIsNoStr checks a file that is replaced after the guest has received its length.
func TestAChangedFileIsNoStr(t *testing.T) {
	dir := t.TempDir()
	write := func(letter string, length int) {
		t.Helper()
		next := filepath.Join(dir, ".next")
		if err := os.WriteFile(next, []byte(strings.Repeat(letter, length)), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(next, filepath.Join(dir, "long")); err != nil {
			t.Fatal(err)
		}
	}
	write("a", 9_000_000)
	folder, err := bigtext.OpenDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = folder.Close() })

	s, err := open(t.Context(), readyEngine(t), tiers.Config{Inputs: []tiers.Input{{Name: "folder", Dir: folder}}})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	box := s.(*sandbox)
	prints(t, box, "inside = type(context).__getitem__.__globals__\n"+
		"info = inside['wire'].decode(inside['wire'].text('do0,long'))\nprint(info['chars'])", "9000000\n")

	text, err := folder.Text(t.Context(), "long")
	if err != nil {
		t.Fatal(err)
	}
	if err := text.Close(); err != nil { // as when the session opens many other texts
		t.Fatal(err)
	}
	write("b", 8_500_000)
	r := runInternal(t, box, "print(len(inside['realtexts'].open(info)))")
	if r.Exception == nil || !strings.Contains(r.Exception.Message, "was written to") {
		t.Errorf("prints %q (%s %+v)", r.Stdout, r.Status, r.Exception)
	}
}

// TestATextDoesNotCountAsMemory checks that a memory limit far below the size of the text still
// applies to the snippet's own memory, and that the result reports only that memory.
func TestATextDoesNotCountAsMemory(t *testing.T) {
	s := openWithTexts(t, readyEngine(t), tiers.Limits{Memory: 40 << 20}, 4)
	defer s.Close()
	r := runInternal(t, s, "print(context[-3:], sum(c == '𝄞' for c in context))")
	if r.Stdout != "789 8999990\n" || r.Usage.PeakMemory > 40<<20 {
		t.Errorf("%q, peak %d MiB (%+v)", r.Stdout, r.Usage.PeakMemory>>20, r.Exception)
	}
	if r := runInternal(t, s, "x = bytearray(30 << 20)"); r.Limit != tiers.LimitMemory {
		t.Errorf("30 MiB more: %s %q", r.Status, r.Limit)
	}
	prints(t, s, "print(context[-3:])", "789\n")
}

// TestATextOutlivesItsGuest checks a text after a killed guest restarted from a checkpoint, and in
// a fork of the current state.
func TestATextOutlivesItsGuest(t *testing.T) {
	s := openWithTexts(t, readyEngine(t), tiers.Limits{}, 2)
	defer s.Close()
	prints(t, s, "import itertools\nhalf = context[4_500_000:]\nmine = 5\n"+look, looked)
	if err := s.guest.save(); err != nil {
		t.Fatal(err)
	}

	forked, err := s.Fork(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer forked.Close()
	const compare = "print(mine, half == context[4_500_000:], half.upper()[-3:], half is context)"
	prints(t, forked.(*sandbox), compare, "5 True 789 False\n")

	before := s.guest.in
	runInternal(t, s, "import os\nos._exit(3)")
	if s.guest.in == before {
		t.Fatal("the guest was not replaced")
	}
	prints(t, s, compare, "5 True 789 False\n")
	prints(t, s, look, looked)
}

// TestAContextThatIsAddedLater checks that a long context can be added to a sandbox that had no
// room reserved.
func TestAContextThatIsAddedLater(t *testing.T) {
	s := openInternal(t, readyEngine(t))
	defer s.Close()
	prints(t, s, "kept = 7", "")
	added := []tiers.Input{{Name: "late", Text: newLongText(t, 1)}}
	if err := s.Accounts.Extend(t.Context(), added, nil); err != nil {
		t.Fatal(err)
	}
	prints(t, s, "print(kept)\n"+look, "7\n"+looked)
}

// TestNoTextReachesTheNextSandbox searches all memory that a sandbox receives after one with a
// text. The control finds the text in the first sandbox.
func TestNoTextReachesTheNextSandbox(t *testing.T) {
	e := readyEngine(t)
	first := openWithTexts(t, e, tiers.Limits{}, 1)
	prints(t, first, look, looked)
	if !bytes.Contains(first.guest.in.machine.memory(), []byte(strings.Repeat("a", 1<<20))) {
		t.Fatal("the control does not find the text")
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}

	second := openWithTexts(t, e, tiers.Limits{}, 1)
	defer second.Close()
	if !second.guest.in.machine.grow((256 << 20) / wasmPage) {
		t.Fatal("the memory does not grow")
	}
	if bytes.Contains(second.guest.in.machine.memory()[:256<<20], []byte(strings.Repeat("a", 1<<20))) {
		t.Error("the next sandbox has the text")
	}
}

// TestWritingIntoATextStaysInside checks that a guest that writes into a text changes only its own
// copy, not the file or another sandbox.
func TestWritingIntoATextStaysInside(t *testing.T) {
	e := readyEngine(t)
	text := newLongText(t, 1)
	cfg := tiers.Config{Inputs: []tiers.Input{{Name: "text", Text: text}}}
	var all [2]*sandbox
	for i := range all {
		s, err := open(t.Context(), e, cfg)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = s.Close() })
		all[i] = s.(*sandbox)
		prints(t, all[i], look, looked)
	}

	at := all[0].guest.in.texts[0].at.Start
	copy(all[0].guest.in.mem.bytes()[at:], "broken")
	prints(t, all[0], "print(str.find(context, 'broken'))", "0\n")
	prints(t, all[1], "print(str.find(context, 'broken'), context[:6])", "-1 aaaaaa\n")
	if data, err := text.Raw(0, 6); err != nil || string(data) != "aaaaaa" {
		t.Errorf("the file begins with %q (%v)", data, err)
	}
}

// TestNoTextLiesElsewhere checks that the runner rejects texts that the host has not mapped.
func TestNoTextLiesElsewhere(t *testing.T) {
	s := openWithTexts(t, readyEngine(t), tiers.Limits{}, 1)
	defer s.Close()
	prints(t, s, `print(len(context) and '')
import _rlm
real = type(context)
for kind, address, length, width, ascii in (
    (real, 0, 5, 1, True), (real, 1 << 16, 1 << 30, 4, False), (real, 0xFFFFFFF0, 100, 1, True),
    (real, 1 << 16, -1, 1, True), (real, 1 << 16, 0x7FFFFFFF, 4, False), (real, 1 << 16, 5, 3, False),
    (str, 1 << 16, 5, 1, True), (int, 1 << 16, 5, 1, True), (real, 1 << 16, 5, 2, True),
):
    try:
        print(len(_rlm.text(kind, {}, address, length, width, ascii)))
    except (ValueError, OverflowError) as error:
        print(type(error).__name__, end=' ')
print(type(real('copy')))`,
		"\n"+strings.Repeat("ValueError ", 9)+"<class 'str'>\n")
}
