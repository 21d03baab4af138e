//go:build linux && (amd64 || arm64)

package wasm

import (
	"bytes"
	"encoding/binary"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rlmhq/rlm/internal/data/bigtext"
	"github.com/rlmhq/rlm/internal/testing/skip"
	"github.com/rlmhq/rlm/tiers"
)

// exactly exports the state of a session with its pages.
func exactly(t *testing.T, s *sandbox) tiers.State {
	t.Helper()
	state, err := s.ExportExact(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return state
}

// imported opens a session of an engine that continues from a state.
func imported(t *testing.T, e *engine, cfg tiers.Config, state tiers.State) (*sandbox, tiers.Report) {
	t.Helper()
	s := opened(t, e, cfg)
	report, err := s.Import(t.Context(), state)
	if err != nil {
		t.Fatal(err)
	}
	return s, report
}

func opened(t *testing.T, e *engine, cfg tiers.Config) *sandbox {
	t.Helper()
	s, err := open(t.Context(), e, cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s.(*sandbox)
}

// peculiar is a snippet that creates values that no portable state can hold unchanged.
const peculiar = `import io, sys, types
def count():
    for i in range(100): yield i
numbers = count(); next(numbers); next(numbers)
file = io.StringIO('one\ntwo\nthree\n'); file.readline()
double = lambda x: x * factor
factor = 2
made = types.ModuleType('made'); sys.modules['made'] = made
exec('class Box:\n  def __init__(self, n): self.n = n\n  def get(self): return self.n', made.__dict__)
box = made.Box(41)
same = [box, box, file]
`

const lookAtPeculiar = `import made as again
print(next(numbers), file.readline(), double(21), again is made, type(box) is again.Box, box.get(),
      same[0] is same[1] is box, same[2] is file)`

const peculiarLook = "2 two\n 42 True True 41 True True\n"

// TestExactStatesCrossEngines restores each engine's pages in the other engines of this process,
// which have separate images, as the engines of other processes do.
func TestExactStatesCrossEngines(t *testing.T) {
	for _, from := range engines {
		for _, to := range engines {
			t.Run(from+" to "+to, func(t *testing.T) {
				first := opened(t, readyEngineWith(t, from), tiers.Config{})
				runInternal(t, first, peculiar)
				state := exactly(t, first)

				second, report := imported(t, readyEngineWith(t, to), tiers.Config{}, state)
				if !report.Exact || report.Moved == 0 || len(report.Left) > 0 {
					t.Errorf("%+v", report)
				}
				prints(t, second, lookAtPeculiar, peculiarLook)
				prints(t, first, "print(next(numbers))", "2\n")
			})
		}
	}
}

// TestTheSameStateHasTheSameBytes checks that a session that continues from a state and runs
// nothing exports the same bytes.
func TestTheSameStateHasTheSameBytes(t *testing.T) {
	e := readyEngine(t)
	first := opened(t, e, tiers.Config{})
	runInternal(t, first, peculiar)
	state := exactly(t, first)
	second, _ := imported(t, e, tiers.Config{}, state)
	if again := exactly(t, second); !bytes.Equal(again.Data, state.Data) || !bytes.Equal(again.Exact, state.Exact) {
		t.Error("the same state has other bytes")
	}
	for _, s := range []*sandbox{first, second} {
		if again := exactly(t, s); !bytes.Equal(again.Exact, state.Exact) {
			t.Error("the same memory has other bytes")
		}
	}
	prints(t, second, lookAtPeculiar, peculiarLook)
}

// TestAnExactStateGoesOnWithItsRandomNumbers checks that the state of the random module is part of
// an exact state, as of a portable one. The system's random numbers differ in each copy.
func TestAnExactStateGoesOnWithItsRandomNumbers(t *testing.T) {
	e := readyEngine(t)
	first := opened(t, e, tiers.Config{})
	runInternal(t, first, "import random, uuid\nrandom.seed(1)")
	state := exactly(t, first)

	numbers, names := map[string]bool{}, map[string]bool{}
	note := func(s *sandbox) {
		numbers[runInternal(t, s, "print(random.random())").Stdout] = true
		names[runInternal(t, s, "print(uuid.uuid4())").Stdout] = true
	}
	note(first)
	for range 3 {
		s, _ := imported(t, e, tiers.Config{}, state)
		note(s)
	}
	if len(numbers) != 1 || len(names) != 4 {
		t.Errorf("the random numbers %v, of the system %v", numbers, names)
	}
}

// TestAnExactStateIsOneToReturnTo kills the first snippet after an import, and checks that the
// session and its fork have the imported state.
func TestAnExactStateIsOneToReturnTo(t *testing.T) {
	e := readyEngine(t)
	first := opened(t, e, tiers.Config{})
	runInternal(t, first, peculiar)
	second, _ := imported(t, e, tiers.Config{}, exactly(t, first))
	r := runInternal(t, second, "import os; next(numbers); os._exit(1)")
	if r.Lost == nil || !slices.Equal(r.Lost.Snippets, []int{2}) {
		t.Errorf("%+v", r)
	}

	copied, err := second.Fork(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer copied.Close()
	for _, s := range []*sandbox{second, copied.(*sandbox)} {
		prints(t, s, lookAtPeculiar, peculiarLook)
	}
}

// TestAMisfitRestoresTheVariables checks that each difference makes the session continue with the
// portable state, whose report names the lost values.
func TestAMisfitRestoresTheVariables(t *testing.T) {
	text := func(s string) tiers.Input { return tiers.Input{Name: "t", Text: newText(t, s)} }
	cfg := tiers.Config{
		Inputs:    []tiers.Input{text("five."), {Name: "v", Value: tiers.Value("[1]")}},
		Functions: []tiers.Function{{Name: "ask", Doc: "It asks."}},
	}
	e := readyEngine(t)
	first := opened(t, e, cfg)
	runInternal(t, first, "numbers = (n for n in range(3)); next(numbers); short = context; x = 41")
	whole := exactly(t, first)
	head, variables, pages, err := splitExact(whole.Exact)
	if err != nil {
		t.Fatal(err)
	}
	edited := func(edit func(*exactHead)) tiers.State {
		other, state := *head, whole
		other.Pages = slices.Clone(head.Pages)
		edit(&other)
		state.Exact = repack(t, &other, variables, rawPages(t, head, pages))
		return state
	}

	other := func(edit func(*tiers.Config)) tiers.Config {
		c := cfg
		c.Inputs, c.Functions = slices.Clone(cfg.Inputs), slices.Clone(cfg.Functions)
		edit(&c)
		return c
	}
	for name, c := range map[string]struct {
		cfg   tiers.Config
		state tiers.State
		fits  bool
	}{
		"nothing differs":     {cfg, whole, true},
		"written again":       {cfg, edited(func(*exactHead) {}), true},
		"time limit":          {other(func(c *tiers.Config) { c.Limits.Fuel = 1 << 40 }), whole, true},
		"memory limit":        {other(func(c *tiers.Config) { c.Limits.Memory = 256 << 20 }), whole, false},
		"deterministic":       {other(func(c *tiers.Config) { c.Deterministic = true }), whole, false},
		"files":               {other(func(c *tiers.Config) { c.Out = true }), whole, false},
		"text":                {other(func(c *tiers.Config) { c.Inputs[0] = text("FIVE.") }), whole, false},
		"value":               {other(func(c *tiers.Config) { c.Inputs[1].Value = tiers.Value("[2]") }), whole, false},
		"description":         {other(func(c *tiers.Config) { c.Functions[0].Doc = "It pays." }), whole, false},
		"packages":            {other(func(c *tiers.Config) { c.Packages = os.DirFS(t.TempDir()) }), whole, false},
		"interpreter":         {cfg, edited(func(h *exactHead) { h.Module = "another" }), false},
		"image":               {cfg, edited(func(h *exactHead) { h.Image = "another" }), false},
		"no memory":           {cfg, edited(func(h *exactHead) { h.Size = 0 }), false},
		"memory beyond limit": {cfg, edited(func(h *exactHead) { h.Size = 4 << 30 }), false},
		"half a page":         {cfg, edited(func(h *exactHead) { h.Size += pageSize }), false},
		"page outside": {cfg, edited(func(h *exactHead) {
			h.Pages[len(h.Pages)-1] = [2]uint32{1 << 20, 1<<20 + 1}
		}), false},
		"pages twice":    {cfg, edited(func(h *exactHead) { h.Pages[1] = h.Pages[0] }), false},
		"empty run":      {cfg, edited(func(h *exactHead) { h.Pages[0][1] = h.Pages[0][0] }), false},
		"too many pages": {cfg, edited(func(h *exactHead) { h.Pages = h.Pages[1:] }), false},
		"too few pages": {cfg, edited(func(h *exactHead) {
			last := &h.Pages[len(h.Pages)-1]
			last[0]--
		}), false},
		"text in the image": {cfg, edited(func(h *exactHead) {
			h.Texts = []exactText{{End: wasmPage, Length: 1, Width: 1}}
		}), false},
		"text of no input": {cfg, edited(func(h *exactHead) {
			h.Texts = []exactText{{Number: 7, Start: h.Size, End: h.Size + wasmPage, Length: 9, Width: 1}}
			h.Size += wasmPage
		}), false},
	} {
		t.Run(name, func(t *testing.T) {
			s, report := imported(t, e, c.cfg, c.state)
			if report.Exact != c.fits {
				t.Errorf("%+v", report)
			}
			if c.fits {
				prints(t, s, "print(next(numbers), short is context, x)", "1 True 41\n")
				return
			}
			prints(t, s, "try: next(numbers)\n"+
				"except RuntimeError as e: print('left behind' in str(e), short == context, x)", "True True 41\n")
		})
	}
}

func newText(t *testing.T, s string) *bigtext.Text {
	t.Helper()
	path := filepath.Join(t.TempDir(), "t")
	if err := os.WriteFile(path, []byte(s), 0o600); err != nil {
		t.Fatal(err)
	}
	text, err := bigtext.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = text.Close() })
	return text
}

// rawPages returns the pages of an exact state.
func rawPages(tb testing.TB, head *exactHead, packed []byte) []byte {
	tb.Helper()
	size := 0
	for _, run := range head.Pages {
		size += int(run[1]-run[0]) * pageSize
	}
	pages := make([]byte, size)
	if err := unpackPages(pages, packed); err != nil {
		tb.Fatal(err)
	}
	return pages
}

func repack(tb testing.TB, head *exactHead, variables int, pages []byte) []byte {
	tb.Helper()
	exact, err := packExact(head, pages)
	if err != nil {
		tb.Fatal(err)
	}
	return noteVariables(exact, variables)
}

// TestExactStatesHaveLongTexts checks that long texts, including the files of a folder, are mapped
// at the same places, and again when the session returns to its state.
func TestExactStatesHaveLongTexts(t *testing.T) {
	skip.Short(t, "it maps long texts")
	dir := t.TempDir()
	long := []byte(strings.Repeat("line of a file\n", 1_000_000))
	if err := os.WriteFile(filepath.Join(dir, "long"), long, 0o600); err != nil {
		t.Fatal(err)
	}
	folder, err := bigtext.OpenDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = folder.Close() })
	texts := func(width int) tiers.Config {
		return tiers.Config{Inputs: []tiers.Input{
			{Name: "text", Text: newLongText(t, width)}, {Name: "folder", Dir: folder},
		}}
	}

	first := opened(t, readyEngine(t), texts(2))
	runInternal(t, first, "data = bytearray(20 << 20); long = context_1['long']; last = json.dumps(context)[-11:-1]\n"+
		"keys = {context: 1, long: 2}; after = bytearray(b'after') * (1 << 20); numbers = iter([1, 2])")
	state := exactly(t, first)
	head, variables, pages, err := splitExact(state.Exact)
	if err != nil || len(head.Texts) != 2 {
		t.Fatalf("%+v, %v", head, err)
	}

	const lookAgain = "print(len(long), long[-5:], keys[context], keys[context_1['long']], last, " +
		"context[-3:], len(set(after)), json.dumps(context)[-4:-1])"
	const seen = "15000000 file\n 1 2 0123456789 789 5 789\n"
	e := readyEngine(t)
	second, report := imported(t, e, texts(2), state)
	if !report.Exact {
		t.Errorf("%+v", report)
	}
	prints(t, second, lookAgain, seen)
	if r := runInternal(t, second, "import os; os._exit(1)"); r.Lost == nil {
		t.Errorf("%+v", r)
	}
	prints(t, second, lookAgain, seen)

	// States with a page of a text, with a text elsewhere, or with another width do not fit.
	for name, edit := range map[string]func(*exactHead){
		"page of a text": func(h *exactHead) {
			at := uint32(h.Texts[0].Start / pageSize)
			h.Pages = [][2]uint32{{at, at + 1}}
		},
		"text twice": func(h *exactHead) { h.Texts[1] = h.Texts[0] },
		"text twice, elsewhere": func(h *exactHead) {
			again := h.Texts[1]
			again.Start, again.End = h.Size, h.Size+again.End-again.Start
			h.Texts, h.Size = append(h.Texts, again), again.End
		},
		"text is longer": func(h *exactHead) { h.Texts[1].Length++ },
		"text is wider":  func(h *exactHead) { h.Texts[0].Width = 4 },
		"other number":   func(h *exactHead) { h.Texts[0].Number = 1 },
		"less room":      func(h *exactHead) { h.Texts[1].End -= wasmPage },
	} {
		t.Run(name, func(t *testing.T) {
			other := *head
			other.Texts = slices.Clone(head.Texts)
			edit(&other)
			misfit := state
			misfit.Exact = repack(t, &other, variables, rawPages(t, head, pages))
			if name == "page of a text" {
				misfit.Exact = repack(t, &other, variables, make([]byte, pageSize))
			}
			if s, report := imported(t, e, texts(2), misfit); report.Exact {
				t.Errorf("%s: %+v", name, report)
			} else {
				prints(t, s, "print(last, len(after))", "0123456789 5242880\n")
			}
		})
	}
	if _, report := imported(t, e, texts(4), state); report.Exact {
		t.Errorf("other characters: %+v", report)
	}
}

