package aot

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
)

// Program is machine code in memory, ready to run. Many guests can run it at the same time.
type Program struct {
	header  Header
	code    []byte // mapped
	exports map[string]Export
	// fuel is the offset of the global of that name in a guest's state, or 0.
	fuel uint64
	// guardedAs is the program's entry for the fault handler, nil for code that checks each access.
	guardedAs *guardedCode
}

// ErrUnsupported is the error of Load on systems that cannot run machine code.
var ErrUnsupported = errors.New("no code compiled ahead of time can run on this system")

// ErrNoStack is the error of a guest or a call if the process has run out of stacks.
var ErrNoStack = errors.New("cannot reserve a stack")

// Load maps the code of a blob, executable but not writable.
func Load(blob []byte) (*Program, error) {
	if err := checkProcessor(); err != nil {
		return nil, err
	}
	header, code, err := decode(blob)
	if err != nil {
		return nil, err
	}
	return newProgram(header, func() ([]byte, error) { return copyCode(code, header.Segments) })
}

// LoadFile is like [Load], for a header returned by Split and code in a file, starting at a page.
// The file must not change.
func LoadFile(head []byte, file *os.File, offset, size int64) (*Program, error) {
	if err := checkProcessor(); err != nil {
		return nil, err
	}
	header, err := decodeHeader(head, uint64(max(size, 0)))
	if err != nil {
		return nil, err
	}
	return newProgram(header, func() ([]byte, error) { return mapCode(file, offset, &header) })
}

func newProgram(header Header, load func() ([]byte, error)) (p *Program, err error) {
	p = &Program{header: header, exports: map[string]Export{}, fuel: header.Globals["fuel"]}
	for _, e := range header.Exports {
		p.exports[e.Name] = e
	}
	if p.code, err = load(); err != nil {
		return nil, fmt.Errorf("cannot map machine code: %w", err)
	}
	if header.Trap != 0 {
		if err := p.guard(); err != nil {
			err = fmt.Errorf("cannot turn faults of guests into traps: %w", err)
			return nil, errors.Join(err, p.Close())
		}
	}

	return p, nil
}

// reach is the number of bytes within reach of a 32-bit address plus a 32-bit offset, including the
// widest access.
const reach = 8<<30 + codePage

// Reach returns how many bytes from the beginning of a guest's memory the code may access, in use
// or not. All memory that is not in use must be reserved and inaccessible: its faults replace the
// checks of accesses. Reach is 0 for code that checks each access.
func (p *Program) Reach() uint64 {
	if p.header.Trap == 0 {
		return 0
	}
	return reach
}

// Imports returns the functions that the module imports. A guest calls them by index.
func (p *Program) Imports() []Signature { return p.header.Imports }

// Export returns an exported function of the module.
func (p *Program) Export(name string) (Export, bool) {
	e, ok := p.exports[name]
	return e, ok
}

// Global returns the offset of an exported global in a guest's state.
func (p *Program) Global(name string) (offset uint64, ok bool) {
	offset, ok = p.header.Globals[name]
	return offset, ok
}

// Parts returns the arguments for [LoadFile]: the header, and the code, which is valid until Close.
func (p *Program) Parts() (head, code []byte, err error) {
	head, err = json.Marshal(p.header)
	return head, p.code, err
}

// Close unmaps the code. No guest of the program may be running.
func (p *Program) Close() error {
	if p.code == nil {
		return nil
	}
	p.unguard()
	code := p.code
	p.code = nil
	return unmapCode(code)
}

// TrapError is the error of a guest that violated the rules of WebAssembly, for example by an
// access outside its memory. The guest is then unusable.
type TrapError uint32

// trapNames contains the traps of wasm2c, by number.
var trapNames = [...]string{
	1:  "out of bounds memory access",
	2:  "integer overflow",
	3:  "integer divide by zero",
	4:  "invalid conversion to integer",
	5:  "unreachable",
	6:  "invalid table access",
	7:  "uncaught exception",
	8:  "unaligned atomic",
	9:  "stack overflow",
	10: "indirect call type mismatch",
}

func (t TrapError) Error() string {
	if int(t) < len(trapNames) && trapNames[t] != "" {
		return "wasm error: " + trapNames[t]
	}

	return fmt.Sprintf("wasm error: trap %d", uint32(t))
}
