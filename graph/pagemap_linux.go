package graph

import "github.com/rlmhq/rlm/internal/machine/pagemap"

// span is a part of a view, in whole pages.
type span struct{ start, end uint64 }

// changed lists the pages of a range that are private to the view. Without the kernel's page table,
// it lists all pages.
func (m *memory) changed(start, end uint64) []span {
	if start == end {
		return nil
	}
	runs, err := pagemap.Private(m.data[start:end])
	if err != nil {
		return []span{{start, end}} // in this case, all pages are written
	}

	spans := make([]span, len(runs))
	for i, run := range runs {
		spans[i] = span{start + run.Start, start + run.End}
	}
	return spans
}

const (
	maxScanned   = 4096 // pages: scanning more takes longer than mapping them again
	smallestHole = 64 * pageSize
)

// written returns spans with all pages that the view has written, and few others. The remaining
// pages stay mapped for the next query, which would otherwise take a page fault for each. written
// returns the whole view if the kernel cannot report the pages or if many pages are mapped.
func (m *memory) written() []span {
	runs, err := pagemap.PrivateOfFew(m.data[:m.used], maxScanned)
	if err != nil {
		return []span{{0, m.used}}
	}

	var spans []span
	for _, run := range runs {
		if n := len(spans); n > 0 && run.Start-spans[n-1].end < smallestHole {
			spans[n-1].end = run.End // a single call for both spans is faster
		} else {
			spans = append(spans, span{run.Start, run.End})
		}
	}
	return spans
}