// TestALargeStateIsNotExact checks that the pages are left out if they exceed the bound of a state.
func TestALargeStateIsNotExact(t *testing.T) {
	s := opened(t, readyEngine(t), tiers.Config{})
	runInternal(t, s, "import os\ndata = bytes(b'x' * (mib := 1 << 20)) * 130; numbers = iter([1])")
	state := exactly(t, s)
	if len(state.Exact) > 0 || len(state.Data) < 130<<20 {
		t.Errorf("%d and %d bytes", len(state.Exact), len(state.Data))
	}
}

// TestRestoredMemoryCounts checks that the memory of an imported state counts towards the peak and
// the limit.
func TestRestoredMemoryCounts(t *testing.T) {
	for _, name := range engines {
		t.Run(name, func(t *testing.T) {
			e := readyEngineWith(t, name)
			cfg := tiers.Config{Limits: tiers.Limits{Memory: 160 << 20}}
			first := opened(t, e, cfg)
			runInternal(t, first, "data = b'x' * (80 << 20)")
			second, report := imported(t, e, cfg, exactly(t, first))
			if !report.Exact {
				t.Fatalf("%+v", report)
			}

			if r := runInternal(t, second, "len(data)"); r.Usage.PeakMemory < 80<<20 {
				t.Errorf("a peak of %d bytes", r.Usage.PeakMemory)
			}
			r, err := second.Run(t.Context(), tiers.Job{Source: "more = b'x' * (80 << 20)"})
			if err != nil || r.Status != tiers.StatusLimit || r.Limit != tiers.LimitMemory {
				t.Errorf("%s %s, %v", r.Status, r.Limit, err)
			}
		})
	}
}

