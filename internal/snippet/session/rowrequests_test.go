package session

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/rlmhq/rlm/internal/data/bigtext"
	"github.com/rlmhq/rlm/tiers"
)

// TestMalformedRowRequests checks requests that our guests never send.
func TestMalformedRowRequests(t *testing.T) {
	text := bigtext.FromBytes("a.csv", []byte("a,b\n1,\"2\n3\"\n"))
	a, err := NewAccounts(t.Context(), tiers.Config{Inputs: []tiers.Input{{Name: "a.csv", Text: text}}})
	if err != nil {
		t.Fatal(err)
	}
	a.reset(t.Context(), a.cfg.Limits)
	defer a.endCalls()

	for _, request := range []string{
		"tn", "tn0", "tn0,0,12", "tn0,0,12,x,", "tn0,5,3,1,",
		"tj", "tj0", "tj0,0,12", "tj0,0,12,", "tj0,0,12,x,", "tj0,0,99,1,", "tj0,5,3,1,", "tj0,-1,3,1,", "tj1,0,1,1,",
		"tv0,0,12,1,", "tv0,0,12,1,5,", "tv0,0,12,1,5,9,", "tv0,0,12,1,5,9,,", "tv0,0,12,1,5,9,,,   l",
		"tv0,0,12,1,5,9,,\"   x", "tv0,0,12,1,5,9,,\"l",
		"tv0,0,12,1,5,9,\n\"   l", "tv0,0,12,1,5,9,\x00\"   l", "tv0,0,12,1,5,9,\xff\"   l",
		"tv0,0,12,1,5,9,,\"   d" + strings.Repeat("\x00", 200_000), "tw0,0,12,\"", "tw0,0,12,\n",
	} {
		t.Run(fmt.Sprintf("%.60s", request), func(t *testing.T) {
			if r := a.Handle([]byte(request)); !r.Failed {
				t.Errorf("%.40q got %d bytes", request, len(r.Data))
			}
		})
	}

	for _, request := range []string{
		"tn0,0,12,1,", "tn0,3,3,-1,",
		"tj0,0,12,1,", "tj0,3,3,1,",
		"tv0,0,12,-1,5,9,,\"   l", "tv0,0,12,1,-5,9,,\"   l", "tv0,0,12,1,5,-9,,\"   l", "tv0,0,12,1,5,9,,\"   d",
		"tv0,2,12,1,9999999999,9999999999,;'   d\x00\x00", "tw0,0,12,", "tw0,0,12,delim\x00;", "tw0,2,12,",
	} {
		t.Run(request, func(t *testing.T) {
			if r := a.Handle([]byte(request)); r.Failed {
				t.Errorf("%q: %s", request, r.Data)
			}
		})
	}
}

// TestRowsAreDecodedAhead checks a text that is read twice, in batches, and once more from another
// position.
func TestRowsAreDecodedAhead(t *testing.T) {
	text := bigtext.FromBytes("a.csv", []byte("n\n"+strings.Repeat("1234567\n", 200_000)))
	a, err := NewAccounts(t.Context(), tiers.Config{Inputs: []tiers.Input{{Name: "a.csv", Text: text}}})
	if err != nil {
		t.Fatal(err)
	}
	a.reset(t.Context(), a.cfg.Limits)
	defer a.endCalls()

	ask := func(r rowRequest) Reply {
		return a.Handle(fmt.Appendf(nil, "tv0,%d,%d,%s", r.a, r.b, r.body))
	}
	begin := rowRequest{b: 1_600_002, body: "1,100000000,100,,\"   l"}
	first := ask(begin)
	if first.Failed || a.ahead['v'] == nil {
		t.Fatalf("%s, ahead: %v", first.Data, a.ahead)
	}
	waiting := a.ahead['v']
	next := waiting.request
	ahead := ask(next)
	if &ahead.Data[0] != &waiting.reply.Data[0] {
		t.Error("the rows were decoded again")
	}
	alone, _ := next.answer(t.Context())
	if !bytes.Equal(ahead.Data, alone.Data) || len(ahead.Data) < 100_000 {
		t.Errorf("ahead %d bytes, alone %d", len(ahead.Data), len(alone.Data))
	}
	if again := ask(begin); !bytes.Equal(again.Data, first.Data) {
		t.Errorf("again %d bytes, at first %d", len(again.Data), len(first.Data))
	}
}
