package graph

import (
	"bytes"
	"testing"
)

// newPages returns a view of a state whose pages begin with different bytes.
func newPages(t *testing.T, pages int) *memory {
	t.Helper()
	s, err := newState(uint64(pages)*pageSize, uint64(pages)*pageSize)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.close)
	writer, err := s.view()
	if err != nil {
		t.Fatal(err)
	}
	defer writer.Free()
	for page := range pages {
		writer.data[page*pageSize] = byte(page%250 + 1)
	}
	if err := s.commit(writer); err != nil {
		t.Fatal(err)
	}

	view, err := s.view()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(view.Free)
	return view
}

// TestResetDropsWhatWasWritten resets a view, which must then match the state again, no matter
// which of its pages were written.
func TestResetDropsWhatWasWritten(t *testing.T) {
	const pages = 3 * maxScanned
	for name, step := range map[string]int{
		"none": 2 * pages, "all": 1, "every second": 2, "a few": 1000, "more than the kernel lists": 33,
	} {
		t.Run(name, func(t *testing.T) {
			view := newPages(t, pages)
			want := bytes.Clone(view.data)
			for range 2 {
				for page := step / 2; page < pages; page += step {
					view.data[page*pageSize] ^= 0xff
					view.data[page*pageSize+pageSize-1] = 1
				}
				if !view.reset() || !bytes.Equal(want, view.data) {
					t.Fatal("the view has other bytes than the state")
				}
			}
		})
	}
}

// TestResetKeepsWhatWasRead reads some pages of a view and writes two. Old kernels do not report
// the written pages, so all pages are dropped.
func TestResetKeepsWhatWasRead(t *testing.T) {
	view := newPages(t, maxScanned)
	sum := 0
	for page := range 1000 {
		sum += int(view.data[page*pageSize])
	}
	if want := 4 * 250 * 251 / 2; sum != want {
		t.Fatalf("the pages have the sum %d, not %d", sum, want)
	}

	view.data[500*pageSize], view.data[900*pageSize] = 0, 0
	spans := view.written()
	isAll := len(spans) == 1 && spans[0] == span{0, view.used}
	if !isAll && len(spans) != 2 {
		t.Errorf("written: %v", spans)
	}
	if !view.reset() || view.data[500*pageSize] != 1 || view.data[900*pageSize] != 151 {
		t.Error("the view has other bytes than the state")
	}
}
