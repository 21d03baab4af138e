package bigtext

import (
	"os"
	"path/filepath"
	"runtime"
	"testing"
)

// sparseFile returns a file of size bytes that contains s at each of the positions at.
func sparseFile(t *testing.T, size int64, s string, at ...int64) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "sparse")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := f.Truncate(size); err != nil {
		t.Skip(err)
	}
	for _, p := range at {
		if _, err := f.WriteAt([]byte(s), p); err != nil {
			t.Fatal(err)
		}
	}
	return path
}

func TestSparse(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("holes are looked for on linux only")
	}
	const size = 64 << 30 // reading the holes would take many minutes
	s := " é needle needle\n\n\n"
	text := open(t, sparseFile(t, size, s, 5, 1<<30+4095, 7<<30, size-int64(len(s))))
	n, err := text.Len(bg)
	if err != nil || n != size-4 {
		t.Fatal(n, err)
	}
	if len(text.findHoles()) == 0 {
		t.Skip("the file system knows no holes")
	}
	if c, err := text.Count(bg, []byte("needle"), 0, n); c != 8 || err != nil {
		t.Error(c, err)
	}
	if c, err := text.Count(bg, []byte("\n\n"), 0, n); c != 4 || err != nil {
		t.Error(c, err)
	}
	if at, err := text.RFind(bg, []byte("é"), 0, n-18); at != 7<<30-1 || err != nil {
		t.Error(at, err)
	}
	if at, err := text.Find(bg, []byte("absent"), 0, n); at != -1 || err != nil {
		t.Error(at, err)
	}
	for sp, want := range map[Splitter]int64{
		Lines(): 12, Newlines(): 12, Fields(): 16, Sep([]byte("needle")): 9, Sep([]byte("\n\n")): 5,
	} {
		if c, err := text.Parts(bg, sp, 0, n); c != want || err != nil {
			t.Errorf("%v: %d %v; want %d", sp, c, err, want)
		}
	}
	for _, expr := range []string{`n\w+e`, `needle`, `(?s)é.*?needle`} {
		t.Run(expr, func(t *testing.T) {
			re, err := CompileRegexp(t.Context(), expr)
			if err != nil {
				t.Fatal(err)
			}
			want := int64(8)
			if expr[0] == '(' {
				want = 4
			}
			if c, err := countRegexp(text, re, n); c != want || err != nil {
				t.Errorf("%q: %d %v", expr, c, err)
			}
		})
	}
}
