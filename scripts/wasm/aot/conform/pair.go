//go:build linux && (amd64 || arm64)

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"golang.org/x/sys/unix"

	"github.com/rlmhq/rlm/internal/machine/aot"
	"github.com/rlmhq/rlm/scripts/wasm/internal/wasmbin"
)

const (
	wasmPage = 64 << 10
	// space is the range that a 32-bit address plus offset can reach; beyond the memory, it
	// faults.
	space  = 8<<30 + wasmPage
	before = 64 << 10
)

// pair is one module in both engines. Every call runs in both.
type pair struct {
	program   *aot.Program
	guest     *aot.Guest
	region    []byte
	most      uint64 // pages
	hasMemory bool
	exports   []wasmbin.Export
	runtime   wazero.Runtime
	theirs    api.Module
	told      [2]maphash.Hash // hashes of the calls to the host
}

// openPair loads the module at a path without its extension. original is the module with its data.
// The module's memory in wazero becomes the image of our module.
func openPair(ctx context.Context, path, original string) (*pair, error) {
	blob, err := os.ReadFile(path + ".blob")
	if err != nil {
		return nil, err
	}
	source, err := os.ReadFile(original)
	if err != nil {
		return nil, err
	}
	m, err := wasmbin.Parse(source)
	if err != nil {
		return nil, err
	}

	p := &pair{
		runtime:   wazero.NewRuntimeWithConfig(ctx, wazero.NewRuntimeConfigCompiler()),
		hasMemory: m.Section(wasmbin.SectionMemory) != nil,
	}
	if p.exports, err = m.Exports(); err != nil {
		return nil, err
	}
	seed := maphash.MakeSeed()
	p.told[0].SetSeed(seed)
	p.told[1].SetSeed(seed)

	if err = p.openTheirs(ctx, source); err == nil {
		err = p.openOurs(blob)
	}

	if err != nil {
		return nil, errors.Join(err, p.close(ctx))
	}
	return p, nil
}

func (p *pair) openTheirs(ctx context.Context, source []byte) error {
	compiled, err := p.runtime.CompileModule(ctx, source)
	if err != nil {
		return err
	}

	hosts := map[string]wazero.HostModuleBuilder{}
	for _, f := range compiled.ImportedFunctions() {
		module, name, _ := f.Import()
		if hosts[module] == nil {
			hosts[module] = p.runtime.NewHostModuleBuilder(module)
		}
		params, results := f.ParamTypes(), f.ResultTypes()
		answer := func(_ context.Context, stack []uint64) {
			stack = stack[:max(len(params), len(results))]
			for i, kind := range params {
				if is32(kind) {
					stack[i] &= math.MaxUint32 // the upper half remains from other numbers
				}
			}
			tell(&p.told[1], name, stack, len(params), len(results) > 0 && is32(results[0]))
		}
		hosts[module].NewFunctionBuilder().WithGoFunction(api.GoFunc(answer), params, results).Export(name)
	}

	for _, host := range hosts {
		if _, err := host.Instantiate(ctx); err != nil {
			return err
		}
	}
	config := wazero.NewModuleConfig().WithName("").WithStartFunctions()
	if p.theirs, err = p.runtime.InstantiateModule(ctx, compiled, config); err != nil {
		return err
	}
	if !p.hasMemory {
		return nil
	}

	p.most = 1 << 16
	if most, ok := p.theirs.Memory().Definition().Max(); ok {
		p.most = uint64(most)
	}
	return nil
}

func (p *pair) openOurs(blob []byte) (err error) {
	if p.program, err = aot.Load(blob); err != nil {
		return err
	}
	flags := unix.MAP_PRIVATE | unix.MAP_ANONYMOUS | unix.MAP_NORESERVE
	if p.region, err = unix.Mmap(-1, 0, before+space, unix.PROT_NONE, flags); err != nil {
		return err
	}

	var image []byte
	if p.hasMemory {
		memory := p.theirs.Memory()
		image, _ = memory.Read(0, memory.Size())
	}
	state := p.region[before-aot.StateSize:]
	err = unix.Mprotect(state[:aot.StateSize+len(image)], unix.PROT_READ|unix.PROT_WRITE)
	if err != nil {
		return err
	}

	copy(p.region[before:], image)
	p.guest, err = p.program.NewGuest(state, uint64(len(image)))
	return err
}

func (p *pair) close(ctx context.Context) error {
	err := p.runtime.Close(ctx)
	if p.guest != nil {
		p.guest.Close()
	}
	if p.region != nil {
		err = errors.Join(err, unix.Munmap(p.region))
	}
	if p.program != nil {
		err = errors.Join(err, p.program.Close())
	}
	return err
}

func is32(kind api.ValueType) bool { return kind == api.ValueTypeI32 || kind == api.ValueTypeF32 }

// tell records a call to the host, and returns a result that depends on the parameters.
func tell(told *maphash.Hash, name string, stack []uint64, params int, isResult32 bool) {
	fmt.Fprintln(told, name, stack[:params])
	result := uint64(len(name))
	for _, n := range stack[:params] {
		result = result*31 + n
	}

	if isResult32 {
		result &= math.MaxUint32
	}
	if len(stack) > 0 {
		stack[0] = result
	}
}

