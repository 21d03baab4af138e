package codecache

import (
	"encoding/binary"
	"errors"
	"slices"
)

var errNotModule = errors.New("the module's sections cannot be read")

const (
	moduleHeader = 8 // bytes of the magic number and the version
	codeSection  = 10
)

// trap is the body of a function without locals that does nothing but trap, with its length.
var trap = []byte{3, 0, 0x00, 0x0b}

// hollowOut returns a module whose functions all trap. It is otherwise the same. wazero decodes
// and validates every body of a module even if it has the code already, which takes longer
// than to load the code.
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
		if m <= 0 || count > size { // a body has a byte at least
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
