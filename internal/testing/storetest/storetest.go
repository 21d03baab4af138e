// Package storetest is the suite that every store must pass.
package storetest

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rlmhq/rlm/internal/keep/store"
)

// Run tests a store. fresh returns the open function of a new, empty store. Each call of open opens
// the same contents again, like another process: a later one after Close, or one at the same time.
// Collect must not spare contents because they are new.
func Run(t *testing.T, fresh func(t *testing.T) (open func() store.Store)) {
	t.Helper()
	for _, c := range []struct {
		name string
		test func(*testing.T, func() store.Store)
	}{
		{"Logs", testLogs},
		{"Entries", testEntries},
		{"Leases", testLeases},
		{"Blobs", testBlobs},
		{"CutAndCopy", testCutAndCopy},
		{"Replace", testReplace},
		{"Concurrency", testConcurrency},
		{"Bounds", testBounds},
		{"AnyText", testAnyText},
		{"LargeEntries", testLargeEntries},
		{"Notes", testNotes},
		{"Names", testNames},
		{"Handover", testHandover},
		{"Claims", testClaims},
		{"Collect", testCollect},
	} {
		t.Run(c.name, func(t *testing.T) { c.test(t, fresh(t)) })
	}
}

var runA = store.ID{Kind: store.Run, Name: "a"}

// begin opens a store with the log runA, and takes its lease.
func begin(t *testing.T, open func() store.Store) (store.Store, store.Lease) {
	t.Helper()
	s := open()
	t.Cleanup(func() { check(t, s.Close()) })
	check(t, s.Create(t.Context(), store.Log{ID: runA, Title: "why?", Spec: []byte(`{"x":1}`)}))
	lease, err := s.Acquire(t.Context(), runA)
	check(t, err)
	return s, lease
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func wants(t *testing.T, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Errorf("got %v, want %v", err, want)
	}
}

func testLogs(t *testing.T, open func() store.Store) {
	t.Helper()
	s, lease := begin(t, open)
	wants(t, s.Create(t.Context(), store.Log{ID: runA}), store.ErrExists)
	check(t, s.Create(t.Context(), store.Log{ID: store.ID{Kind: store.Session, Name: "a"}}))
	check(t, s.Create(t.Context(), store.Log{ID: store.ID{Kind: store.Run, Name: "b_c"}, Title: "50% of it"}))
	check(t, s.SetState(t.Context(), lease, store.State{Status: "answered", Turn: 3, Reason: "so"}))
	check(t, s.Append(t.Context(), lease, store.Entry{Cost: store.Cost{Calls: 2, USD: 0.5, InputTokens: 7}}))

	check(t, s.Close())
	s = open()
	defer func() { check(t, s.Close()) }()
	log, err := s.Log(t.Context(), runA)
	check(t, err)
	if log.Title != "why?" || string(log.Spec) != `{"x":1}` || log.Status != "answered" || log.Turn != 3 ||
		log.Reason != "so" || log.Spent != (store.Cost{Calls: 2, USD: 0.5, InputTokens: 7}) || log.Created.IsZero() {
		t.Errorf("after the restart: %+v", log)
	}

	_, err = s.Log(t.Context(), store.ID{Kind: store.Run, Name: "none"})
	wants(t, err, store.ErrNotFound)

	for _, c := range []struct {
		filter store.Filter
		want   []string
	}{
		{store.Filter{}, []string{"run a", "run b_c", "session a"}},
		{store.Filter{Kind: store.Run}, []string{"run a", "run b_c"}},
		{store.Filter{Status: "answered"}, []string{"run a"}},
		{store.Filter{MinUSD: 0.4}, []string{"run a"}},
		{store.Filter{Text: "WHY"}, []string{"run a"}},
		{store.Filter{Text: "0%"}, []string{"run b_c"}},
		{store.Filter{Text: "_"}, []string{"run b_c"}},
		{store.Filter{Since: time.Now().Add(time.Hour)}, nil},
		{store.Filter{Limit: 1}, []string{"run a"}},
	} {
		logs, err := s.Logs(t.Context(), c.filter)
		check(t, err)
		var names []string
		for i := range logs {
			names = append(names, logs[i].String())
		}
		if c.filter == (store.Filter{}) && names[0] != "run a" {
			t.Errorf("the latest change is not the first: %q", names)
		}

		slices.Sort(names)
		if !slices.Equal(names, c.want) {
			t.Errorf("%+v: %q, want %q", c.filter, names, c.want)
		}
	}
}

