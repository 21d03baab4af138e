package wasm

import (
	"bytes"
	"testing"
)

// TestABufferThatCannotGrowKeepsItsBytes requests more than the whole address space, and checks
// that a checkpoint that cannot be taken would leave the last one unchanged.
func TestABufferThatCannotGrowKeepsItsBytes(t *testing.T) {
	var b buffer
	defer b.free()
	if err := b.resize(3 * pageSize); err != nil {
		t.Fatal(err)
	}
	want := bytes.Repeat([]byte("x"), 3*pageSize)
	copy(b.data, want)

	if err := b.resize(1 << 50); err == nil {
		t.Error("the buffer has a pebibyte")
	}
	if !bytes.Equal(b.data, want) {
		t.Error("the buffer's bytes have changed")
	}

	if err := b.resize(2 * pageSize); err != nil || !bytes.Equal(b.data, want[:2*pageSize]) {
		t.Errorf("the buffer's first pages have changed (%v)", err)
	}
}
