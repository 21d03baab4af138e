package bigtext

import (
	"bytes"
	"context"
	"math/bits"
	"math/rand/v2"
	"sync/atomic"
)

// needle is a text to search for. Package bytes searches for a long one by a publicly known hash,
// and compares all of its bytes wherever the hash is equal. Anyone can craft a needle whose hash
// occurs at many places of a text, so that a single search takes hours. So a long needle is
// searched for by its head, and by a secret hash where the head is too common.
type needle struct {
	text []byte
	hash atomic.Pointer[rolling] // set once needed
}

const (
	// headSize is the number of bytes that bytes.Index compares in one step on every processor.
	headSize = 31
	// compareStep is the number of bytes of a needle that are compared in one step.
	compareStep = 1 << 10
	// needlePatience is the number of bytes that may be compared without a match, in addition to
	// the number of bytes searched.
	needlePatience = 1 << 16
)

func newNeedle(text []byte) *needle { return &needle{text: text} }

// index returns the first position of the needle in b, or -1.
func (n *needle) index(ctx context.Context, b []byte) (int, error) {
	if len(n.text) <= headSize {
		return n.indexShort(ctx, b)
	}

	head, wasted := n.text[:headSize], 0
	for at, end := 0, len(b)-len(n.text)+1; at < end; {
		if err := ctx.Err(); err != nil {
			return -1, err
		}
		next := min(end, at+searchStep)
		i := bytes.Index(b[at:next+headSize-1], head)
		if i < 0 {
			at = next
			continue
		}

		at += i
		same := commonSteps(b[at:], n.text)
		if same == len(n.text) {
			return at, nil
		}
		at++
		if wasted += same + compareStep; wasted > at+needlePatience {
			place, err := n.indexHashed(ctx, b[at:], false)
			if place >= 0 {
				place += at
			}
			return place, err
		}
	}
	return -1, nil
}

func (n *needle) indexShort(ctx context.Context, b []byte) (int, error) {
	for at := 0; ; at += searchStep {
		end := at + searchStep + len(n.text) - 1
		if i := bytes.Index(b[at:min(len(b), end)], n.text); i >= 0 {
			return at + i, nil
		}
		if end >= len(b) {
			return -1, nil
		}
		if err := ctx.Err(); err != nil {
			return -1, err
		}
	}
}

// commonSteps returns a lower bound on the length of the common prefix of a and b, in bytes, where
// b is not shorter than a: the length of a, or a multiple of compareStep.
func commonSteps(b, a []byte) int {
	for at := 0; at < len(a); at += compareStep {
		end := min(len(a), at+compareStep)
		if !bytes.Equal(a[at:end], b[at:end]) {
			return at
		}
	}
	return len(a)
}

// lastIndex returns the last position of the needle in b, or -1.
func (n *needle) lastIndex(ctx context.Context, b []byte) (int, error) {
	if len(n.text) <= headSize {
		return bytes.LastIndex(b, n.text), ctx.Err()
	}
	return n.indexHashed(ctx, b, true)
}

// count returns the number of occurrences of the needle in b, from the left and without overlap.
func (n *needle) count(ctx context.Context, b []byte) (count int, err error) {
	if len(n.text) <= headSize && len(b) <= searchStep+headSize {
		return bytes.Count(b, n.text), ctx.Err()
	}
	for {
		at, err := n.index(ctx, b)
		if err != nil || at < 0 {
			return count, err
		}
		count++
		b = b[at+len(n.text):]
	}
}

// indexHashed finds the first or last position by the hash, in time proportional to b.
func (n *needle) indexHashed(ctx context.Context, b []byte, last bool) (int, error) {
	size := len(n.text)
	if len(b) < size {
		return -1, nil
	}
	r, err := n.rolling(ctx)
	if err != nil {
		return -1, err
	}
	window, err := r.hash(ctx, b[:size])
	if err != nil {
		return -1, err
	}

	found := -1
	for at := 0; ; at++ {
		if window == r.sum {
			if !last && bytes.Equal(b[at:at+size], n.text) {
				return at, nil
			}
			found = at
		}
		if at+size == len(b) {
			break
		}
		window = r.move(window, b[at], b[at+size])
		if at%hashStep == 0 && ctx.Err() != nil {
			return -1, ctx.Err()
		}
	}

	if !last || found < 0 {
		return -1, nil
	}
	if !bytes.Equal(b[found:found+size], n.text) {
		return n.indexHashed(ctx, b[:found+size-1], last)
	}
	return found, nil
}

// rolling returns the hash of the needle.
func (n *needle) rolling(ctx context.Context) (*rolling, error) {
	if r := n.hash.Load(); r != nil {
		return r, nil
	}
	r, err := newRolling(ctx, n.text)
	if err == nil {
		n.hash.Store(r)
	}
	return r, err
}

// hashStep is the number of bytes that are hashed between two checks of the context.
const hashStep = 1 << 16

// rolling is the hash of a byte string, with the data to hash windows of the same length: the bytes
// are the digits of a number in a secret base, modulo a prime (Karp and Rabin, IBM Journal of
// Research and Development 31, 1987).
type rolling struct {
	base, sum uint64
	leaves    [256]uint64 // contribution of a byte that leaves a window, by byte
}

const hashPrime = 1<<61 - 1

func newRolling(ctx context.Context, text []byte) (*rolling, error) {
	r := &rolling{base: 256 + rand.Uint64N(hashPrime-256)}
	power := uint64(1)
	for square, n := r.base, len(text); n > 0; n >>= 1 {
		if n&1 == 1 {
			power = multiply(power, square)
		}
		square = multiply(square, square)
	}
	for c := range r.leaves {
		r.leaves[c] = multiply(power, uint64(c))
	}

	var err error
	r.sum, err = r.hash(ctx, text)
	return r, err
}

// hash returns the hash of text.
func (r *rolling) hash(ctx context.Context, text []byte) (hash uint64, err error) {
	for i, c := range text {
		hash = reduce(multiply(hash, r.base) + uint64(c))
		if i%hashStep == 0 && ctx.Err() != nil {
			return 0, ctx.Err()
		}
	}
	return hash, nil
}

// move returns the hash of the window that starts one byte later.
func (r *rolling) move(hash uint64, first, added byte) uint64 {
	return reduce(multiply(hash, r.base) + hashPrime - r.leaves[first] + uint64(added))
}

// multiply returns a*b modulo the prime; both factors must be below it.
func multiply(a, b uint64) uint64 {
	high, low := bits.Mul64(a, b)
	return reduce(low&hashPrime + (low>>61 | high<<3))
}

// reduce returns n modulo the prime, for n below four times the prime.
func reduce(n uint64) uint64 {
	n = n&hashPrime + n>>61
	if n >= hashPrime {
		n -= hashPrime
	}
	return n
}