// TestHostilePages changes random bytes of a guest's memory, so that it behaves unpredictably in
// each engine. It checks that the host and the next sandbox are unaffected.
func TestHostilePages(t *testing.T) {
	skip.Short(t, "some guests run until a limit of time")
	for _, name := range engines {
		t.Run(name, func(t *testing.T) {
			e := readyEngineWith(t, name)
			cfg := tiers.Config{Limits: tiers.Limits{Fuel: 100_000_000}}
			first := opened(t, e, cfg)
			runInternal(t, first, peculiar)
			state := exactly(t, first)
			head, variables, packed, err := splitExact(state.Exact)
			if err != nil {
				t.Fatal(err)
			}
			pages := rawPages(t, head, packed)

			const seed = 18
			random := rand.New(rand.NewPCG(seed, 0))
			died := 0
			for range 60 {
				hostile := bytes.Clone(pages)
				for range 1 << random.IntN(16) {
					at := random.IntN(len(hostile)/4) * 4
					binary.LittleEndian.PutUint32(hostile[at:], random.Uint32()>>random.IntN(32))
				}
				s, err := open(t.Context(), e, cfg)
				if err != nil {
					t.Fatal(err)
				}
				wild := state
				wild.Exact = repack(t, head, variables, hostile)
				if _, err := s.(*sandbox).Import(t.Context(), wild); err != nil {
					t.Fatal(err)
				}
				r, err := s.Run(t.Context(), tiers.Job{Source: lookAtPeculiar})
				if err != nil || r.Status != tiers.StatusOK {
					died++
				}
				_ = s.Close()
				prints(t, opened(t, e, cfg), "print(6 * 7)", "42\n")
			}
			if died < 10 {
				t.Errorf("only %d of the guests died", died)
			}
		})
	}
}

