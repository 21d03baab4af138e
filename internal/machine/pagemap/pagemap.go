//go:build linux

// Package pagemap finds the private pages of this process: present or swapped out, and not part of
// a file. It reads them from the kernel's page table.
package pagemap

import (
	"errors"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"
)

const pageSize = 4096

// Run is a run of pages of a memory: the offset of its first byte, and the offset after its last
// byte.
type Run struct{ Start, End uint64 }

// table is the kernel's page table of this process.
var table = sync.OnceValues(func() (*os.File, error) { return os.Open("/proc/self/pagemap") })

// cannotScan is set if the kernel is older than Linux 6.7, or if a jail would kill the process for
// the attempt.
var cannotScan atomic.Bool

// Keep opens the table for a process that is about to lock itself down, and could not open it
// afterwards.
func Keep() error {
	cannotScan.Store(true)
	_, err := table()
	return err
}

// Private lists the private pages of a memory that consists of whole pages.
func Private(memory []byte) ([]Run, error) {
	file, err := table()
	if err != nil || len(memory) == 0 {
		return nil, err
	}
	if !cannotScan.Load() {
		runs, err := scan(file, memory, scanRequest{
			inverted: isFile, all: isFile, any: isPresent | isSwapped, returned: isPresent,
		})
		if !errors.Is(err, unix.ENOTTY) {
			return runs, err
		}
		cannotScan.Store(true)
	}
	return read(file, memory)
}

// ErrMany reports that too many pages are mapped, or that the kernel is too old to count them.
var ErrMany = errors.New("too many pages are mapped")

// PrivateOfFew is like Private, for a memory in which the number of mapped pages, including those
// of files, does not exceed most. Its time is bounded: with more pages it returns ErrMany.
func PrivateOfFew(memory []byte, most int) ([]Run, error) {
	file, err := table()
	if err != nil || len(memory) == 0 {
		return nil, err
	}
	if cannotScan.Load() {
		return nil, ErrMany
	}
	return scan(file, memory, scanRequest{
		any: isPresent | isSwapped, returned: isFile, most: uint64(most), //nolint:gosec // positive
	})
}

// scanRequest and region are the kernel's struct pm_scan_arg and page_region.
type scanRequest struct {
	size, flags, start, end, walkEnd, regions, regionCount, most uint64
	inverted, all, any, returned                                 uint64
}

type region struct{ start, end, kinds uint64 }

// These are the request, and the kinds of pages: see linux/fs.h.
const (
	pagemapScan = 0xc0606610
	isFile      = 1 << 2
	isPresent   = 1 << 3
	isSwapped   = 1 << 4
)

// scan makes the kernel search for pages, and lists those that belong to no file. Kernels without
// support return ENOTTY.
func scan(file *os.File, memory []byte, request scanRequest) (runs []Run, err error) {
	base := uint64(uintptr(unsafe.Pointer(unsafe.SliceData(memory))))
	var found [256]region
	var pinner runtime.Pinner // the request contains the address as a number
	pinner.Pin(&found)
	defer pinner.Unpin()
	request.size = uint64(unsafe.Sizeof(request))
	request.start, request.end = base, base+uint64(len(memory))
	request.regions = uint64(uintptr(unsafe.Pointer(&found)))
	request.regionCount = uint64(len(found))

	for request.start < request.end {
		n, _, code := unix.Syscall(
			unix.SYS_IOCTL, file.Fd(), pagemapScan, uintptr(unsafe.Pointer(&request)),
		)
		if code != 0 {
			return nil, code
		}
		for _, r := range found[:n] {
			if r.kinds&isFile == 0 {
				runs = join(runs, Run{r.start - base, r.end - base})
			}
		}
		if request.most > 0 && request.walkEnd < request.end {
			return nil, ErrMany
		}
		request.start = request.walkEnd
	}
	return runs, nil
}

// read reads the table's entry for each page.
func read(file *os.File, memory []byte) (runs []Run, err error) {
	entries := make([]uint64, len(memory)/pageSize)
	raw := unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(entries))), len(entries)*8)
	first := uintptr(unsafe.Pointer(unsafe.SliceData(memory))) / pageSize
	if _, err := file.ReadAt(raw, int64(first*8)); err != nil { //nolint:gosec // a page number
		return nil, err
	}

	const present, swapped, ofFile = 1 << 63, 1 << 62, 1 << 61
	for i, entry := range entries {
		if entry&(present|swapped) != 0 && entry&ofFile == 0 {
			runs = join(runs, Run{uint64(i) * pageSize, uint64(i+1) * pageSize})
		}
	}
	return runs, nil
}

// join adds a run to a list, merging it with the last run if they touch.
func join(runs []Run, run Run) []Run {
	if n := len(runs); n > 0 && runs[n-1].End == run.Start {
		runs[n-1].End = run.End
		return runs
	}
	return append(runs, run)
}
