//go:build linux && (amd64 || arm64)

package aot

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"runtime/pprof"
	"strings"
	"sync"
	"testing"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"golang.org/x/sys/unix"
)

const hostileLimit = 8 * wasmPage // as declared by the module

// hostile is a guest running testdata/hostile.wat, between two inaccessible pages.
type hostile struct {
	*Guest
	program *Program
	region  []byte
	memory  []byte // up to the limit, or only the memory in use if the rest must fault
	told    [][]uint64
	host    func(h *hostile, number int, slots []uint64)

	preempts int
	preempt  func()
}

func loadHostile(tb testing.TB) *Program {
	tb.Helper()
	blob, err := os.ReadFile("testdata/hostile_" + runtime.GOARCH + ".blob")
	if err != nil {
		tb.Fatal(err)
	}
	p, err := Load(blob)
	if err != nil {
		tb.Fatal(err)
	}

	tb.Cleanup(func() {
		if err := p.Close(); err != nil {
			tb.Error(err)
		}
	})
	return p
}

// writeHostile writes the code of the hostile guest to a file in a folder, after a page of zeros.
func writeHostile(t *testing.T, dir string) (head, code []byte, file *os.File) {
	t.Helper()
	blob, err := os.ReadFile("testdata/hostile_" + runtime.GOARCH + ".blob")
	if err != nil {
		t.Fatal(err)
	}
	if head, code, err = Split(blob); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "code")
	if err := os.WriteFile(path, append(make([]byte, codePage), code...), 0o600); err != nil {
		t.Fatal(err)
	}
	if file, err = os.Open(path); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = file.Close() }) // was only read
	return head, code, file
}

// TestCodeOfAFile runs code mapped from a file, and checks that a wrong size is refused.
func TestCodeOfAFile(t *testing.T) {
	head, code, file := writeHostile(t, t.TempDir())
	p, err := LoadFile(head, file, codePage, int64(len(code)))
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	if !bytes.Equal(p.code, code) {
		t.Error("the mapped code is another")
	}
	theirs := loadHostile(t)
	for _, name := range []string{"i32.add", "i32.div_s"} {
		t.Run(name, func(t *testing.T) {
			got, gotErr := newHostile(t, p).run(name, 7, 0)
			want, wantErr := newHostile(t, theirs).run(name, 7, 0)
			if got != want || trapOf(gotErr) != trapOf(wantErr) {
				t.Errorf("%s: %d, %v; want %d, %v", name, got, gotErr, want, wantErr)
			}
		})
	}
	for _, size := range []int64{-1, 0, int64(len(code)) - codePage, int64(len(code)) + codePage} {
		if _, err := LoadFile(head, file, codePage, size); !errors.Is(err, errBlob) {
			t.Errorf("%d bytes: %v", size, err)
		}
	}
}

const hostileBefore = 64 << 10

func newHostile(tb testing.TB, p *Program) *hostile {
	tb.Helper()
	const after = 64 << 10
	flags := unix.MAP_PRIVATE | unix.MAP_ANONYMOUS | unix.MAP_NORESERVE
	length := hostileBefore + max(hostileLimit, int(p.Reach())) + after
	region, err := unix.Mmap(-1, 0, length, unix.PROT_NONE, flags)
	if err != nil {
		tb.Fatal(err)
	}

	h := &hostile{program: p, region: region}
	tb.Cleanup(h.unmap)
	size := uint64(hostileLimit)
	if p.Reach() > 0 {
		size = wasmPage
	}
	if !h.admit(size) {
		tb.Fatal("the memory cannot be made accessible")
	}
	if h.Guest, err = p.NewGuest(region[hostileBefore-StateSize:], wasmPage); err != nil {
		tb.Fatal(err)
	}
	for i := range h.memory {
		h.memory[i] = byte(i*7 + i>>8)
	}

	return h
}

func (h *hostile) unmap() {
	if h.Guest != nil {
		h.Close()
		h.Guest = nil
	}
	_ = unix.Munmap(h.region) // fails if it is already unmapped
	h.region = nil
}

// admit makes size bytes of the memory, and the state, accessible.
func (h *hostile) admit(size uint64) bool {
	h.memory = h.region[hostileBefore : hostileBefore+size]
	part := h.region[hostileBefore-StateSize : hostileBefore+size]
	return unix.Mprotect(part, unix.PROT_READ|unix.PROT_WRITE) == nil
}

// Call is the host of a guest: it records its arguments, or runs the test's function.
func (h *hostile) Call(number int, slots []uint64) {
	h.told = append(h.told, append([]uint64{uint64(number)}, slots...))
	if h.host != nil {
		h.host(h, number, slots)
		return
	}
	slots[0] += 1000
}

