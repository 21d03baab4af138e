package wasm

import (
	"context"
	"fmt"
	"strings"
	"sync"

	"github.com/rlmhq/rlm/internal/machine/aot"
)

// The names of the engines.
const (
	engineAuto   = "auto"
	engineWazero = "wazero"
	engineAOT    = "aot"
)

var engines = []string{engineWazero, engineAOT}

// slowdowns are the factors by which Python computes more slowly than native CPython.
var slowdowns = map[string]float64{engineWazero: 3.4, engineAOT: 1.2}

// checkEngine returns an error if the options name an engine that cannot run here.
func (o Options) checkEngine() error {
	switch o.Engine {
	case "", engineAuto, engineWazero:
		return nil
	case engineAOT:
		if err := o.checkCode(); err != nil {
			return fmt.Errorf("tier wasm cannot use engine aot: %w", err)
		}
		return nil
	}
	return fmt.Errorf("tier wasm has no engine %q: name one of auto, %s",
		o.Engine, strings.Join(engines, ", "))
}

// engine returns the name of the engine that runs. If auto does not select aot here, it also
// returns the reason.
func (o Options) engine() (name string, why error) {
	if o.Engine != "" && o.Engine != engineAuto {
		return o.Engine, nil
	}
	if err := o.checkCode(); err != nil {
		return engineWazero, err
	}
	return engineAOT, nil
}

// checkCode returns an error if the machine code cannot run now.
func (o Options) checkCode() error {
	code, err := machineCode(o)
	if err != nil {
		return err
	}
	return code.Check()
}

// machineCode maps the machine code that is part of this program, and tests it here. All tiers
// of the process share it; the options of the first one determine the cache.
var machineCode = func(o Options) (*aot.Program, error) {
	shared.once.Do(func() { shared.code, shared.err = loadCode(o) })
	return shared.code, shared.err
}

// shared is the machine code of this process.
var shared struct {
	once sync.Once
	code *aot.Program
	err  error
}

// program is the interpreter's code for an engine that runs WebAssembly.
type program interface {
	// start creates a guest over in.mem. After an error, in.mem still belongs to the caller.
	start(ctx context.Context, in *instance) (machine, error)
	// reach returns the number of bytes from the beginning of a memory that must be reserved, so
	// that accesses to unused bytes fault. It is 0 for code that checks each access.
	reach() uint64
	// Check returns an error if no machine may run now because the process changed.
	Check() error
	// close frees the code. Close its machines first.
	close() error
}

// machine runs the code of one guest. The fuel and the stack pointer are the only mutable state
// outside its memory. The table never changes.
type machine interface {
	// function returns an exported function. Calls of one function must not overlap.
	function(name string) function
	// memory returns the bytes in use. They remain valid until the memory grows.
	memory() []byte
	// grow adds pages to the memory, or returns false if it cannot.
	grow(pages uint32) bool

	fuel() int64
	setFuel(units int64)
	stackPointer() uint32
	setStackPointer(address uint32)

	// close frees the machine and its memory. Never close it while the guest runs: that
	// unmaps its memory.
	close()
}

// function is an exported function of a guest.
type function interface {
	// call passes the parameters on the stack, where it also returns the results. The guest may
	// call host functions, which receive the context. A trap, or a panic of a host function,
	// becomes an error; the guest is then unusable.
	call(ctx context.Context, stack []uint64) error
	// shrinkStack frees the part of the machine's stack that the call does not need while it
	// waits for the host, and returns the size of the rest, in bytes.
	shrinkStack() int
}

// hostFunction is a host function called by the guest of an instance. It finds its parameters on
// the stack, and leaves its result there.
type hostFunction func(ctx context.Context, in *instance, stack []uint64)
