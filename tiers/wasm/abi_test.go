package wasm

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"

	"github.com/rlmhq/rlm/internal/snippet/session"
	"github.com/rlmhq/rlm/internal/testing/skip"
	"github.com/rlmhq/rlm/internal/testing/testcache"
	"github.com/rlmhq/rlm/tiers"
)

// readyEngine prepares a tier from the tests' cache, with the engine under test.
func readyEngine(t *testing.T) *engine {
	t.Helper()
	return readyEngineWith(t, os.Getenv("RLM_ENGINE"))
}

func readyEngineWith(t *testing.T, name string) *engine {
	t.Helper()
	tier := New(Options{CacheDir: testcache.Dir(), Engine: name}).(*tier)
	t.Cleanup(func() {
		if err := tier.Close(); err != nil {
			t.Error(err)
		}
	})
	e, err := tier.prepare(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// hostileGuest is a module that passes its arguments on to the host's functions. Unlike CPython,
// it can pass any address and any length.
type hostileGuest struct {
	*instance
	imports []api.FunctionDefinition
}

const hostileMemory = 64 << 10

// newHostileGuest returns a guest with the same imports as CPython.
func newHostileGuest(t *testing.T, cfg tiers.Config) *hostileGuest {
	t.Helper()
	imports := readyEngineWith(t, engineWazero).program.(wazeroProgram).Module.ImportedFunctions()
	ctx := t.Context()
	runtime := wazero.NewRuntime(ctx)
	e := &engine{idle: newIdleList(), program: &wazeroProgram{}}
	t.Cleanup(func() { _ = runtime.Close(context.Background()) })
	accounts, err := session.NewAccounts(ctx, cfg)
	err = errors.Join(err, importForWazero(ctx, runtime))
	if err == nil {
		err = accounts.Begin(ctx, tiers.Job{})
	}
	if err != nil {
		t.Fatal(err)
	}

	in := &instance{
		engine: e, accounts: accounts, watch: &memoryWatch{}, deterministic: cfg.Deterministic,
	}
	compiled, err := runtime.CompileModule(ctx, assemble(imports))
	if err != nil {
		t.Fatal(err)
	}
	module, err := runtime.InstantiateModule(ctx, compiled, wazeroConfig(in))
	if err != nil {
		t.Fatal(err)
	}
	in.machine = newWazeroMachine(in, module)

	return &hostileGuest{in, imports}
}

// assemble returns a WebAssembly module with a page of memory, and a function for each import
// that calls the import with its own parameters.
func assemble(imports []api.FunctionDefinition) []byte {
	number := func(n int) []byte { return binary.AppendUvarint(nil, uint64(n)) }
	list := func(items [][]byte) []byte {
		return append(number(len(items)), bytes.Join(items, nil)...)
	}
	text := func(s string) []byte { return append(number(len(s)), s...) }
	var types, imported, functions, exports, bodies [][]byte
	thread := 0 // the guest's thread function, it returns an error number
	for i, f := range imports {
		module, name, _ := f.Import()
		if name == "fd_close" {
			thread = len(imports) + i
		}
		types = append(types, slices.Concat(
			[]byte{0x60}, text(string(f.ParamTypes())), text(string(f.ResultTypes())),
		))
		imported = append(imported, slices.Concat(text(module), text(name), []byte{0}, number(i)))
		functions = append(functions, number(i))
		exports = append(exports, slices.Concat(text(name), []byte{0}, number(len(imports)+i)))

		body := []byte{0} // no locals
		for p := range f.ParamTypes() {
			body = append(append(body, 0x20), number(p)...)
		}
		body = slices.Concat(body, []byte{0x10}, number(i), []byte{0x0b})
		bodies = append(bodies, append(number(len(body)), body...))
	}
	exports = append(exports,
		append(text("memory"), 2, 0), append(text("fuel"), 3, 0),
		append(text("__stack_pointer"), 3, 1), slices.Concat(text("thread"), []byte{0}, number(thread)),
	)

	module := []byte("\x00asm\x01\x00\x00\x00")
	for _, s := range []struct {
		id      byte
		content []byte
	}{
		{1, list(types)},
		{2, list(imported)},
		{3, list(functions)},
		{5, []byte{1, 1, 1, 1}},
		{6, []byte{2, api.ValueTypeI64, 1, 0x42, 0, 0x0b, api.ValueTypeI32, 1, 0x41, 0, 0x0b}},
		{7, list(exports)},
		{10, list(bodies)},
	} {
		module = slices.Concat(module, []byte{s.id}, number(len(s.content)), s.content)
	}
	return module
}

// pass calls a host function from the guest.
func (g *hostileGuest) pass(t *testing.T, name string, args ...uint64) ([]uint64, error) {
	t.Helper()
	function := g.machine.function(name)
	g.threads.begin(function)
	stack := append(slices.Clone(args), 0)
	err := function.call(t.Context(), stack)
	return stack, errors.Join(err, g.threads.end())
}

// ask sends a request of the session's protocol. failed reports that the host refused it.
func (g *hostileGuest) ask(t *testing.T, request string) (length uint64, failed bool) {
	t.Helper()
	copy(g.machine.memory(), request)
	packed, err := g.pass(t, "call", 0, uint64(len(request)))
	if err != nil {
		t.Fatalf("%.40q: %v", request, err)
	}
	return uint64(uint32(packed[0])), packed[0]&replyFailed != 0
}

func hostileConfig() tiers.Config {
	return tiers.Config{
		Inputs: []tiers.Input{{Name: "context", Text: strings.NewReader("hello world")}},
		Host: tiers.HostFunc(func(context.Context, tiers.Call) (tiers.Value, error) {
			return tiers.Value("1"), nil
		}),
		Functions: []tiers.Function{{Name: "ask"}},
	}
}

// TestAddressesOutsideTheMemory passes requests and buffers outside the guest's memory. It checks
// that the host stops the guest without reading or writing there. Each row has a control that
// differs only in its numbers.
func TestAddressesOutsideTheMemory(t *testing.T) {
	skip.UnderRace(t)
	const size = hostileMemory
	g := newHostileGuest(t, hostileConfig())
	for _, args := range [][2]uint64{
		{size, 1},
		{size - 1, 2},
		{0, size + 1},
		{1, math.MaxUint32},
		{math.MaxUint32, 1},
		{math.MaxUint32, math.MaxUint32},
		{1 << 31, 1 << 31},
	} {
		if _, err := g.pass(t, "call", args[0], args[1]); !errors.Is(err, errBadPointer) {
			t.Errorf("call%v: %v", args, err)
		}
		n, failed := g.ask(t, "ts0,0,5")
		if failed || n != 5 {
			t.Fatalf("the control has %d bytes, failed: %v", n, failed)
		}
		if _, err := g.pass(t, "take", args[0], args[1]); !errors.Is(err, errBadPointer) {
			t.Errorf("take%v: %v", args, err)
		}
	}

	const sha256, state, blocks = 3, 32, 4 // the length of the state, the number of blocks
	for _, args := range [][4]uint64{
		{sha256, size - state + 1, 0, blocks},
		{sha256, size, 0, blocks},
		{sha256, math.MaxUint32, 0, blocks},
		{sha256, 0, size - 64*blocks + 1, blocks},
		{sha256, 0, math.MaxUint32, 1},
		{sha256, 0, 1, math.MaxUint32},
		{sha256, 0, 64, 1 << 26}, // times 64 is 0 in 32 bits
	} {
		if _, err := g.pass(t, "hash", args[:]...); !errors.Is(err, errBadPointer) {
			t.Errorf("hash%v: %v", args, err)
		}
	}
	if _, err := g.pass(t, "hash", 5, 0, 0, blocks); !errors.Is(err, errNoHash) {
		t.Errorf("an unknown hash: %v", err)
	}
	done, err := g.pass(t, "hash", sha256, size-state, size-64*blocks, blocks)
	if err != nil || done[0] != blocks {
		t.Errorf("the control hashed %d blocks: %v", done[0], err)
	}
	if done, err := g.pass(t, "hash", sha256, 0, 0, math.MaxUint32); err != nil || done[0] != hashPart/64 {
		t.Errorf("one call hashed %d blocks: %v", done[0], err)
	}

	for _, length := range []uint64{1, 4, 6, size} {
		g.ask(t, "ts0,0,5")
		if _, err := g.pass(t, "take", 0, length); !errors.Is(err, errBadPointer) {
			t.Errorf("taking %d bytes of 5: %v", length, err)
		}
	}

	g.ask(t, "ts0,0,5")
	if _, err := g.pass(t, "take", size-5, 5); err != nil {
		t.Fatalf("the control: %v", err)
	}
	if got, _ := g.view(size-5, 5); string(got) != "hello" {
		t.Errorf("the control took %q", got)
	}
	if _, err := g.pass(t, "take", 0, 5); !errors.Is(err, errBadPointer) {
		t.Errorf("taking an answer twice: %v", err)
	}
}

// TestMalformedRequests sends invalid numbers, and requests that end too early. It checks that the
// host rejects each and continues. The first row of a group is its control.
func TestMalformedRequests(t *testing.T) {
	g := newHostileGuest(t, hostileConfig())
	for _, group := range [][]string{
		{"z0", "z", "zNaN", "z-1", "z1e3", "z0x1", "z99999999999999999999", "z\xff", "z0,0"},
		{"ts0,0,5", "ts", "ts0", "ts0,0", "tsNaN,0,5", "ts0,NaN,5", "ts0,5,0", "ts-1,0,5", "ts9,0,5"},
		{"ts0,0,5", "ts0,0,99", "ts0,-1,5", "ts0,0,9223372036854775808", "ts4294967296,0,5", "t", "tq0"},
		{"cask\x00[[],{}]", "c", "cask", "cask\x00", "cask\x00[NaN]", "cask\x00[[NaN],{}]", "cask\x00{}"},
		{"cask\x00[[1],{}]", "cnone\x00[[],{}]", "cask\x00[[Infinity],{}]", "cask\x00[[1],{}", "c\x00[[],{}]"},
		{`f{"value":1}`, "f", "fNaN", `f{"value":NaN}`, `f{"value":1`, "f[]"},
		{"i", "", "?", "\x00", "\xff\xff", "xNaN", "wNaN", "w", "jNaN", "j-1", "dl7", "do", "n?"},
	} {
		t.Run(fmt.Sprintf("%.60q", group), func(t *testing.T) {
			if _, failed := g.ask(t, group[0]); failed {
				t.Errorf("the control %q was refused", group[0])
			}
			for _, request := range group[1:] {
				if _, failed := g.ask(t, request); !failed {
					t.Errorf("%q was answered", request)
				}
			}
		})
	}
}

// TestAnyNumbersToAnyHostFunction calls each of CPython's imports with edge values. It checks that
// each call returns or ends the guest, without a fault in the host's code, and that the host still
// answers. wazero's fd_filestat_set_times is the control: os.utime(1) made it panic.
func TestAnyNumbersToAnyHostFunction(t *testing.T) {
	g := newHostileGuest(t, hostileConfig())
	edges := []uint64{
		0, 1, 2, 3, 8, hostileMemory - 8, hostileMemory - 1, hostileMemory, math.MaxInt32,
		1 << 31, math.MaxUint32, math.Float64bits(math.NaN()), math.MaxUint64, 1 << 61,
	}
	random := rand.New(rand.NewPCG(1, 2))
	for _, f := range g.imports {
		_, name, _ := f.Import()
		ended := 0
		for range 500 {
			args := make([]uint64, len(f.ParamTypes()))
			for i := range args {
				args[i] = edges[random.IntN(len(edges))]
			}
			if _, err := g.pass(t, name, args...); err != nil {
				ended++
				var exit exitError
				isFault := strings.Contains(err.Error(), "runtime error") && !errors.As(err, &exit)
				// wazero multiplies the number of subscriptions without a check, and Go's bounds
				// checks end the guest.
				if isFault && name != "poll_oneoff" {
					t.Errorf("%s%x: a fault in the host: %v", name, args, err)
				}
			}
		}
		t.Logf("%s: %d of 500 ended the guest", name, ended)
	}
	if n, failed := g.ask(t, "ts0,0,5"); failed || n != 5 {
		t.Errorf("the host no longer answers: %d bytes, failed: %v", n, failed)
	}
}
