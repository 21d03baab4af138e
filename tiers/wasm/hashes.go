package wasm

import (
	"context"
	"crypto/md5"
	"crypto/sha1"
	"crypto/sha256"
	"crypto/sha3"
	"crypto/sha512"
	"encoding"
	"encoding/binary"
	"errors"
	"io"
	"sync"
)

// hashFunction digests blocks for guests. Go's hashes use processor instructions that WebAssembly
// lacks. The state, buffer and length of a hash object are kept in the guest. So the host stores
// nothing, and hash objects of a copied guest work as before.
type hashFunction struct {
	block uint32 // bytes of a block
	state uint32 // bytes of the state in the guest's memory
	word  uint32 // bytes of a word of the state
	at    uint32 // position of the state in Go's marshalled form
	unit  uint32 // bytes per unit of fuel, which is about one iteration of a loop
	idle  *sync.Pool
}

// hashFunctions holds the functions by their numbers in host-hash.patch. Functions of SHA-3 are
// numbered by the length of a block, because that is their only difference.
var hashFunctions = map[uint32]hashFunction{
	1:   wordHash(64, 4, 4, 4, func() any { return md5.New() }),  //nolint:gosec // the guest's choice
	2:   wordHash(64, 5, 4, 8, func() any { return sha1.New() }), //nolint:gosec // the guest's choice
	3:   wordHash(64, 8, 4, 8, func() any { return sha256.New() }),
	4:   wordHash(128, 8, 8, 4, func() any { return sha512.New() }),
	72:  spongeHash(72, func() any { return sha3.New512() }),
	104: spongeHash(104, func() any { return sha3.New384() }),
	136: spongeHash(136, func() any { return sha3.New256() }),
	144: spongeHash(144, func() any { return sha3.New224() }),
	168: spongeHash(168, func() any { return sha3.NewSHAKE128() }),
}

// hashMagic is the length of the name before each marshalled state, in bytes.
const hashMagic = 4

// wordHash returns a function whose state consists of words. Go marshals them in big-endian
// order.
func wordHash(block, words, word, unit uint32, newHash func() any) hashFunction {
	return hashFunction{block, words * word, word, hashMagic, unit, idleHashers(newHash)}
}

// spongeHash returns a function of SHA-3. Go marshals the length of a block, and the state
// unchanged.
func spongeHash(block uint32, newHash func() any) hashFunction {
	return hashFunction{block, 200, 1, hashMagic + 1, 2, idleHashers(newHash)}
}

// hasher is a Go hash with its marshalled form. It has digested only whole blocks, so the buffer
// in this form is empty.
type hasher struct {
	hash marshallingHash
	form []byte
}

type marshallingHash interface {
	io.Writer
	encoding.BinaryAppender
	encoding.BinaryUnmarshaler
}

func idleHashers(newHash func() any) *sync.Pool {
	return &sync.Pool{New: func() any {
		h := newHash().(marshallingHash)
		form, _ := h.AppendBinary(nil) // Go's hashes always can
		return &hasher{h, form}
	}}
}

// hashPart bounds the bytes of one call. Go cannot stop a goroutine during a call, and the guest
// can be interrupted only between two calls.
const hashPart = 64 << 10

var errNoHash = errors.New("the guest asked for an unknown hash function")

// hostHash answers hash(function, state, blocks, count) with the number of blocks that it
// digested: at least one if there are any, or none if Go forbids the function. The guest digests
// the rest.
func hostHash(_ context.Context, in *instance, stack []uint64) {
	f, isKnown := hashFunctions[uint32(stack[0])]
	if !isKnown {
		panic(errNoHash)
	}
	count := min(uint32(stack[3]), hashPart/f.block)
	state, isInside := in.view(uint32(stack[1]), f.state)
	blocks, areInside := in.view(uint32(stack[2]), count*f.block)
	if !isInside || !areInside {
		panic(errBadPointer)
	}

	if f.digest(state, blocks) != nil {
		count = 0
	}
	in.machine.setFuel(in.machine.fuel() - int64(count*f.block/f.unit))
	stack[0] = uint64(count)
}

// digest advances a state by whole blocks. After an error, the state is unchanged.
func (f hashFunction) digest(state, blocks []byte) error {
	h := f.idle.Get().(*hasher)
	defer f.idle.Put(h)

	own := h.form[f.at : f.at+f.state]
	f.copyWords(own, state)
	if err := h.hash.UnmarshalBinary(h.form); err != nil {
		return err
	}
	if _, err := h.hash.Write(blocks); err != nil { // possible in a mode of GODEBUG
		return err
	}
	if _, err := h.hash.AppendBinary(h.form[:0]); err != nil {
		return err
	}
	f.copyWords(state, own)
	return nil
}

// copyWords copies a state between the guest, which is little-endian, and Go.
func (f hashFunction) copyWords(dst, src []byte) {
	switch f.word {
	case 4:
		for i := 0; i < len(src); i += 4 {
			binary.BigEndian.PutUint32(dst[i:], binary.LittleEndian.Uint32(src[i:]))
		}
	case 8:
		for i := 0; i < len(src); i += 8 {
			binary.BigEndian.PutUint64(dst[i:], binary.LittleEndian.Uint64(src[i:]))
		}
	default:
		copy(dst, src)
	}
}