// Call answers a call of our guest.
func (p *pair) Call(number int, slots []uint64) {
	f := p.program.Imports()[number]
	for i, kind := range f.Params {
		if kind == 'i' || kind == 'f' {
			slots[i] &= math.MaxUint32
		}
	}
	tell(&p.told[0], f.Name, slots, len(f.Params), f.Result == "i" || f.Result == "f")
}

// Preempt lets the guest continue.
func (p *pair) Preempt() {}

// Grow makes more of the region writable.
func (p *pair) Grow(pages uint64) bool {
	size := p.guest.Size()
	if size/wasmPage+pages > p.most {
		return false
	}

	if pages == 0 {
		return true
	}
	end := before + size + pages*wasmPage
	return unix.Mprotect(p.region[before:end], unix.PROT_READ|unix.PROT_WRITE) == nil
}

// outcome is the result of a call in one engine.
type outcome struct {
	result uint64
	trap   string // empty if the call returned
}

// number returns the name of an export in our engine; see wasmbin.AsGuest.
func (p *pair) number(name string) string {
	return strconv.Itoa(slices.IndexFunc(p.exports, func(e wasmbin.Export) bool { return e.Name == name }))
}

// call calls a function in both engines, and returns an error if they differ. After some traps, it
// does not compare the memories; see mayDiffer.
func (p *pair) call(ctx context.Context, name string, params []uint64) (outcome, error) {
	f, ok := p.program.Export(p.number(name))
	if !ok {
		return outcome{}, fmt.Errorf("the machine code has no function %q", name)
	}

	stack := make([]uint64, max(len(params), 1))
	copy(stack, params)
	err := new(aot.Call).Run(p.guest, f, stack, p)
	ours := outcome{stack[0], trapOf(err)}

	theirs := outcome{}
	results, err := p.theirs.ExportedFunction(name).Call(ctx, params...)
	theirs.trap = trapOf(err)
	if len(results) > 0 {
		theirs.result = results[0]
	}

	switch {
	case ours.trap != theirs.trap:
		return ours, fmt.Errorf("trap %q, in wazero %q", ours.trap, theirs.trap)
	case ours.trap != "" || f.Result == "":
	case !isSame(f.Result, ours.result, theirs.result):
		return ours, fmt.Errorf("result %#x, in wazero %#x", ours.result, theirs.result)
	}
	if p.mayDiffer(ours) {
		return ours, nil
	}
	return ours, p.compareState()
}

const (
	overflow    = "stack overflow"
	outOfBounds = "out of bounds memory access"
)

// mayDiffer reports whether the state may differ from wazero's. The engines have different limits
// of recursion. If a fault serves as the check of an access, clang may have moved a store across
// the access.
func (p *pair) mayDiffer(end outcome) bool {
	return end.trap == overflow || end.trap == outOfBounds && p.program.Reach() > 0
}

// trapOf returns the first line of an error, without wazero's prefix.
func trapOf(err error) string {
	if err == nil {
		return ""
	}
	line, _, _ := strings.Cut(err.Error(), "\n")
	return strings.TrimPrefix(line, "wasm error: ")
}

// isSame compares results. WebAssembly leaves open which NaN an operation returns.
func isSame(kind string, a, b uint64) bool {
	switch kind {
	case "i":
		return uint32(a) == uint32(b)
	case "f":
		x, y := math.Float32frombits(uint32(a)), math.Float32frombits(uint32(b))
		return uint32(a) == uint32(b) || x != x && y != y
	case "F":
		x, y := math.Float64frombits(a), math.Float64frombits(b)
		return a == b || x != x && y != y
	}
	return a == b
}

// compareState compares memories, exported globals, and the calls that the hosts received.
func (p *pair) compareState() error {
	if p.told[0].Sum64() != p.told[1].Sum64() {
		return errors.New("the hosts were told different things")
	}
	if p.hasMemory {
		memory := p.theirs.Memory()
		if uint64(memory.Size()) != p.guest.Size()&math.MaxUint32 {
			return fmt.Errorf("memory of %d bytes, in wazero %d", p.guest.Size(), memory.Size())
		}
		theirs, _ := memory.Read(0, memory.Size())
		if !bytes.Equal(p.region[before:before+len(theirs)], theirs) {
			return errors.New("the memories differ")
		}
	}

	for _, e := range p.exports {
		if e.Kind != wasmbin.KindGlobal {
			continue
		}
		if ours, theirs, err := p.global(e.Name); err != nil {
			return err
		} else if ours != theirs {
			return fmt.Errorf("global %q is %#x, in wazero %#x", e.Name, ours, theirs)
		}
	}
	return nil
}

// global reads a global in both engines.
func (p *pair) global(name string) (ours, theirs uint64, err error) {
	offset, ok := p.program.Global(p.number(name))
	global := p.theirs.ExportedGlobal(name)
	if !ok || global == nil {
		return 0, 0, fmt.Errorf("no global %q", name)
	}
	if is32(global.Type()) {
		return uint64(*p.guest.Word(offset)), global.Get() & math.MaxUint32, nil
	}
	return *p.guest.Field(offset), global.Get(), nil
}
