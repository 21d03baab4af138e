package pagemap

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

// mapFile maps a file with this number of pages copy-on-write, followed by as many anonymous pages.
func mapFile(t *testing.T, pages int) []byte {
	t.Helper()
	path := filepath.Join(t.TempDir(), "pages")
	if err := os.WriteFile(path, make([]byte, pages*pageSize), 0o600); err != nil {
		t.Fatal(err)
	}
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	access, private := unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE
	memory, err := unix.Mmap(-1, 0, 2*pages*pageSize, access, private|unix.MAP_ANONYMOUS)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Munmap(memory) })
	at := unsafe.Pointer(unsafe.SliceData(memory))
	_, err = unix.MmapPtr(int(file.Fd()), 0, at, uintptr(pages*pageSize), access, private|unix.MAP_FIXED)
	if err != nil {
		t.Fatal(err)
	}
	return memory
}

// TestBothWaysFindPrivatePages writes every third page, so that there are more runs than fit into
// one request, and some adjacent pages.
func TestBothWaysFindPrivatePages(t *testing.T) {
	const pages = 1500
	memory := mapFile(t, pages)
	file, err := table()
	if err != nil {
		t.Fatal(err)
	}

	var want []Run
	sum := byte(0)
	for i := range 2 * pages {
		at := uint64(i) * pageSize
		switch {
		case i%3 == 0 || i%100 < 10:
			memory[at] = 1
			want = join(want, Run{at, at + pageSize})
		case i < pages: // a page of the file is present, but not private
			sum += memory[at]
		}
	}
	if sum != 0 {
		t.Fatal("the file is not zero")
	}

	byRead, err := read(file, memory)
	if err != nil || !slices.Equal(byRead, want) {
		t.Errorf("read: %d runs, %v; want %d", len(byRead), err, len(want))
	}
	got, err := Private(memory)
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("Private: %d runs, %v; want %d", len(got), err, len(want))
	}
	if got, err := Private(nil); got != nil || err != nil {
		t.Errorf("no memory: %v, %v", got, err)
	}
	if cannotScan.Load() {
		t.Skip("this kernel cannot look for pages")
	}

	if _, err := PrivateOfFew(memory, pages); !errors.Is(err, ErrMany) {
		t.Errorf("of many pages: %v", err)
	}
	few := memory[:90*pageSize]
	end, _ := slices.BinarySearchFunc(want, uint64(len(few)), func(r Run, at uint64) int {
		return int(r.Start) - int(at)
	})
	if got, err := PrivateOfFew(few, pages); err != nil || !slices.Equal(got, want[:end]) {
		t.Errorf("PrivateOfFew: %v, %v; want %v", got, err, want[:end])
	}
}
