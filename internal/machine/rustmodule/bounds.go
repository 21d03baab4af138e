package rustmodule

import "math"

// Bounds are what a file may cost that an [Engine] reads.
type Bounds struct {
	// MaxUnpacked is how many bytes may be unpacked in a file, and written.
	MaxUnpacked int64
	// MaxRatio is the same as a multiple of the file's size. It bounds the memory as well. Small
	// files have more: see Unpacked and Memory.
	MaxRatio int64
}

// What files of any size may cost, and what none may, in bytes.
const (
	anyUnpacked = 64 << 20
	anyMemory   = 256 << 20
	MaxMemory   = 1 << 30
)

// Unpacked is how many bytes may be unpacked in a file of a size, and written.
func (b Bounds) Unpacked(size int64) int64 {
	return min(b.MaxUnpacked, max(anyUnpacked, b.times(size)))
}

// Memory is how many bytes of memory may be used for a file of a size.
func (b Bounds) Memory(size int64) int64 {
	return min(MaxMemory, anyMemory+min(MaxMemory, b.times(size)))
}

func (b Bounds) times(size int64) int64 {
	if size > math.MaxInt64/max(1, b.MaxRatio) {
		return math.MaxInt64
	}
	return size * b.MaxRatio
}
