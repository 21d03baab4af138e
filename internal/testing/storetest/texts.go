package storetest

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/rlmhq/rlm/internal/keep/store"
)

// testAnyText checks that a store keeps text that is not text, and bounds what is too long.
func testAnyText(t *testing.T, open func() store.Store) {
	t.Helper()
	s := open()
	defer func() { check(t, s.Close()) }()
	const odd = "a\x00b\xff\xfe \U0001F600 %_\\ '\""
	long := strings.Repeat("x\x00\xff", 10<<20/3)
	check(t, s.Create(t.Context(), store.Log{ID: runA, Title: odd, Spec: []byte(odd), State: store.State{Reason: odd}}))
	check(t, s.Create(t.Context(), store.Log{ID: store.ID{Kind: store.Run, Name: "long"}, Title: long}))
	log, err := s.Log(t.Context(), runA)
	check(t, err)
	if log.Title != odd || string(log.Spec) != odd || log.Reason != odd {
		t.Errorf("the log is %+v", log)
	}

	lease, err := s.Acquire(t.Context(), runA)
	check(t, err)
	check(t, s.SetState(t.Context(), lease, store.State{Status: odd, Reason: odd},
		store.Entry{Kind: odd, Key: odd, Data: []byte(odd), Blob: []byte(odd)}))
	if log, err = s.Log(t.Context(), runA); err != nil || log.Status != odd || log.Reason != odd {
		t.Errorf("the state is %+v, %v", log.State, err)
	}
	entries, err := s.Entries(t.Context(), runA, store.Query{Kinds: []string{odd}})
	check(t, err)
	if len(entries) != 1 || entries[0].Kind != odd || entries[0].Key != odd || string(entries[0].Data) != odd {
		t.Errorf("the entries are %+v", entries)
	}
	logs, err := s.Logs(t.Context(), store.Filter{Status: odd})
	if err != nil || len(logs) != 1 || logs[0].ID != runA {
		t.Errorf("the status finds %d logs, %v", len(logs), err)
	}

	check(t, s.SetState(t.Context(), lease, store.State{Status: long, Reason: long}))
	for _, name := range []string{"a", "long"} {
		log, err := s.Log(t.Context(), store.ID{Kind: store.Run, Name: name})
		check(t, err)
		for _, text := range []string{log.Title, log.Status, log.Reason} {
			if len(text) > 5*store.MaxTitle {
				t.Errorf("a text of %s has %d bytes", name, len(text))
			}
		}
	}
	for _, e := range []store.Entry{{Kind: long}, {Key: long}} {
		if err := s.Append(t.Context(), lease, e); err == nil {
			t.Error("a kind or key of any size is taken")
		}
	}
	if logs, err := s.Logs(t.Context(), store.Filter{Text: long}); len(logs) > 0 { // it may be refused
		t.Errorf("%d logs, %v", len(logs), err)
	}
}

// testLargeEntries checks entries and contents around the sizes at which a store keeps them
// elsewhere.
func testLargeEntries(t *testing.T, open func() store.Store) {
	t.Helper()
	s, lease := begin(t, open)
	var all []store.Entry
	for turn, size := range []int{0, 1, 64 << 10, 64<<10 + 1, 5 << 20} {
		e := store.Entry{Turn: turn}
		e.Data, e.Blob = bytes.Repeat([]byte{byte(turn)}, size), bytes.Repeat([]byte("b"), size)
		all = append(all, e)
		check(t, s.Append(t.Context(), lease, e))
	}
	check(t, s.Append(t.Context(), lease, all...)) // all at once
	copied := store.ID{Kind: store.Run, Name: "copy"}
	check(t, s.Copy(t.Context(), runA, 4, store.Log{ID: copied}))
	check(t, s.Cut(t.Context(), lease, 0))
	_, err := s.Collect(t.Context())
	check(t, err)

	check(t, s.Close())
	s = open()
	defer func() { check(t, s.Close()) }()
	entries, err := s.Entries(t.Context(), copied, store.Query{})
	check(t, err)
	if len(entries) != 2*len(all) {
		t.Fatalf("%d entries", len(entries))
	}
	for i, e := range entries {
		want := all[i%len(all)]
		if !bytes.Equal(e.Data, want.Data) {
			t.Errorf("entry %d has %d bytes, want %d", i, len(e.Data), len(want.Data))
		}
		if len(want.Blob) == 0 {
			continue
		}
		if content, err := s.Blob(t.Context(), e.Digest); err != nil || !bytes.Equal(content, want.Blob) {
			t.Errorf("the content of entry %d has %d bytes, want %d, %v", i, len(content), len(want.Blob), err)
		}
	}
}

// testNotes checks that notes are durable, in order, after an Append, a Release and a Close.
func testNotes(t *testing.T, open func() store.Store) {
	t.Helper()
	s, lease := begin(t, open)
	s.Note(lease, store.Entry{Data: []byte("1")})
	s.Note(lease, store.Entry{Data: []byte("2")})
	check(t, s.Append(t.Context(), lease, store.Entry{Data: []byte("3")}))
	s.Note(lease, store.Entry{Data: []byte("4")})
	check(t, s.Release(lease))
	lease, err := s.Acquire(t.Context(), runA)
	check(t, err)
	s.Note(lease, store.Entry{Data: []byte("5")})
	s.Note(lease, store.Entry{Data: []byte("6")})

	check(t, s.Close())
	s = open()
	defer func() { check(t, s.Close()) }()
	entries, err := s.Entries(t.Context(), runA, store.Query{})
	check(t, err)
	var got []byte
	for _, e := range entries {
		got = append(got, e.Data...)
	}
	if string(got) != "123456" {
		t.Errorf("the entries are %q", got)
	}
	if !slices.IsSortedFunc(entries, func(a, b store.Entry) int { return int(a.Seq - b.Seq) }) {
		t.Error("the entries are not in order")
	}
}

// testNames checks that a reader of a removed log sees the entries of a later log with its name.
func testNames(t *testing.T, open func() store.Store) {
	t.Helper()
	s, lease := begin(t, open)
	check(t, s.Append(t.Context(), lease, store.Entry{}, store.Entry{}))
	entries, err := s.Entries(t.Context(), runA, store.Query{})
	check(t, err)
	check(t, s.Remove(t.Context(), lease))

	check(t, s.Create(t.Context(), store.Log{ID: runA}))
	lease, err = s.Acquire(t.Context(), runA)
	check(t, err)
	check(t, s.Append(t.Context(), lease, store.Entry{Key: "new"}))
	later, err := s.Entries(t.Context(), runA, store.Query{AfterSeq: entries[1].Seq})
	if err != nil || len(later) != 1 || later[0].Key != "new" {
		t.Errorf("%+v, %v", later, err)
	}
}
