package graph

import (
	"os"
	"runtime"
	"sync"
	"unsafe"

	"golang.org/x/sys/unix"
)

// span is a part of a view, in whole pages.
type span struct{ start, end uint64 }

// changed lists the pages of a range that are private to the view. Without the kernel's page
// table, all may be.
func (m *memory) changed(start, end uint64) ([]span, error) {
	if start == end {
		return nil, nil
	}
	pagemap, err := os.Open("/proc/self/pagemap")
	if err != nil {
		return []span{{start, end}}, nil // all pages are then written
	}
	defer pagemap.Close()

	table := make([]uint64, (end-start)/pageSize)
	raw := unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(table))), len(table)*8)
	first := uintptr(unsafe.Pointer(&m.data[start])) / pageSize
	if _, err := pagemap.ReadAt(raw, int64(first*8)); err != nil {
		return []span{{start, end}}, nil
	}

	const present, swapped, file = 1 << 63, 1 << 62, 1 << 61
	var runs []span
	for i, entry := range table {
		if entry&(present|swapped) == 0 || entry&file != 0 {
			continue
		}
		at := start + uint64(i)*pageSize
		if n := len(runs); n > 0 && runs[n-1].end == at {
			runs[n-1].end += pageSize
		} else {
			runs = append(runs, span{at, at + pageSize})
		}
	}
	return runs, nil
}

// pagemap is the kernel's table of the process's pages, nil without one.
var pagemap = sync.OnceValue(func() *os.File {
	file, err := os.Open("/proc/self/pagemap")
	if err != nil {
		return nil
	}
	return file
})

// What ioctl(PAGEMAP_SCAN) of Linux 6.7 takes and returns: see linux/fs.h.
type (
	scanRequest struct {
		size, flags, start, end, walkEnd     uint64
		regions, regionCount, maxPages       uint64
		inverted, mask, anyOf, returnedKinds uint64
	}
	pageRegion struct{ start, end, kinds uint64 }
)

const (
	pagemapScan  = 0xc0606610
	kindFile     = 1 << 2
	kindPresent  = 1 << 3
	kindSwapped  = 1 << 4
	maxRegions   = 256
	maxScanned   = 4096 // pages: a look at more takes longer than to map them anew
	smallestHole = 64 * pageSize
)

// written returns spans with all pages that the view has written, among few others. The other
// pages stay mapped for the next query, which else has a page fault for each of them. It is the
// whole view if the kernel cannot tell or many pages are mapped.
func (m *memory) written() []span {
	all := []span{{0, m.used}}
	table := pagemap()
	if table == nil {
		return all
	}
	base := uint64(uintptr(unsafe.Pointer(unsafe.SliceData(m.data))))
	var regions [maxRegions]pageRegion
	var pinner runtime.Pinner // the request has the address as a number
	pinner.Pin(&regions)
	defer pinner.Unpin()
	request := scanRequest{
		start: base, end: base + m.used,
		regions: uint64(uintptr(unsafe.Pointer(&regions))), regionCount: maxRegions,
		maxPages: maxScanned, anyOf: kindPresent | kindSwapped, returnedKinds: kindFile,
	}
	request.size = uint64(unsafe.Sizeof(request))
	count, _, failed := unix.Syscall(unix.SYS_IOCTL, table.Fd(), pagemapScan,
		uintptr(unsafe.Pointer(&request)))
	if failed != 0 || request.walkEnd < request.end {
		return all
	}

	var spans []span
	for _, region := range regions[:count] {
		if region.kinds&kindFile != 0 {
			continue
		}
		start, end := region.start-base, region.end-base
		if n := len(spans); n > 0 && start-spans[n-1].end < smallestHole {
			spans[n-1].end = end // one call for both takes less time
		} else {
			spans = append(spans, span{start, end})
		}
	}
	return spans
}