func testEntries(t *testing.T, open func() store.Store) {
	t.Helper()
	s, lease := begin(t, open)
	check(t, s.Append(t.Context(), lease,
		store.Entry{Turn: 0, Kind: "call", Key: "k", Data: []byte("0")},
		store.Entry{Turn: 1, Kind: "call", Data: []byte("1")}))
	s.Note(lease, store.Entry{Turn: 1, Kind: "event", Data: []byte("e")})
	check(t, s.Append(t.Context(), lease, store.Entry{Turn: 2, Kind: "commit", Data: []byte("2")}))

	read := func(q store.Query) (all string) {
		t.Helper()
		entries, err := s.Entries(t.Context(), runA, q)
		check(t, err)
		for _, e := range entries {
			all += string(e.Data)
		}
		return all
	}
	for _, c := range []struct {
		q    store.Query
		want string
	}{
		{store.Query{}, "01e2"},
		{store.Query{From: 1}, "1e2"},
		{store.Query{Kinds: []string{"call"}}, "01"},
		{store.Query{Kinds: []string{"commit", "call"}}, "012"},
		{store.Query{Kinds: []string{"call"}, Last: true}, "1"},
		{store.Query{Kinds: []string{"commit", "call"}, Last: true}, "2"},
	} {
		if got := read(c.q); got != c.want {
			t.Errorf("%+v: %q, want %q", c.q, got, c.want)
		}
	}

	entries, err := s.Entries(t.Context(), runA, store.Query{})
	check(t, err)
	if got := read(store.Query{AfterSeq: entries[1].Seq}); got != "e2" {
		t.Errorf("after the second entry: %q", got)
	}
}

func testLeases(t *testing.T, open func() store.Store) {
	t.Helper()
	s, lease := begin(t, open)
	_, err := s.Acquire(t.Context(), runA)
	var owned *store.OwnedError
	if !errors.As(err, &owned) || owned.Owner == "" {
		t.Errorf("a second owner: %v", err)
	}
	_, err = s.Acquire(t.Context(), store.ID{Kind: store.Run, Name: "none"})
	wants(t, err, store.ErrNotFound)

	owner, err := s.Owner(t.Context(), runA)
	if err != nil || owner == "" {
		t.Errorf("the owner is %q, %v", owner, err)
	}

	check(t, s.Release(lease))
	if owner, err := s.Owner(t.Context(), runA); err != nil || owner != "" {
		t.Errorf("after the release, the owner is %q, %v", owner, err)
	}
	next, err := s.Acquire(t.Context(), runA)
	check(t, err)
	wants(t, s.Append(t.Context(), lease, store.Entry{}), store.ErrLost)
	wants(t, s.SetState(t.Context(), lease, store.State{}), store.ErrLost)
	wants(t, s.Cut(t.Context(), lease, 0), store.ErrLost)
	wants(t, s.Replace(t.Context(), lease, store.Entry{}), store.ErrLost)
	wants(t, s.Remove(t.Context(), lease), store.ErrLost)

	check(t, s.Append(t.Context(), next, store.Entry{}))
	check(t, s.Remove(t.Context(), next))
	_, err = s.Log(t.Context(), runA)
	wants(t, err, store.ErrNotFound)
	wants(t, s.Append(t.Context(), next, store.Entry{}), store.ErrNotFound)
}

