package objects_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/rlmhq/rlm/internal/keep/objects"
)

const digestOfABC = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"

func TestOnlyTheBytesOfTheObjectEnd(t *testing.T) {
	for name, c := range map[string]struct {
		bytes string
		size  int64
		want  string // in the error; empty: none
	}{
		"whole":                     {"abc", 3, ""},
		"whole, of an unknown size": {"abc", -1, ""},
		"changed":                   {"abd", 3, "its bytes have the SHA-256 a52d"},
		"truncated":                 {"ab", 3, "it has 2 of 3 bytes"},
		"extended":                  {"abcd", 3, "it has more than 3 bytes"},
		"empty":                     {"", 3, "it has 0 of 3 bytes"},
		"another size":              {"abc", 2, "it has more than 2 bytes"},
	} {
		t.Run(name, func(t *testing.T) {
			for kind, from := range map[string]io.Reader{
				"whole":      strings.NewReader(c.bytes),
				"byte":       iotest.OneByteReader(strings.NewReader(c.bytes)),
				"with error": iotest.DataErrReader(strings.NewReader(c.bytes)),
			} {
				r := objects.Verify(from, objects.Object{Digest: digestOfABC, Size: c.size})
				got, err := io.ReadAll(r)
				if c.want == "" && (err != nil || string(got) != c.bytes) {
					t.Errorf("%s: %q, %v", kind, got, err)
				}
				if c.want != "" && (!errors.Is(err, objects.ErrDamaged) || !strings.Contains(err.Error(), c.want)) {
					t.Errorf("%s: %v, want %q", kind, err, c.want)
				}
				if _, again := r.Read(make([]byte, 1)); c.want != "" && !errors.Is(again, objects.ErrDamaged) {
					t.Errorf("%s: the next call: %v", kind, again)
				}
			}
		})
	}
}

func TestCopyDescribesTheBytes(t *testing.T) {
	var to bytes.Buffer
	got, err := objects.Copy(t.Context(), &to, strings.NewReader("abc"))
	if err != nil || to.String() != "abc" || got != (objects.Object{Digest: digestOfABC, Size: 3}) {
		t.Errorf("%+v, %q, %v", got, to.String(), err)
	}

	failed := errors.New("broken pipe")
	if _, err := objects.Copy(t.Context(), &to, iotest.ErrReader(failed)); !errors.Is(err, failed) ||
		!strings.Contains(err.Error(), "cannot read the bytes to store") {
		t.Error(err)
	}
	enough := errors.New("enough")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(enough)
	if _, err := objects.Copy(ctx, &to, strings.NewReader("abc")); !errors.Is(err, enough) {
		t.Error(err)
	}
}