func (h *hostile) Grow(pages uint64) bool {
	size := h.Size() + pages*wasmPage
	return size <= hostileLimit && (size <= uint64(len(h.memory)) || h.admit(size))
}

// run calls a function by name.
func (h *hostile) run(name string, params ...uint64) (uint64, error) {
	f, ok := h.program.Export(name)
	if !ok {
		return 0, fmt.Errorf("no function %q", name)
	}

	stack := make([]uint64, max(len(params), 1))
	copy(stack, params)
	err := new(Call).Run(h.Guest, f, stack, h)
	return stack[0], err
}

// oracle is the same guest in wazero.
type oracle struct {
	module api.Module
	told   [][]uint64
}

func newOracle(tb testing.TB) *oracle {
	tb.Helper()
	ctx := context.Background()
	o := &oracle{}
	r := wazero.NewRuntimeWithConfig(ctx, wazero.NewRuntimeConfigCompiler())
	tb.Cleanup(func() { _ = r.Close(ctx) })
	type list = []api.ValueType
	i32, i64, f32, f64 := api.ValueTypeI32, api.ValueTypeI64, api.ValueTypeF32, api.ValueTypeF64
	tell := func(number, params int) api.GoModuleFunc {
		return func(_ context.Context, _ api.Module, stack []uint64) {
			o.told = append(o.told, append([]uint64{uint64(number)}, stack[:params]...))
			stack[0] += 1000
		}
	}
	_, err := r.NewHostModuleBuilder("host").
		NewFunctionBuilder().
		WithGoModuleFunction(tell(1, 4), list{i32, i64, f32, f64}, list{i64}).Export("tell").
		NewFunctionBuilder().
		WithGoModuleFunction(tell(0, 1), list{i32}, list{i32}).Export("again").
		Instantiate(ctx)
	if err != nil {
		tb.Fatal(err)
	}

	source, err := os.ReadFile("testdata/hostile.wasm")
	if err != nil {
		tb.Fatal(err)
	}
	if o.module, err = r.Instantiate(ctx, source); err != nil {
		tb.Fatal(err)
	}

	memory, _ := o.module.Memory().Read(0, wasmPage)
	for i := range memory {
		memory[i] = byte(i*7 + i>>8)
	}
	return o
}

func (o *oracle) run(name string, params ...uint64) (uint64, error) {
	results, err := o.module.ExportedFunction(name).Call(context.Background(), params...)
	if len(results) == 0 {
		return 0, err
	}

	return results[0], err
}

// trapOf returns the first line of an error.
func trapOf(err error) string {
	if err == nil {
		return ""
	}
	line, _, _ := strings.Cut(err.Error(), "\n")
	return line
}

// operands contains the edge cases of each type.
var operands = map[rune][]uint64{
	'i': {
		0, 1, 2, 7, 31, 32, 0x7fff, 0xffff, wasmPage - 8, wasmPage - 4, wasmPage - 2, wasmPage - 1, wasmPage,
		math.MaxInt32, 1 << 31, math.MaxUint32 - 7, math.MaxUint32 - 1, math.MaxUint32,
	},
	'I': {0, 1, 63, 64, math.MaxUint32, 1 << 32, math.MaxInt64, 1 << 63, math.MaxUint64},
	'f': floats32(0, float32(math.Copysign(0, -1)), 0.5, 1.5, 2.5, -1, 1e10, -1e10, 2147483648, 4294967296, 1e20,
		math.MaxFloat32, float32(math.Inf(1)), float32(math.Inf(-1)), float32(math.NaN())),
	'F': floats64(0, math.Copysign(0, -1), 0.5, 1.5, 2.5, -0.9, -1, 2147483647.5, -2147483648.9, 4294967295.9,
		9223372036854775808, -9223372036854775808, 1.8446744073709552e19, 4503599627370495.5, 5e-324,
		math.MaxFloat64, math.Inf(1), math.Inf(-1), math.NaN()),
}

func floats32(xs ...float32) (bits []uint64) {
	for _, x := range xs {
		bits = append(bits, uint64(math.Float32bits(x)))
	}

	return bits
}

func floats64(xs ...float64) (bits []uint64) {
	for _, x := range xs {
		bits = append(bits, math.Float64bits(x))
	}
	return bits
}