func testBlobs(t *testing.T, open func() store.Store) {
	t.Helper()
	s, lease := begin(t, open)
	content := bytes.Repeat([]byte("all the pages "), 100_000)
	check(t, s.Append(t.Context(), lease, store.Entry{Turn: 1, Blob: content}, store.Entry{Turn: 2, Blob: content}))
	check(t, s.Append(t.Context(), lease, store.Entry{Turn: 3, Blob: []byte("later")}))

	entries, err := s.Entries(t.Context(), runA, store.Query{})
	check(t, err)
	if entries[0].Digest != entries[1].Digest || entries[0].Digest == "" {
		t.Errorf("equal contents have the digests %q and %q", entries[0].Digest, entries[1].Digest)
	}
	got, err := s.Blob(t.Context(), entries[0].Digest)
	if err != nil || !bytes.Equal(got, content) {
		t.Errorf("%d bytes, %v", len(got), err)
	}

	check(t, s.Append(t.Context(), lease, store.Entry{Turn: 1, Digest: entries[0].Digest}))
	if err := s.Append(t.Context(), lease, store.Entry{Digest: strings.Repeat("0", 64)}); err == nil {
		t.Error("an entry refers to a content that is not there")
	}

	check(t, s.Cut(t.Context(), lease, 1))
	collected, err := s.Collect(t.Context())
	if err != nil || collected.Blobs != 1 {
		t.Errorf("collected %+v, %v", collected, err)
	}
	if _, err := s.Blob(t.Context(), entries[2].Digest); err == nil {
		t.Error("the content of a removed entry is there")
	}
	if _, err := s.Blob(t.Context(), entries[0].Digest); err != nil {
		t.Errorf("the content of an entry is gone: %v", err)
	}
	for _, digest := range []string{"", "x", "../../../../etc/passwd"} {
		if _, err := s.Blob(t.Context(), digest); err == nil {
			t.Errorf("%q names a content", digest)
		}
	}
}

func testCutAndCopy(t *testing.T, open func() store.Store) {
	t.Helper()
	s, lease := begin(t, open)
	for turn := range 4 {
		check(t, s.Append(t.Context(), lease,
			store.Entry{Turn: turn, Data: []byte{byte(turn)}, Blob: []byte("state"), Cost: store.Cost{Calls: 1}}))
	}
	check(t, s.SetState(t.Context(), lease, store.State{Status: "failed", Turn: 3}))

	copied := store.ID{Kind: store.Run, Name: "copy"}
	check(t, s.Copy(t.Context(), runA, 1, store.Log{ID: copied, Title: "another"}))
	wants(t, s.Copy(t.Context(), runA, 1, store.Log{ID: copied}), store.ErrExists)

	check(t, s.Cut(t.Context(), lease, 2))
	log, err := s.Log(t.Context(), runA)
	check(t, err)
	if log.Turn != 2 || log.Status != "" || log.Spent.Calls != 4 {
		t.Errorf("after the cut: %+v", log)
	}
	entries, err := s.Entries(t.Context(), runA, store.Query{})
	if err != nil || len(entries) != 3 {
		t.Errorf("%d entries, %v", len(entries), err)
	}

	check(t, s.Remove(t.Context(), lease)) // the copy has its own entries
	if log, err = s.Log(t.Context(), copied); err != nil || log.Parent != "a" || log.ParentTurn != 1 ||
		log.Spent.Calls != 0 || log.Title != "another" {
		t.Errorf("the copy: %+v, %v", log, err)
	}
	if entries, err = s.Entries(t.Context(), copied, store.Query{}); err != nil || len(entries) != 2 {
		t.Fatalf("%d entries, %v", len(entries), err)
	}
	_, err = s.Collect(t.Context())
	check(t, err)
	if content, err := s.Blob(t.Context(), entries[0].Digest); err != nil || string(content) != "state" {
		t.Errorf("the shared content: %q, %v", content, err)
	}
}

