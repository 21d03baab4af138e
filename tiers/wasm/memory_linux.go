package wasm

import (
	"errors"
	"fmt"
	"os"
	"sync"
	"unsafe"

	"golang.org/x/sys/unix"
)

const (
	pageSize = 4096
	guard    = 64 << 10
)

// image is the memory of a guest that has been prepared: every sandbox starts as
// a copy-on-write view of it. It lies in a sealed memfd, so that nobody can
// change it under the sandboxes that share its pages.
type image struct {
	file *os.File
	size uint64
	// view is the image's bytes, read-only, to compare against.
	view []byte
	// hot are the runs of pages that any snippet writes to, as byte offsets.
	hot []span

	mu   sync.Mutex
	free map[uint64][]uintptr // mappings that were given back, by their length
}

// poolBytes bounds the address space kept for reuse.
const poolMappings = 64

func newImage(data []byte) (*image, error) {
	fd, err := unix.MemfdCreate("rlm-image", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	if err != nil {
		return nil, fmt.Errorf("cannot create the image's memory: %w", err)
	}
	img := &image{file: os.NewFile(uintptr(fd), "rlm-image"), size: uint64(len(data)), free: map[uint64][]uintptr{}}
	if err := img.fill(data); err != nil {
		return nil, errors.Join(fmt.Errorf("cannot fill the image's memory: %w", err), img.close())
	}
	return img, nil
}

// fill writes the pages that are not zero; the others stay holes that cost
// nothing.
func (img *image) fill(data []byte) error {
	if err := img.file.Truncate(int64(len(data))); err != nil {
		return err
	}
	for _, run := range dirtyRuns(data) {
		if _, err := img.file.WriteAt(data[run.start:run.end], int64(run.start)); err != nil {
			return err
		}
	}
	seals := unix.F_SEAL_WRITE | unix.F_SEAL_GROW | unix.F_SEAL_SHRINK | unix.F_SEAL_SEAL
	if _, err := unix.FcntlInt(img.file.Fd(), unix.F_ADD_SEALS, seals); err != nil {
		return err
	}
	view, err := unix.Mmap(int(img.file.Fd()), 0, len(data), unix.PROT_READ, unix.MAP_SHARED)
	img.view = view
	return err
}

// close unmaps what the image holds. No sandbox may use it any more.
func (img *image) close() error {
	img.mu.Lock()
	defer img.mu.Unlock()
	for length, list := range img.free {
		for _, addr := range list {
			unmap(addr, length)
		}
	}
	img.free = nil
	var err error
	if img.view != nil {
		err = unix.Munmap(img.view)
	}
	return errors.Join(err, img.file.Close())
}

// mapping is a sandbox's linear memory: a guard, the image copy-on-write,
// zeros up to the limit, a guard. It never moves.
type mapping struct {
	img    *image
	addr   uintptr
	length uint64
	used   uint64
	watch  *memoryWatch
}

// allocate maps memory that begins as size bytes, at least the image's, and can
// grow to limit.
func (img *image) allocate(size, limit uint64, watch *memoryWatch) (linearMemory, error) {
	limit = max(limit, size, img.size)
	m := &mapping{img: img, length: limit, used: max(size, img.size), watch: watch}
	if m.addr = img.reuse(limit); m.addr != 0 {
		m.prefault()
		return m, nil
	}
	addr, err := reserve(limit)
	if err != nil {
		return nil, err
	}
	m.addr = addr
	if _, err := mmap(addr, img.size, unix.PROT_READ|unix.PROT_WRITE,
		unix.MAP_PRIVATE|unix.MAP_FIXED|unix.MAP_NORESERVE, int(img.file.Fd())); err != nil {
		unmap(addr, limit)
		return nil, fmt.Errorf("cannot map the image: %w", err)
	}
	m.prefault()
	return m, nil
}

// prefault breaks the copy-on-write of the pages that every snippet writes, in
// a few calls instead of a fault each.
func (m *mapping) prefault() {
	const populateWrite = 23 // MADV_POPULATE_WRITE; kernels before 5.14 refuse it, which costs only time
	for _, run := range m.img.hot {
		_, _, _ = unix.Syscall(unix.SYS_MADVISE, m.addr+uintptr(run.start), uintptr(run.end-run.start), populateWrite)
	}
}

func (img *image) reuse(length uint64) uintptr {
	img.mu.Lock()
	defer img.mu.Unlock()
	list := img.free[length]
	if len(list) == 0 {
		return 0
	}
	addr := list[len(list)-1]
	img.free[length] = list[:len(list)-1]
	return addr
}

// Reallocate is wazero's request for size bytes in all. Nil refuses.
func (m *mapping) Reallocate(size uint64) []byte {
	if size > m.length {
		m.watch.refused = true
		return nil
	}
	m.used = max(m.used, size)
	m.watch.peak = max(m.watch.peak, m.used)
	return m.bytes()[:m.used:m.length]
}

func (m *mapping) bytes() []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(m.addr)), m.length) //nolint:govet // the address of our own mapping, which does not move
}

