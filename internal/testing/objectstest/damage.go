package objectstest

import (
	"errors"
	"slices"
	"testing"

	"github.com/rlmhq/rlm/internal/keep/objects"
)

// damages are ways to damage the stored form of an object. Each changes its bytes.
var damages = map[string]func([]byte) []byte{
	"the first byte": func(b []byte) []byte { return flip(b, 0) },
	"a middle byte":  func(b []byte) []byte { return flip(b, len(b)/2) },
	"the last byte":  func(b []byte) []byte { return flip(b, len(b)-1) },
	"truncated":      func(b []byte) []byte { return b[:len(b)-1] },
	"half":           func(b []byte) []byte { return b[:len(b)/2] },
	"empty":          func([]byte) []byte { return nil },
	"extended":       func(b []byte) []byte { return append(b, 0) },
	"twice":          func(b []byte) []byte { return append(b, b...) },
	"zeros":          func(b []byte) []byte { return make([]byte, len(b)) },
	"other bytes":    func([]byte) []byte { return []byte("nothing that was stored") },
}

func flip(b []byte, at int) []byte {
	b[at] ^= 0x40
	return b
}

func testDamage(t *testing.T, kit Kit) {
	for name, change := range damages {
		t.Run(name, func(t *testing.T) {
			for _, size := range []int64{1, 1000, 300_000} {
				s := kit.Open()
				o := put(t, s, Bytes(5, size))
				kit.Damage(t, o.Digest, func(b []byte) []byte { return change(slices.Clone(b)) })

				got, n, err := read(t.Context(), s, o.Digest)
				if !errors.Is(err, objects.ErrDamaged) {
					t.Errorf("%d bytes of %d with the digest %s, and %v", n, size, got, err)
				}

				if got := digests(list(t, s)); !slices.Contains(got, o.Digest) {
					t.Errorf("a damaged object is not listed: %q", got)
				}
				if err := s.Remove(t.Context(), o.Digest); err != nil {
					t.Errorf("a damaged object is not removed: %v", err)
				}
			}
		})
	}
}

// testDamageIsRepaired checks that Put replaces an object of another length.
func testDamageIsRepaired(t *testing.T, kit Kit) {
	for _, name := range []string{"truncated", "extended", "empty"} {
		t.Run(name, func(t *testing.T) {
			s := kit.Open()
			o := put(t, s, Bytes(6, 1000))

			kit.Damage(t, o.Digest, func(b []byte) []byte { return damages[name](slices.Clone(b)) })
			wantWhole(t, s, put(t, s, Bytes(6, 1000)))
		})
	}
}