func testReplace(t *testing.T, open func() store.Store) {
	t.Helper()
	s, lease := begin(t, open)
	check(t, s.Append(t.Context(), lease,
		store.Entry{Data: []byte("0"), Blob: []byte("kept"), Cost: store.Cost{Calls: 1}},
		store.Entry{Data: []byte("1"), Blob: []byte("shared")},
		store.Entry{Data: []byte("2"), Blob: []byte("old")}))
	check(t, s.Copy(t.Context(), runA, 0, store.Log{ID: store.ID{Kind: store.Run, Name: "copy"}}))
	old, err := s.Entries(t.Context(), runA, store.Query{})
	check(t, err)
	check(t, s.Append(t.Context(), lease, store.Entry{Turn: 1, Blob: []byte("only here")}))

	tooLarge := store.Entry{Data: make([]byte, store.MaxData+1)}
	if err := s.Replace(t.Context(), lease, store.Entry{Data: []byte("new")}, tooLarge); err == nil {
		t.Error("an entry of any size is taken")
	}
	check(t, s.Replace(t.Context(), lease,
		store.Entry{Data: []byte("new"), Digest: old[0].Digest, Cost: store.Cost{Calls: 2}},
		store.Entry{Data: []byte("er"), Blob: []byte("now")}))
	_, err = s.Collect(t.Context())
	check(t, err)

	check(t, s.Close())
	s = open()
	defer func() { check(t, s.Close()) }()
	expectContents(t, s, runA, "new:kept er:now")
	expectContents(t, s, store.ID{Kind: store.Run, Name: "copy"}, "0:kept 1:shared 2:old")
	only := sha256.Sum256([]byte("only here"))
	if _, err := s.Blob(t.Context(), hex.EncodeToString(only[:])); err == nil {
		t.Error("the content of a replaced entry is there")
	}
	if log, err := s.Log(t.Context(), runA); err != nil || log.Spent.Calls != 3 {
		t.Errorf("the log: %+v, %v", log, err)
	}
}

// expectContents compares the data and the content of each entry of a log.
func expectContents(t *testing.T, s store.Store, id store.ID, want string) {
	t.Helper()
	entries, err := s.Entries(t.Context(), id, store.Query{})
	check(t, err)
	var got []string
	for _, e := range entries {
		content, err := s.Blob(t.Context(), e.Digest)
		check(t, err)
		got = append(got, fmt.Sprintf("%s:%s", e.Data, content))
	}
	if all := strings.Join(got, " "); all != want {
		t.Errorf("%s has %q, want %q", id, all, want)
	}
}

func testConcurrency(t *testing.T, open func() store.Store) {
	t.Helper()
	s, lease := begin(t, open)
	const writers, each = 8, 25
	var all sync.WaitGroup
	for w := range writers {
		all.Go(func() {
			for i := range each {
				e := store.Entry{Key: fmt.Sprint(w), Data: fmt.Append(nil, i), Cost: store.Cost{Calls: 1}}
				if err := s.Append(t.Context(), lease, e); err != nil {
					t.Error(err)
				}
				if _, err := s.Log(t.Context(), runA); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()

	check(t, s.Close())
	s = open()
	defer func() { check(t, s.Close()) }()
	entries, err := s.Entries(t.Context(), runA, store.Query{})
	check(t, err)
	next := map[string]int{}
	for _, e := range entries {
		if string(e.Data) != fmt.Sprint(next[e.Key]) {
			t.Errorf("writer %s: entry %s comes after %d others", e.Key, e.Data, next[e.Key])
		}
		next[e.Key]++
	}

	log, err := s.Log(t.Context(), runA)
	if err != nil || log.Spent.Calls != writers*each || len(entries) != writers*each {
		t.Errorf("%d entries, %+v, %v", len(entries), log, err)
	}
}

func testBounds(t *testing.T, open func() store.Store) {
	t.Helper()
	s, lease := begin(t, open)
	for _, name := range []string{"", "-a", "a/b", "..", "a\x00", string(bytes.Repeat([]byte("a"), 65))} {
		if err := s.Create(t.Context(), store.Log{ID: store.ID{Kind: store.Run, Name: name}}); err == nil {
			t.Errorf("%q names a run", name)
		}
	}

	if err := s.Create(t.Context(), store.Log{ID: store.ID{Kind: "x", Name: "a"}}); err == nil {
		t.Error("there are logs of any kind")
	}

	for _, e := range []store.Entry{
		{Key: string(make([]byte, store.MaxKey+1))}, {Data: make([]byte, store.MaxData+1)},
	} {
		if err := s.Append(t.Context(), lease, store.Entry{Data: []byte("1")}, e); err == nil {
			t.Error("an entry of any size is taken")
		}
	}
	if entries, err := s.Entries(t.Context(), runA, store.Query{}); err != nil || len(entries) != 0 {
		t.Errorf("a part of an Append was kept: %v, %v", entries, err)
	}
}
