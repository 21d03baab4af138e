package tables

import (
	"bytes"
	"hash/maphash"
	"slices"
)

// These bounds apply to a Tally on the host. Beyond them, it is full.
const (
	tallyBytes = 8 << 20
	tallyTexts = 1 << 18
)

// Tally counts equal strings in the order of their first occurrence.
type Tally struct {
	texts []counted
	slots []int32 // indexes in texts plus one, by hash; 0 is free
	size  int     // total bytes of the strings
	seed  maphash.Seed
}

type counted struct {
	text []byte // not a copy
	hash uint32
	n    int64
}

// NewTally returns an empty tally.
func NewTally() *Tally {
	return &Tally{seed: maphash.MakeSeed(), slots: make([]int32, 1<<12)}
}

// Add counts a string. The tally keeps the slice itself, not a copy.
func (t *Tally) Add(text []byte) {
	hash := uint32(maphash.Bytes(t.seed, text)) //nolint:gosec // any bits will do
	at := t.find(text, hash)
	if place := t.slots[at]; place > 0 {
		t.texts[place-1].n++
		return
	}

	t.texts = append(t.texts, counted{text, hash, 1})
	t.slots[at] = int32(len(t.texts)) //nolint:gosec // bounded by tallyTexts and one batch
	t.size += len(text)
	if 2*len(t.texts) > len(t.slots) {
		t.grow()
	}
}

// find returns the slot of a string, or the free slot for it.
func (t *Tally) find(text []byte, hash uint32) int {
	mask := uint32(len(t.slots) - 1) //nolint:gosec // a power of two below 2^32
	for at := hash & mask; ; at = (at + 1) & mask {
		place := t.slots[at]
		if place == 0 {
			return int(at)
		}
		if c := &t.texts[place-1]; c.hash == hash && bytes.Equal(c.text, text) {
			return int(at)
		}
	}
}

func (t *Tally) grow() {
	t.slots = make([]int32, 2*len(t.slots))
	mask := uint32(len(t.slots) - 1) //nolint:gosec // as above
	for i := range t.texts {
		at := t.texts[i].hash & mask
		for t.slots[at] > 0 {
			at = (at + 1) & mask
		}
		t.slots[at] = int32(i + 1) //nolint:gosec // as above
	}
}

// IsFull reports whether the tally should be encoded and restarted.
func (t *Tally) IsFull() bool { return t.size >= tallyBytes || len(t.texts) >= tallyTexts }

// Encode writes a list of two in the format of CPython's marshal: the offset of the rest, and a
// dict of the strings with their counts.
func (t *Tally) Encode(rest int64) []byte {
	w := &writer{out: make([]byte, 0, t.size+12*len(t.texts)+32)}
	whole := w.beginList()
	w.int(rest)
	w.mark(typeDict)
	for i := range t.texts {
		w.text(t.texts[i].text, 0)
		w.int(t.texts[i].n)
	}
	w.mark(typeEnd)
	w.endList(whole, 2)
	return slices.Clip(w.out)
}
