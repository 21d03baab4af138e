package wasm

import (
	"context"
	_ "embed" // the guest's part
	"encoding/binary"
	"fmt"
)

//go:embed immortal.py
var listObjects string

// mostReferences is the largest reference count that an object of an image can have. Anything
// larger is an address.
const mostReferences = 1<<16 - 1

// immortalise makes the objects of an image immortal, which is CPython's term for objects whose
// references it does not count. Code that only reads such an object writes nothing into its page,
// so sandboxes keep sharing it. The instance has continued to run since the image was taken from
// it: objects do not move, and new objects in the places of old ones are left out.
func (in *instance) immortalise(ctx context.Context, image []byte) error {
	said, err := in.boot(ctx, listObjects)
	if err != nil {
		return err
	}
	var none, list, count uint32
	if _, err := fmt.Sscan(said, &none, &list, &count); err != nil {
		return fmt.Errorf("cannot list the objects of the interpreter: %w: %.100q", err, said)
	}

	immortal := in.word(none) // None is
	for i := range count {
		at := in.word(list + 4*i)
		if at%4 != 0 || uint64(at)+8 > uint64(len(image)) {
			continue
		}
		references, kind := binary.LittleEndian.Uint32(image[at:]), binary.LittleEndian.Uint32(image[at+4:])
		if references > 0 && references <= mostReferences && kind == in.word(at+4) {
			binary.LittleEndian.PutUint32(image[at:], immortal)
		}
	}
	return nil
}
