package rustmodule

import "math"

// Bounds limit the cost of a file that an [Engine] reads.
type Bounds struct {
	// MaxUnpacked bounds the bytes unpacked from a file, and written.
	MaxUnpacked int64
	// MaxRatio bounds the same bytes as a multiple of the file's size. It also bounds the memory.
	// Small files are allowed more: see Unpacked and Memory.
	MaxRatio int64
}

// These are the cost that any file is allowed, and the cost that no file may exceed, in bytes.
const (
	anyUnpacked = 64 << 20
	anyMemory   = 256 << 20
	MaxMemory   = 1 << 30
)

// Unpacked returns how many bytes may be unpacked from a file of a given size, and written.
func (b Bounds) Unpacked(size int64) int64 {
	return min(b.MaxUnpacked, max(anyUnpacked, b.times(size)))
}

// Memory returns how many bytes of memory may be used for a file of a given size.
func (b Bounds) Memory(size int64) int64 {
	return min(MaxMemory, anyMemory+min(MaxMemory, b.times(size)))
}

func (b Bounds) times(size int64) int64 {
	if size > math.MaxInt64/max(1, b.MaxRatio) {
		return math.MaxInt64
	}
	return size * b.MaxRatio
}
