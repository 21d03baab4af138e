package session

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/rlmhq/rlm/internal/data/bigtext"
	"github.com/rlmhq/rlm/internal/data/tables"
	"github.com/rlmhq/rlm/tiers"
)

// TestTallyRefusesALongPart checks a part that would need too much memory to count.
func TestTallyRefusesALongPart(t *testing.T) {
	data := bytes.Repeat([]byte("x"), tallyStep+tallyPart+8)
	copy(data, "ab\nab\n")
	text := bigtext.FromBytes("a.txt", data)
	a, err := NewAccounts(t.Context(), tiers.Config{Inputs: []tiers.Input{{Name: "a.txt", Text: text}}})
	if err != nil {
		t.Fatal(err)
	}
	a.reset(t.Context(), a.cfg.Limits)
	defer a.endCalls()

	begin := a.Handle(fmt.Appendf(nil, "tu0,0,%d,sep,\n", len(data)))
	if begin.Failed || len(begin.Data) > 100 || !bytes.Contains(begin.Data, []byte("ab")) {
		t.Errorf("the beginning got %.100q", begin.Data)
	}
	long := a.Handle(fmt.Appendf(nil, "tu0,6,%d,sep,\n", len(data)))
	if !long.Failed || !bytes.Contains(long.Data, []byte("use a loop")) {
		t.Errorf("the long part got %.100q", long.Data)
	}

	for _, request := range []string{
		"tu0,0,9,", "tu0,0,9,sep", "tu0,0,9,sep,", "tu0,0,9,sep,\xff", "tu0,0,9,words,", "tu0,9,5,sep,x",
		"tu0,-1,9,sep,x", "tu0,0,999999999999,sep,x", "tu1,0,9,sep,x",
	} {
		t.Run(request, func(t *testing.T) {
			if r := a.Handle([]byte(request)); !r.Failed {
				t.Errorf("%q got %d bytes", request, len(r.Data))
			}
		})
	}
}

// TestTallyOfCutData compares the counts of a whole text with those of the text split at each byte.
func TestTallyOfCutData(t *testing.T) {
	const text = "\r\n a b\u3000\r\n\r\rb\u0085 ,a\v,, é,é\u2028a"
	splitters := map[string]bigtext.Splitter{
		"fields": bigtext.Fields(), "lines": bigtext.Lines(), "newlines": bigtext.Newlines(),
		"comma": bigtext.Sep([]byte(",")), "two": bigtext.Sep([]byte(",,")), "wide": bigtext.Sep([]byte("é")),
	}
	for name, by := range splitters {
		t.Run(name, func(t *testing.T) {
			want := tables.NewTally()
			countParts(t.Context(), want, by, []byte(text), false)

			for cut := range len(text) {
				got := tables.NewTally()
				rest := countParts(t.Context(), got, by, []byte(text[:cut]), true)
				countParts(t.Context(), got, by, []byte(text[rest:]), false)
				if !bytes.Equal(got.Encode(-1), want.Encode(-1)) {
					t.Errorf("%s, cut at %d: %q, want %q", name, cut, got.Encode(-1), want.Encode(-1))
				}
			}
		})
	}

	spaces := bytes.Repeat([]byte(" "), 9)
	if got := countParts(t.Context(), tables.NewTally(), bigtext.Fields(), spaces, true); got != 0 {
		t.Errorf("after white space that goes on: %d", got)
	}
}
