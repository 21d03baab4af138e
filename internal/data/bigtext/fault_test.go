//go:build linux || darwin

package bigtext

import (
	"bytes"
	"os"
	"strings"
	"testing"
)

func bigFile(t *testing.T, size int) string {
	t.Helper()
	return writeFile(t, bytes.Repeat([]byte("one line of text é\n"), size/20+1))
}

// truncated returns a mapped text whose file was truncated after it was opened.
func truncated(t *testing.T, warm bool) *Text {
	t.Helper()
	path := bigFile(t, 20<<20)
	text := open(t, path)
	if warm {
		if _, err := text.Len(bg); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Truncate(path, 4096); err != nil {
		t.Fatal(err)
	}
	return text
}

func TestTruncatedWhileIndexing(t *testing.T) {
	text := truncated(t, false)
	for range 2 { // a failed build is not kept
		if _, err := text.Len(bg); !errorsIs(err, ErrChanged) ||
			!strings.Contains(err.Error(), text.Name()) {
			t.Fatal(err)
		}
	}
}

func TestTruncatedWhileInUse(t *testing.T) {
	text := truncated(t, true)
	n, _ := text.Len(bg)
	re, err := CompileRegexp(t.Context(), "absent")
	if err != nil {
		t.Fatal(err)
	}
	errs := map[string]error{"Changed": text.Changed()}
	_, errs["Find"] = text.Find(bg, []byte("absent"), 0, n)
	_, errs["RFind"] = text.RFind(bg, []byte("absent"), 0, n)
	_, errs["Count"] = text.Count(bg, []byte("absent"), 0, n)
	_, errs["Parts"] = text.Parts(bg, Lines(), 0, n)
	_, _, errs["FindRegexp"] = text.FindRegexp(bg, re, 0, n, 0, 1)
	_, _, errs["PartsRange"] = text.PartsRange(bg, Fields(), 0, n, 0, 1)
	for name, err := range errs {
		if !errorsIs(err, ErrChanged) || !strings.Contains(err.Error(), text.Name()) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestGuard(t *testing.T) {
	text := FromBytes("", []byte("abc"))
	func() { // another panic propagates
		defer func() {
			if recover() != "mine" {
				t.Error("Guard swallowed a panic")
			}
		}()
		_ = Guard(text, func() { panic("mine") })
	}()
	path := bigFile(t, 1<<20)
	mapped := open(t, path)
	data, _, err := mapped.Slice(bg, 0, 1<<19)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(path, 0); err != nil {
		t.Fatal(err)
	}
	if err := Guard(mapped, func() { _ = bytes.Clone(data) }); !errorsIs(err, ErrChanged) {
		t.Error(err)
	}
}
