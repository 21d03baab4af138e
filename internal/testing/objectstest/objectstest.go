// Package objectstest is the suite that every store of objects must pass.
package objectstest

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/iotest"
	"time"

	"github.com/rlmhq/rlm/internal/keep/objects"
)

// Kit is a new, empty store, and the way to its bytes.
type Kit struct {
	// Open opens the store. Each call opens the same contents, like another process.
	Open func() objects.Store
	// Damage replaces the stored form of an object by what a function makes of it. A result of nil
	// leaves an object of 0 bytes.
	Damage func(t *testing.T, digest string, change func(stored []byte) []byte)
}

// Run tests a store. fresh returns a new kit for each test.
func Run(t *testing.T, fresh func(t *testing.T) Kit) {
	t.Helper()
	for _, c := range []struct {
		name string
		test func(*testing.T, Kit)
	}{
		{"RoundTrip", testRoundTrip},
		{"EqualBytes", testEqualBytes},
		{"Renewal", testRenewal},
		{"List", testList},
		{"Remove", testRemove},
		{"ConcurrentPuts", testConcurrentPuts},
		{"ConcurrentRemovals", testConcurrentRemovals},
		{"Damage", testDamage},
		{"DamageIsRepaired", testDamageIsRepaired},
		{"FailingReader", testFailingReader},
		{"EndedContext", testEndedContext},
		{"InvalidDigests", testInvalidDigests},
	} {
		t.Run(c.name, func(t *testing.T) { c.test(t, fresh(t)) })
	}
}

// Sizes in bytes: of a page of a compressor and one more, and of a stream that no buffer holds.
const (
	large   = 5<<20 + 1
	largest = 40 << 20
)

