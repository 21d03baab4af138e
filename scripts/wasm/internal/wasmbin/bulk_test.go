package wasmbin

import (
	"bytes"
	"context"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
)

// bulkPages is the size of bulkModule's memory, in pages: ten parts.
const bulkPages = 10 * bulkPart >> 16

// bulkModule exports copy and fill, each of one instruction, and imports rlm.yield.
func bulkModule() []byte {
	parameters := []byte{opLocalGet, 0, opLocalGet, 1, opLocalGet, 2}
	return slices.Concat(
		[]byte(header),
		section(SectionType, []byte{0x60, 0, 0}, []byte{0x60, 3, TypeI32, TypeI32, TypeI32, 0}),
		section(SectionImport,
			slices.Concat(name("rlm"), name("yield"), []byte{byte(KindFunc), 0})),
		section(SectionFunction, []byte{1}, []byte{1}),
		section(SectionMemory, appendU32([]byte{0}, bulkPages)),
		section(SectionGlobal, []byte{TypeI32, 1, opI32Const, 0, opEnd}),
		section(SectionExport,
			slices.Concat(name("copy"), []byte{byte(KindFunc), 1}),
			slices.Concat(name("fill"), []byte{byte(KindFunc), 2})),
		section(SectionCode,
			function(slices.Concat(parameters, memoryCopy, []byte{opEnd})...),
			function(slices.Concat(parameters, memoryFill, []byte{opEnd})...)),
	)
}

// machine is an instance of a module, with the amounts of fuel at its yields.
type machine struct {
	api.Module
	yields int
}

func start(t *testing.T, wasm []byte) *machine {
	t.Helper()
	ctx := t.Context()
	r := wazero.NewRuntime(ctx)
	t.Cleanup(func() { _ = r.Close(context.Background()) })

	m := &machine{}
	_, err := r.NewHostModuleBuilder("rlm").NewFunctionBuilder().
		WithFunc(func() { m.yields++ }).Export("yield").Instantiate(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if m.Module, err = r.Instantiate(ctx, wasm); err != nil {
		t.Fatal(err)
	}
	return m
}

// startBulk starts bulkModule unchanged, and in a version that counts fuel.
func startBulk(t *testing.T) (plain, counted *machine) {
	t.Helper()
	m, stats, err := parse(t, bulkModule()).AddFuel(Import{"rlm", "yield"})
	if err != nil {
		t.Fatal(err)
	}
	if want := (FuelStats{Functions: 2, Bulk: 2}); stats != want {
		t.Errorf("stats %+v, want %+v", stats, want)
	}
	return start(t, bulkModule()), start(t, m.Encode())
}

func (m *machine) do(name string, args ...uint64) error {
	_, err := m.ExportedFunction(name).Call(context.Background(), args...)
	return err
}

// bytes returns the whole memory.
func (m *machine) bytes() []byte {
	b, _ := m.Memory().Read(0, m.Memory().Size())
	return b
}

// scramble fills two memories with the same random content.
func scramble(random *rand.ChaCha8, a, b *machine) {
	_, _ = random.Read(a.bytes())
	copy(b.bytes(), a.bytes())
}

// TestBulkDoesWhatTheInstructionsDo compares the bytes and the errors with those of the
// instructions themselves, which the module contains before it counts fuel.
func TestBulkDoesWhatTheInstructionsDo(t *testing.T) {
	plain, counted := startBulk(t)
	random := rand.NewChaCha8([32]byte{1})
	scramble(random, plain, counted)
	choose := rand.New(random)

	const size = bulkPages << 16
	edges := []uint32{
		0, 1, bulkPart - 1, bulkPart, bulkPart + 1, 2 * bulkPart, 2*bulkPart + 1, 3*bulkPart - 1,
		size - bulkPart, size - 1, size, size + 1, 1 << 31, math.MaxUint32 - bulkPart, math.MaxUint32,
	}
	pick := func() uint64 {
		if choose.IntN(2) == 0 {
			return uint64(edges[choose.IntN(len(edges))])
		}
		return choose.Uint64N(size / 2)
	}

	trapped, apart := 0, 0
	for range 600 {
		to, from, n := pick(), pick(), pick()
		if choose.IntN(3) == 0 {
			from = max(to, 3000) - choose.Uint64N(3000) // close enough for the ranges to overlap
		}

		for _, name := range []string{"copy", "fill"} {
			want, got := plain.do(name, to, from, n), counted.do(name, to, from, n)
			if (want == nil) != (got == nil) || want != nil && firstLine(want) != firstLine(got) {
				t.Fatalf("%s(%d, %d, %d): %v, want %v", name, to, from, n, got, want)
			}
			if !bytes.Equal(plain.bytes(), counted.bytes()) {
				t.Fatalf("%s(%d, %d, %d): other bytes", name, to, from, n)
			}
			if got != nil {
				trapped++
			} else if n > bulkPart {
				apart++
			}
		}
		if to%7 == 0 {
			scramble(random, plain, counted)
		}
	}
	if trapped < 100 || apart < 100 {
		t.Errorf("%d traps and %d long ones: too few to tell", trapped, apart)
	}
}

func firstLine(err error) string {
	line, _, _ := bytes.Cut([]byte(err.Error()), []byte("\n"))
	return string(line)
}

func TestBulkPaysByLengthAndYieldsBetweenParts(t *testing.T) {
	_, m := startBulk(t)
	fuel := m.ExportedGlobal(FuelGlobal).(api.MutableGlobal)

	for _, name := range []string{"copy", "fill"} {
		t.Run(name, func(t *testing.T) {
			for _, test := range []struct {
				to, from, n uint64
				yields      int
			}{
				{0, 1, 63, 0},
				{0, 1, 64, 0},
				{0, 1, bulkPart, 0},
				{0, 1, bulkPart + 64, 1},
				{0, 1, 8 * bulkPart, 7},
				{1, 0, 8 * bulkPart, 7},
			} {
				fuel.Set(0)
				m.yields = 0
				if err := m.do(name, test.to, test.from, test.n); err != nil {
					t.Fatal(err)
				}
				if got, want := -int64(fuel.Get()), int64(test.n>>bulkUnitBits); got != want {
					t.Errorf("%s %d bytes: %d fuel, want %d", name, test.n, got, want)
				}
				if m.yields != test.yields {
					t.Errorf("%s %d bytes: %d yields, want %d", name, test.n, m.yields, test.yields)
				}
			}
		})
	}
}
