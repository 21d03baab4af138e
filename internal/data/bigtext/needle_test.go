package bigtext

import (
	"bytes"
	"context"
	"errors"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/rlmhq/rlm/internal/testing/skip"
)

// TestNeedlesAreFoundWhereTheyAre compares the positions with those of package bytes, in texts full
// of heads of needles.
func TestNeedlesAreFoundWhereTheyAre(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	random := func(size int) []byte {
		b := make([]byte, size)
		unit, letters := 1+r.IntN(40), 1+r.IntN(3)
		for i := range b {
			if b[i] = byte('a' + r.IntN(letters)); i >= unit && r.IntN(20) > 0 {
				b[i] = b[i-unit]
			}
		}
		return b
	}

	found := 0
	for range 3000 {
		text := random(r.IntN(3000))
		word := random(1 + r.IntN(200))
		if from := r.IntN(len(text) + 1); r.IntN(3) > 0 {
			word = text[from:min(len(text), from+1+r.IntN(1500))]
		}
		if len(word) == 0 {
			continue
		}

		n := newNeedle(word)
		first, err1 := n.index(t.Context(), text)
		last, err2 := n.lastIndex(t.Context(), text)
		count, err3 := n.count(t.Context(), text)
		if err := errors.Join(err1, err2, err3); err != nil {
			t.Fatal(err)
		}
		if first != bytes.Index(text, word) || last != bytes.LastIndex(text, word) || count != bytes.Count(text, word) {
			t.Fatalf("%q in %q: first %d, last %d, %d times", word, text, first, last, count)
		}
		for _, isLast := range []bool{false, true} {
			want := bytes.Index(text, word)
			if isLast {
				want = last
			}
			if hashed, err := n.indexHashed(t.Context(), text, isLast); hashed != want || err != nil {
				t.Fatalf("%q in %q by hash: %d, %v; want %d", word, text, hashed, err, want)
			}
		}
		found += min(1, count)
	}
	if found < 500 {
		t.Errorf("only %d needles were in their texts", found)
	}
}

func TestTheHashIsExact(t *testing.T) {
	for _, a := range []uint64{0, 1, 255, hashPrime / 2, hashPrime - 1} {
		if got := multiply(a, hashPrime-1); got != (hashPrime-a)%hashPrime {
			t.Errorf("%d times -1: %d", a, got)
		}
	}
	if got := reduce(4*hashPrime - 1); got != hashPrime-1 {
		t.Errorf("-1: %d", got)
	}
}

// sameHash returns a needle whose end has the same hash in package bytes as an equally long run of
// a's.
func sameHash(size int) []byte { return []byte(strings.Repeat("a", size) + "gmecabry") }

// TestHostileNeedlesTakeTimeInProportion checks that hostile needles are found in linear time; the
// functions of package bytes would take hours.
func TestHostileNeedlesTakeTimeInProportion(t *testing.T) {
	skip.UnderRace(t)
	text := FromBytes("a", bytes.Repeat([]byte("a"), 4<<20))
	end, word := text.Size(), sameHash(1<<20)
	for name, find := range map[string]func() (int64, error){
		"find":  func() (int64, error) { return text.Find(t.Context(), word, 0, end) },
		"rfind": func() (int64, error) { return text.RFind(t.Context(), word, 0, end) },
		"count": func() (int64, error) { n, err := text.Count(t.Context(), word, 0, end); return n - 1, err },
		"split": func() (int64, error) { n, err := text.Parts(t.Context(), Sep(word), 0, end); return n - 2, err },
		"tally": func() (n int64, err error) {
			Sep(word).EachPart(t.Context(), text.data, func([]byte, int64) bool { n--; return true })
			return n, nil
		},
		"regexp": func() (int64, error) {
			re, err := CompileRegexp(t.Context(), string(sameHash(5_000)))
			if err != nil {
				return 0, err
			}
			found, next, err := text.FindRegexp(t.Context(), re, 0, end, 0, 1)
			return next - int64(len(found)), err
		},
	} {
		t.Run(name, func(t *testing.T) {
			n, err := find()
			if n != -1 || err != nil {
				t.Errorf("%s: %d, %v", name, n, err)
			}
		})
	}
}

// TestLongNeedlesEndWithTheContext checks that a search for a long needle ends when its context is
// cancelled.
func TestLongNeedlesEndWithTheContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(10*time.Millisecond, cancel)
	b, n := bytes.Repeat([]byte("a"), 1<<20), newNeedle(sameHash(1<<18))
	for {
		if _, err := n.index(ctx, b); err != nil {
			break
		}
	}
	if _, err := n.lastIndex(ctx, b); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
	if _, err := newNeedle(sameHash(1<<18)).indexHashed(ctx, b, false); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}
