package bigtext

import (
	"syscall"
	"testing"
)

// TestTheCharactersOfAHoleTakeSpace checks that the characters of a hole occupy space: otherwise a
// mapping of a hole could fault when the disk is full.
func TestTheCharactersOfAHoleTakeSpace(t *testing.T) {
	const size = 64 << 20
	text := open(t, sparseFile(t, size, "é", 5))
	c, err := text.Characters(t.Context(), 1<<30)
	if err != nil {
		t.Fatal(err)
	}

	info, err := c.File.Stat()
	if err != nil {
		t.Fatal(err)
	}
	if taken := info.Sys().(*syscall.Stat_t).Blocks * 512; taken < c.Size() {
		t.Errorf("%d characters take %d bytes on the disk", c.Length, taken)
	}
}
