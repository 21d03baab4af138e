package codecache

import (
	"encoding/binary"
	"errors"
	"slices"
)

var errNotModule = errors.New("the module's sections cannot be read")

const (
	moduleHeader = 8 // bytes: magic number and version
	codeSection  = 10
)

// trap is the body of a function without locals that only traps, preceded by its length.
var trap = []byte{3, 0, 0x00, 0x0b}

// hollowOut returns a copy of a module in which all functions trap. wazero decodes and validates
// every body of a module even if it already has the code, which takes longer than loading the code.
func hollowOut(module []byte) ([]byte, error) {
	if len(module) < moduleHeader {
		return nil, errNotModule
	}

	hollow, rest := slices.Clone(module[:moduleHeader]), module[moduleHeader:]
	for len(rest) > 0 {
		id := rest[0]
		size, n := binary.Uvarint(rest[1:])
		if n <= 0 || size > uint64(len(rest)-1-n) {
			return nil, errNotModule
		}
		end := 1 + n + int(size)
		if id != codeSection {
			hollow = append(hollow, rest[:end]...)
			rest = rest[end:]
			continue
		}

		count, m := binary.Uvarint(rest[1+n : end])
		if m <= 0 || count > size { // a body has at least one byte
			return nil, errNotModule
		}
		bodies := binary.AppendUvarint(nil, count)
		bodies = append(bodies, slices.Repeat(trap, int(count))...)
		hollow = append(hollow, id)
		hollow = binary.AppendUvarint(hollow, uint64(len(bodies)))
		hollow = append(hollow, bodies...)
		rest = rest[end:]
	}

	return hollow, nil
}
