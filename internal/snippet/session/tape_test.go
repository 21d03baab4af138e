package session

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/rlmhq/rlm/tiers"
)

// recordTape returns the tape of a snippet that reads both clocks, draws random bytes and sends two
// requests to its host.
func recordTape(tb testing.TB) []byte {
	tb.Helper()
	t := NewTape()
	if err := t.Enter("wasm", true); err != nil {
		tb.Fatal(err)
	}
	t.Begin()
	t.Wall(1_500_000_000_000_000_000)
	t.Wall(1_500_000_000_000_000_100)
	t.Monotonic(7)
	t.answer([]byte("one"), func() Reply { return Reply{Data: []byte("first"), ASCII: true} })
	t.answer([]byte("two"), func() Reply { return Reply{Data: []byte("second"), Failed: true} })
	data, err := t.Encode()
	if err != nil {
		tb.Fatal(err)
	}
	return data
}

func TestATapeRepeatsWhatItRecorded(t *testing.T) {
	tape, err := ReadTape(recordTape(t))
	if err != nil {
		t.Fatal(err)
	}
	if err := tape.Enter("wasm", true); err != nil {
		t.Fatal(err)
	}
	tape.Begin()
	for _, want := range []int64{1_500_000_000_000_000_000, 1_500_000_000_000_000_100} {
		if got := tape.Wall(1); got != want {
			t.Errorf("the wall clock reads %d, want %d", got, want)
		}
	}
	if got := tape.Monotonic(1); got != 7 {
		t.Errorf("the monotonic clock reads %d", got)
	}
	unasked := func() Reply { t.Error("it asked the host"); return Reply{} }
	if r := tape.answer([]byte("one"), unasked); string(r.Data) != "first" || r.Failed || !r.ASCII {
		t.Errorf("the first answer is %+v", r)
	}
	if r := tape.answer([]byte("two"), unasked); string(r.Data) != "second" || !r.Failed || r.ASCII {
		t.Errorf("the second answer is %+v", r)
	}
	if s := tape.Strayed(); s != "" {
		t.Errorf("it strayed: %s", s)
	}
	if tape.answer([]byte("three"), unasked); tape.Strayed() == "" {
		t.Error("a third request is not noticed")
	}
}

// FuzzReadTape reads tapes that a damaged disk or a hostile worker could return. It requests more
// from a readable tape than the tape holds, which must be noticed, and checks that the tape has the
// same content after it was written and read again.
func FuzzReadTape(f *testing.F) {
	f.Add(recordTape(f))
	f.Add([]byte(`{"tier":"wasm","walls":"/////////////w==","answers":[{"request":null}]}`))
	f.Add([]byte(`{"tier":"interp","seed":"AA=="}`))
	f.Add([]byte(`{"tier":"wasm","calls":[{}]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		tape, err := ReadTape(data)
		if err != nil {
			return
		}
		if tape.Enter(tape.content.Tier, true) != nil {
			t.Fatal("its own tier is refused")
		}
		tape.Begin()
		for range len(data) + 1 {
			tape.Wall(1)
			tape.Monotonic(1)
		}
		unasked := func() Reply { t.Fatal("it asked the host"); return Reply{} }
		for range len(tape.content.Answers) + 1 {
			tape.answer(data, unasked)
		}
		if tape.Strayed() == "" {
			t.Error("it was used for more than it holds, which is not noticed")
		}

		recorded := &Tape{content: tape.content}
		again, err := recorded.Encode()
		if err != nil {
			return // the content grew in base64
		}
		back, err := ReadTape(again)
		if err != nil {
			t.Fatalf("it cannot be read after it was written: %v", err)
		}
		if twice, err := json.Marshal(&back.content); err != nil || !bytes.Equal(twice, again) {
			t.Errorf("%s became %s, %v", again, twice, err)
		}
	})
}

// FuzzReadChange reads entries of a session's log that a damaged disk could return.
func FuzzReadChange(f *testing.F) {
	entry, err := json.Marshal(Change{
		Language: tiers.Go, Source: []byte("x = 1"), Tape: recordTape(f), Moved: "x", IsLook: true, Active: 5,
	})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(entry)
	f.Add([]byte(`{"source":"eA==","tape":[[[[]]]],"active":-1}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		e, err := ReadChange(data)
		if err != nil {
			return
		}
		again, err := json.Marshal(&e)
		if err != nil {
			t.Fatalf("it cannot be written: %v", err)
		}
		back, err := ReadChange(again)
		if err != nil {
			t.Fatalf("it cannot be read after it was written: %v", err)
		}
		if back.Language != e.Language || !bytes.Equal(back.Source, e.Source) || back.Active != e.Active {
			t.Errorf("%+v became %+v", e, back)
		}
	})
}