// TestPagesHaveNoPadding checks that data that no encoder writes is rejected before it takes time.
func TestPagesHaveNoPadding(t *testing.T) {
	encoder, err := pageEncoder()
	if err != nil {
		t.Fatal(err)
	}
	random := rand.NewChaCha8([32]byte{})
	for _, size := range []int{pageSize, packSize - pageSize, packSize, packSize + pageSize, 3 * packSize} {
		pages, again := make([]byte, size), make([]byte, size)
		_, _ = random.Read(pages) // never fails, and the result is incompressible
		packed := bytes.Join(compress(encoder, bytes.Clone(pages)), nil)
		if err := unpackPages(again, packed); err != nil || !bytes.Equal(again, pages) {
			t.Errorf("%d bytes: %v", size, err)
		}

		const skipped = "\x50\x2a\x4d\x18\x00\x00\x00\x00" // an empty frame
		packed = append(bytes.Repeat([]byte(skipped), size/64), packed...)
		if err := unpackPages(again, packed); err == nil {
			t.Errorf("%d bytes: empty frames are skipped", size)
		}
	}
}

// FuzzExact decodes hostile states.
func FuzzExact(f *testing.F) {
	img := &image{size: 4 * wasmPage}
	head := &exactHead{Size: 8 * wasmPage, Pages: [][2]uint32{{1, 3}, {70, 71}}, Texts: []exactText{
		{Number: 1, Start: 5 * wasmPage, End: 6 * wasmPage, Length: 9_000_000, Width: 1},
	}}
	f.Add(repack(f, head, 3, make([]byte, 3*pageSize)))
	f.Add([]byte(exactMagic))
	f.Fuzz(func(t *testing.T, data []byte) {
		head, _, packed, err := splitExact(data)
		if err != nil {
			return
		}
		const limit = 16 * wasmPage
		runs, err := head.checkPlaces(img, limit)
		if err != nil {
			return
		}

		memory := uint64(0)
		for _, run := range runs {
			if run.Start < memory || run.End > head.Size {
				t.Fatalf("%+v", head)
			}
			memory = run.End
			for _, text := range head.Texts {
				if run.Start < text.End && text.Start < run.End {
					t.Fatalf("%+v", head)
				}
			}
		}
		if n := length(runs); n <= limit {
			_, _ = unpackPages(make([]byte, n), packed), copyPages(make([]byte, n), packed)
		}
	})
}