// Free drops the private pages and keeps the mapping for the next sandbox: the
// image's part shows the image again, the rest reads as zeros.
func (m *mapping) Free() {
	if m.addr == 0 {
		return
	}
	addr := m.addr
	m.addr = 0
	if _, _, errno := unix.Syscall(unix.SYS_MADVISE, addr, uintptr(m.length), unix.MADV_DONTNEED); errno == 0 && m.img.keep(addr, m.length) {
		return
	}
	unmap(addr, m.length)
}

func (img *image) keep(addr uintptr, length uint64) bool {
	img.mu.Lock()
	defer img.mu.Unlock()
	if img.free == nil || len(img.free[length]) >= poolMappings || len(img.free) > 8 {
		return false
	}
	img.free[length] = append(img.free[length], addr)
	return true
}

// dirty lists the pages of m that may differ from the image, by the kernel's
// page table where it can be read.
func (m *mapping) dirty() []span {
	runs, err := m.privatePages()
	if err != nil {
		runs = []span{{0, m.used}}
	}
	return runs
}

// privatePages reads /proc/self/pagemap: a page that is present and not the
// file's is private to this mapping.
func (m *mapping) privatePages() ([]span, error) {
	f, err := os.Open("/proc/self/pagemap")
	if err != nil {
		return nil, err
	}
	defer f.Close() //nolint:errcheck // read only
	table := make([]uint64, m.used/pageSize)
	raw := unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(table))), len(table)*8)
	if _, err := f.ReadAt(raw, int64(m.addr/pageSize*8)); err != nil {
		return nil, err
	}
	const present, swapped, file = 1 << 63, 1 << 62, 1 << 61
	var runs []span
	for i, entry := range table {
		if entry&(present|swapped) != 0 && entry&file == 0 {
			runs = appendPage(runs, uint64(i)*pageSize)
		}
	}
	return runs, nil
}

// original returns the image's bytes at [start, end), nil where it has none.
func (img *image) original(start, end uint64) []byte {
	if end > img.size {
		return nil
	}
	return img.view[start:end]
}

func mmap(addr uintptr, length uint64, prot, flags, fd int) (uintptr, error) {
	r, _, errno := unix.Syscall6(unix.SYS_MMAP, addr, uintptr(length), uintptr(prot), uintptr(flags), uintptr(fd), 0)
	if errno != 0 {
		return 0, errno
	}
	return r, nil
}

// reserve maps length bytes of zeros between two guards that fault.
func reserve(length uint64) (uintptr, error) {
	base, err := mmap(0, length+2*guard, unix.PROT_NONE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS|unix.MAP_NORESERVE, -1)
	if err != nil {
		return 0, fmt.Errorf("cannot reserve %d MiB of address space: %w", length>>20, err)
	}
	addr := base + guard
	if _, _, errno := unix.Syscall(unix.SYS_MPROTECT, addr, uintptr(length), unix.PROT_READ|unix.PROT_WRITE); errno != 0 {
		unmap(addr, length)
		return 0, fmt.Errorf("cannot reserve %d MiB of memory: %w", length>>20, errno)
	}
	return addr, nil
}

func unmap(addr uintptr, length uint64) {
	// It can only fail for arguments that were never mapped.
	_, _, _ = unix.Syscall(unix.SYS_MUNMAP, addr-guard, uintptr(length)+2*guard, 0)
}