// TestEveryInstructionAsInWazero calls each function with edge cases and random numbers, in both
// engines. Results, traps, memory and host calls must agree.
func TestEveryInstructionAsInWazero(t *testing.T) {
	p := loadHostile(t)
	ours, theirs := newHostile(t, p), newOracle(t)
	random := rand.New(rand.NewPCG(3, 4))
	number := func(kind rune) uint64 {
		if random.IntN(3) == 0 {
			n := random.Uint64()
			if kind == 'i' || kind == 'f' {
				n &= math.MaxUint32
			}
			return n
		}
		return operands[kind][random.IntN(len(operands[kind]))]
	}

	calls, traps := 0, map[string]int{}
	for _, f := range p.header.Exports {
		if f.Name == "grow" || f.Name == "deep" || strings.HasPrefix(f.Name, "endless") {
			continue // see below
		}
		for range 400 {
			var params []uint64
			for _, kind := range f.Params {
				params = append(params, number(kind))
			}
			if f.Name == "fill" || f.Name == "copy" {
				params[2] &= 0x1ffff
			}
			got, err := ours.run(f.Name, params...)
			want, theirErr := theirs.run(f.Name, params...)
			if trapOf(err) != trapOf(theirErr) {
				t.Fatalf("%s%x: %v, in wazero %v", f.Name, params, err, trapOf(theirErr))
			}
			calls++
			traps[trapOf(err)]++
			if err == nil && f.Result != "" && !same(rune(f.Result[0]), got, want) {
				t.Fatalf("%s%x = %x, in wazero %x", f.Name, params, got, want)
			}
		}
		memory, _ := theirs.module.Memory().Read(0, wasmPage)
		if !bytes.Equal(ours.memory[:wasmPage], memory) {
			t.Fatalf("after %s the memories differ", f.Name)
		}
	}

	if fmt.Sprint(ours.told) != fmt.Sprint(theirs.told) {
		t.Error("the hosts were told different things")
	}
	if uint64(ours.Fuel()) != theirs.module.ExportedGlobal("fuel").Get() {
		t.Error("the globals differ")
	}

	t.Logf("%d calls, by their traps: %v", calls, traps)
	for _, trap := range []TrapError{1, 2, 3, 4, 5, 6} {
		if traps[trap.Error()] == 0 {
			t.Errorf("no call ended with %q", trap.Error())
		}
	}
}

// same compares results. WebAssembly does not specify which NaN an operation returns.
func same(kind rune, a, b uint64) bool {
	switch kind {
	case 'i':
		return uint32(a) == uint32(b)
	case 'f':
		x, y := math.Float32frombits(uint32(a)), math.Float32frombits(uint32(b))
		return uint32(a) == uint32(b) || x != x && y != y
	case 'F':
		x, y := math.Float64frombits(a), math.Float64frombits(b)
		return a == b || x != x && y != y
	}
	return a == b
}

// TestMemoryGrows grows the memory up to the limit, and checks that accesses then reach the end of
// the memory.
func TestMemoryGrows(t *testing.T) {
	h := newHostile(t, loadHostile(t))
	for pages := uint64(1); pages <= 8; pages++ {
		if n, err := h.run("size"); err != nil || n != pages {
			t.Fatalf("the size is %d (%v), want %d", n, err, pages)
		}
		if _, err := h.run("i64.store +0", pages*wasmPage-8, 5); err != nil {
			t.Errorf("the last word of page %d: %v", pages, err)
		}
		if _, err := h.run("i64.store +0", pages*wasmPage-7, 5); !errors.Is(err, TrapError(1)) {
			t.Errorf("beyond the last word of page %d: %v", pages, err)
		}
		want := pages
		if pages == 8 {
			want = math.MaxUint32
		}
		if n, err := h.run("grow", 1); err != nil || n != want {
			t.Errorf("grow returned %d (%v), want %d", n, err, want)
		}
	}

	for _, pages := range []uint64{1 << 15, 1 << 16, math.MaxUint32} {
		if n, err := h.run("grow", pages); err != nil || n != math.MaxUint32 {
			t.Errorf("grow by %d returned %d (%v)", pages, n, err)
		}
	}
}

// TestHostFunctionsPanic ends a call with a panic of the host, and checks that other calls
// continue.
func TestHostFunctionsPanic(t *testing.T) {
	h := newHostile(t, loadHostile(t))
	failed := errors.New("failed")
	for _, what := range []any{failed, "text"} {
		h.host = func(*hostile, int, []uint64) { panic(what) }
		if _, err := h.run("again", 1); err == nil || what == any(failed) && !errors.Is(err, failed) {
			t.Errorf("after panic(%v): %v", what, err)
		}
	}
	h.host = nil
	if n, err := h.run("again", 1); err != nil || n != 1002 {
		t.Errorf("the next call: %d, %v", n, err)
	}
}

