package tables

import (
	"fmt"
	"math/rand/v2"
	"testing"
)

// TestTally counts more strings than the initial slots can hold; many of the strings are equal.
func TestTally(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	tally, want, order := NewTally(), map[string]int64{}, []string(nil)
	for range 50_000 {
		text := fmt.Sprint(r.IntN(20_000))
		if r.IntN(9) == 0 {
			text = ""
		}
		if want[text] == 0 {
			order = append(order, text)
		}
		want[text]++
		tally.Add([]byte(text))
	}

	if len(tally.texts) != len(order) || tally.IsFull() {
		t.Fatalf("%d texts, want %d; full: %t", len(tally.texts), len(order), tally.IsFull())
	}
	for i, c := range tally.texts {
		if string(c.text) != order[i] || c.n != want[order[i]] {
			t.Fatalf("text %d is %q, %d times; want %q, %d times", i, c.text, c.n, order[i], want[order[i]])
		}
	}
}

func TestATallyIsFullBeforeItTakesMuchMemory(t *testing.T) {
	tally, n := NewTally(), 0
	for ; !tally.IsFull() && n < 1<<20; n++ {
		tally.Add(fmt.Append(nil, n))
	}
	if n != tallyTexts {
		t.Errorf("it is full after %d texts", n)
	}

	tally = NewTally()
	tally.Add(make([]byte, tallyBytes))
	if !tally.IsFull() {
		t.Error("a long text does not fill it")
	}
}

func BenchmarkTally(b *testing.B) {
	r, texts, size := rand.New(rand.NewPCG(3, 4)), make([][]byte, 1<<16), 0
	for i := range texts {
		texts[i] = fmt.Append(nil, "word", int(r.ExpFloat64()*2000))
		size += len(texts[i]) + 1
	}
	b.SetBytes(int64(size))
	for b.Loop() {
		tally := NewTally()
		for _, text := range texts {
			tally.Add(text)
		}
		if len(tally.Encode(-1)) == 0 {
			b.Fatal("nothing is encoded")
		}
	}
}