func put(t *testing.T, s objects.Store, from io.Reader) objects.Object {
	t.Helper()
	o, err := s.Put(t.Context(), from)
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// read reads an object, and returns the digest and the number of its bytes. The error is that of
// Open or of the reader, never io.EOF.
func read(ctx context.Context, s objects.Store, digest string) (got string, size int64, err error) {
	r, err := s.Open(ctx, digest)
	if err != nil {
		return "", 0, err
	}
	defer r.Close()

	sum := sha256.New()
	size, err = io.Copy(sum, r)
	return hex.EncodeToString(sum.Sum(nil)), size, err
}

// wantWhole fails the test unless the store has an object with all of its bytes.
func wantWhole(t *testing.T, s objects.Store, want objects.Object) {
	t.Helper()
	got, size, err := read(t.Context(), s, want.Digest)
	if err != nil || got != want.Digest || size != want.Size {
		t.Errorf("%d of %d bytes of %s: %v", size, want.Size, want.Digest, err)
	}

	o, err := s.Stat(t.Context(), want.Digest)
	if err != nil || o.Digest != want.Digest || o.Size != want.Size {
		t.Errorf("it is described as %+v, %v, want %+v", o, err, want)
	}
}

func list(t *testing.T, s objects.Store) (all []objects.Object) {
	t.Helper()
	err := s.List(t.Context(), func(o objects.Object) error {
		all = append(all, o)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func digests(all []objects.Object) (names []string) {
	for _, o := range all {
		names = append(names, o.Digest)
	}
	return names
}

func testRoundTrip(t *testing.T, kit Kit) {
	s := kit.Open()
	for i, size := range []int64{0, 1, large, largest} {
		t.Run(fmt.Sprint(size), func(t *testing.T) {
			begun := time.Now()
			want := Digest(t, Bytes(byte(i), size))
			o := put(t, s, Bytes(byte(i), size))
			if o.Digest != want || o.Size != size {
				t.Errorf("%+v, want %s with %d bytes", o, want, size)
			}

			if apart := o.Stored.Sub(begun).Abs(); apart > time.Hour {
				t.Errorf("it was stored at %s, which is %s away", o.Stored, apart)
			}
			wantWhole(t, kit.Open(), o)
		})
	}
}

func testEqualBytes(t *testing.T, kit Kit) {
	one := put(t, kit.Open(), strings.NewReader("same"))
	two := put(t, kit.Open(), iotest.OneByteReader(strings.NewReader("same")))
	if one.Digest != two.Digest || one.Size != two.Size {
		t.Errorf("%+v and %+v", one, two)
	}

	if all := list(t, kit.Open()); len(all) != 1 {
		t.Errorf("equal bytes are stored as %+v", all)
	}
	wantWhole(t, kit.Open(), one)
}

// testRenewal puts the same bytes until the time has changed, because a store may count seconds.
func testRenewal(t *testing.T, kit Kit) {
	s := kit.Open()
	first := put(t, s, strings.NewReader("again"))
	again := first
	for !again.Stored.After(first.Stored) {
		select {
		case <-time.After(20 * time.Millisecond):
		case <-t.Context().Done():
			t.Fatalf("Put does not renew %s", first.Stored)
		}
		again = put(t, s, strings.NewReader("again"))
	}

	described, err := s.Stat(t.Context(), first.Digest)
	if err != nil || described.Stored.Before(again.Stored) {
		t.Errorf("it is described as %+v, %v, want the time %s", described, err, again.Stored)
	}
	second := again.Stored.Truncate(time.Second)
	if all := list(t, s); len(all) != 1 || all[0].Stored.Truncate(time.Second).Before(second) {
		t.Errorf("it is listed as %+v, want the time %s", all, again.Stored)
	}
	wantWhole(t, s, first)
}

func testList(t *testing.T, kit Kit) {
	s := kit.Open()
	if all := list(t, s); all != nil {
		t.Errorf("an empty store has %+v", all)
	}
	var want []objects.Object
	for i := range 40 {
		want = append(want, put(t, s, Bytes(byte(i), int64(i))))
	}

	slices.SortFunc(want, func(a, b objects.Object) int { return strings.Compare(a.Digest, b.Digest) })

	all := list(t, kit.Open())
	if !slices.Equal(digests(all), digests(want)) {
		t.Fatalf("listed are %q, want %q", digests(all), digests(want))
	}
	for i, o := range all {
		if o.Size != want[i].Size || o.Stored.IsZero() {
			t.Errorf("listed is %+v, want %+v", o, want[i])
		}
	}

	enough, calls := errors.New("enough"), 0
	err := s.List(t.Context(), func(objects.Object) error {
		calls++
		return enough
	})
	if !errors.Is(err, enough) || calls != 1 {
		t.Errorf("List ends with %v after %d calls", err, calls)
	}
}

func testRemove(t *testing.T, kit Kit) {
	s := kit.Open()
	gone, kept := put(t, s, strings.NewReader("gone")), put(t, s, strings.NewReader("kept"))
	for range 2 { // the second time, there is none
		if err := s.Remove(t.Context(), gone.Digest); err != nil {
			t.Error(err)
		}
	}

	if _, err := s.Stat(t.Context(), gone.Digest); !errors.Is(err, objects.ErrNotFound) {
		t.Errorf("it is described although it is removed: %v", err)
	}
	if _, _, err := read(t.Context(), s, gone.Digest); !errors.Is(err, objects.ErrNotFound) {
		t.Errorf("it is read although it is removed: %v", err)
	}

	if got := digests(list(t, s)); !slices.Equal(got, []string{kept.Digest}) {
		t.Errorf("listed are %q", got)
	}
	wantWhole(t, s, kept)
	wantWhole(t, s, put(t, s, strings.NewReader("gone")))
}

func testConcurrentPuts(t *testing.T, kit Kit) {
	stores := []objects.Store{kit.Open(), kit.Open()}
	var wait sync.WaitGroup
	for i := range 16 {
		wait.Go(func() { // each stream four times
			size := int64(i%4) * 700_000
			o, err := stores[i%2].Put(t.Context(), Bytes(byte(i%4), size))
			if err != nil || o.Size != size {
				t.Errorf("%+v, %v", o, err)
			}
		})
	}
	wait.Wait()

	all := list(t, stores[0])
	if len(all) != 4 {
		t.Errorf("four streams are stored as %+v", all)
	}
	for _, o := range all {
		wantWhole(t, stores[0], o)
	}
}

// testConcurrentRemovals checks that a reader gets all bytes of an object or an error, and that Put
// succeeds, or fails, but never loses what it acknowledged without a removal.
func testConcurrentRemovals(t *testing.T, kit Kit) {
	s := kit.Open()
	digest := Digest(t, Bytes(9, 100_000))
	var wait sync.WaitGroup
	for range 4 {
		wait.Go(func() {
			for range 10 {
				_, err := s.Put(t.Context(), Bytes(9, 100_000))
				if err != nil && !errors.Is(err, objects.ErrNotFound) {
					t.Error(err)
				}

				if got, _, err := read(t.Context(), s, digest); err == nil && got != digest {
					t.Errorf("other bytes are read: %s", got)
				} else if err != nil && !errors.Is(err, objects.ErrNotFound) {
					t.Error(err)
				}
				if err := s.Remove(t.Context(), digest); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wait.Wait()
	wantWhole(t, s, put(t, s, Bytes(9, 100_000)))
}

func testFailingReader(t *testing.T, kit Kit) {
	s := kit.Open()
	broken := errors.New("broken")
	for _, size := range []int64{0, 1, large, largest} {
		t.Run(fmt.Sprint(size), func(t *testing.T) {
			_, err := s.Put(t.Context(), io.MultiReader(Bytes(1, size), iotest.ErrReader(broken)))
			if !errors.Is(err, broken) {
				t.Errorf("the reader failed, and Put returned %v", err)
			}

			if all := list(t, s); all != nil {
				t.Errorf("a failed Put left %+v", all)
			}
		})
	}
}

func testEndedContext(t *testing.T, kit Kit) {
	s := kit.Open()
	enough := errors.New("enough")
	o := put(t, s, Bytes(2, large))

	ctx, cancel := context.WithCancelCause(t.Context())
	endless := io.MultiReader(Bytes(3, large), readerFunc(func(p []byte) (int, error) {
		cancel(enough)
		return len(p), nil
	}))
	if _, err := s.Put(ctx, endless); !errors.Is(err, enough) {
		t.Errorf("its context ended, and Put returned %v", err)
	}

	if _, err := s.Open(ctx, o.Digest); !errors.Is(err, enough) {
		t.Errorf("its context has ended, and Open returned %v", err)
	}
	if _, err := s.Stat(ctx, o.Digest); !errors.Is(err, enough) {
		t.Errorf("its context has ended, and Stat returned %v", err)
	}
	if err := s.Remove(ctx, o.Digest); !errors.Is(err, enough) {
		t.Errorf("its context has ended, and Remove returned %v", err)
	}
	if err := s.List(ctx, func(objects.Object) error { return nil }); !errors.Is(err, enough) {
		t.Errorf("its context has ended, and List returned %v", err)
	}

	ctx, cancel = context.WithCancelCause(t.Context())
	r, err := s.Open(ctx, o.Digest)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if _, err := io.ReadFull(r, make([]byte, 1000)); err != nil {
		t.Error(err)
	}

	cancel(enough)
	if _, err := io.Copy(io.Discard, r); !errors.Is(err, enough) {
		t.Errorf("its context ended, and the reader returned %v", err)
	}

	if all := list(t, s); len(all) != 1 {
		t.Errorf("an ended Put left %+v", all)
	}
}

type readerFunc func(p []byte) (int, error)

// Read implements io.Reader.
func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

func testInvalidDigests(t *testing.T, kit Kit) {
	s := kit.Open()
	whole := put(t, s, strings.NewReader("kept"))
	for _, digest := range []string{
		"", "x", "..", "/", whole.Digest[:63], whole.Digest + "0", whole.Digest + "\n", whole.Digest + "\x00",
		strings.ToUpper(whole.Digest), "../" + whole.Digest[3:], whole.Digest[:2] + "/" + whole.Digest,
		string(bytes.Repeat([]byte("../"), 21)) + "e", strings.Repeat("é", 32), "%" + whole.Digest[1:],
	} {
		t.Run(fmt.Sprintf("%q", digest), func(t *testing.T) {
			for attempt, err := range map[string]error{
				"Open":   second(s.Open(t.Context(), digest)),
				"Stat":   second(s.Stat(t.Context(), digest)),
				"Remove": s.Remove(t.Context(), digest),
			} {
				if err == nil || errors.Is(err, objects.ErrNotFound) ||
					!strings.Contains(err.Error(), "not a SHA-256") {
					t.Errorf("%s: %v", attempt, err)
				}
			}
		})
	}
	wantWhole(t, s, whole)
}

func second[T any](_ T, err error) error { return err }