// TestCallsNest makes host functions call the same guest again. Each call must have its own stack.
func TestCallsNest(t *testing.T) {
	h := newHostile(t, loadHostile(t))
	h.host = func(h *hostile, _ int, slots []uint64) {
		if slots[0] < 50 {
			n, err := h.run("again", slots[0]+1)
			if err != nil {
				panic(err)
			}
			slots[0] = n
		}
	}

	if n, err := h.run("again", 0); err != nil || n != 50+51 {
		t.Errorf("nested calls returned %d, %v", n, err)
	}
}

// TestNeighbours runs hostile and good guests side by side on many goroutines, while the garbage
// collector works and Go's own faults and preemptions arrive. The good guests must be unaffected.
func TestNeighbours(t *testing.T) {
	p := loadHostile(t)
	if err := pprof.StartCPUProfile(io.Discard); err != nil { // its signals hit guests, too
		t.Fatal(err)
	}
	defer pprof.StopCPUProfile()
	stop := make(chan struct{})
	var collector, group sync.WaitGroup
	collector.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
				runtime.GC()
				func() {
					defer func() { _ = recover() }()
					var nothing *int
					*nothing = 1 //nolint:govet // Go's own fault is wanted
				}()
			}
		}
	})
	for i := range 16 {
		h := newHostile(t, p)
		group.Go(func() {
			const scratch = 32 // the recursive functions write here
			before := bytes.Clone(h.memory[scratch:])
			for round := range uint64(12) {
				if i%2 == 0 {
					_, err := h.run([]string{"endless", "unreachable", "i32.load +4294967295"}[round%3], round)
					if _, isTrap := errors.AsType[TrapError](err); !isTrap {
						t.Errorf("a hostile guest: %v", err)
					}
					continue
				}
				if n, err := h.run("deep", 20_000); err != nil || n != 20_000 {
					t.Errorf("a good guest: %d, %v", n, err)
				}
				if n, err := h.run("tell", round, 1, 2, 3); err != nil || n != round+1000 {
					t.Errorf("a good guest: %d, %v", n, err)
				}
			}
			if !bytes.Equal(before, h.memory[scratch:]) {
				t.Error("a memory has changed")
			}
		})
	}

	group.Wait()
	close(stop)
	collector.Wait()
}

// TestDamagedBlobs changes the header of a blob. Load must refuse the blob, or its code must never
// be reached.
func TestDamagedBlobs(t *testing.T) {
	h, code, err := decode(mustRead(t, "testdata/hostile_"+runtime.GOARCH+".blob"))
	if err != nil {
		t.Fatal(err)
	}
	for name, damage := range map[string]func(*Header){
		"another machine":        func(h *Header) { h.Machine = "mips" },
		"a size":                 func(h *Header) { h.Size += codePage },
		"an address":             func(h *Header) { h.Begin = h.Size },
		"an export in constants": func(h *Header) { h.Exports = []Export{{Address: 0}} },
		"a field":                func(h *Header) { h.Bytes = contextAt },
		"a segment": func(h *Header) {
			h.Segments = []Segment{{Offset: 0, Size: h.Size + codePage, IsExecutable: true}}
		},
		"overlapping segments": func(h *Header) { h.Segments = append(h.Segments, h.Segments[0]) },
	} {
		t.Run(name, func(t *testing.T) {
			changed := h
			damage(&changed)
			blob, err := Encode(changed, code)
			if err != nil {
				t.Fatal(err)
			}
			if p, err := Load(blob); err == nil {
				t.Errorf("a blob with %s was loaded", name)
				_ = p.Close()
			}
		})
	}

	for _, blob := range [][]byte{nil, {1}, {255, 255, 255, 255, 1}, []byte("\x02\x00\x00\x00{}")} {
		if _, err := Load(blob); err == nil {
			t.Errorf("%q was loaded", blob)
		}
	}
}

func mustRead(t *testing.T, path string) []byte {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// BenchmarkHostCall measures a host call and its return.
func BenchmarkHostCall(b *testing.B) {
	h := newHostile(b, loadHostile(b))
	h.host = func(*hostile, int, []uint64) {}
	f, _ := h.program.Export("again")
	call, stack := new(Call), []uint64{0}
	b.ReportAllocs()
	for b.Loop() {
		h.told = h.told[:0]
		if err := call.Run(h.Guest, f, stack, h); err != nil {
			b.Fatal(err)
		}
	}
}
