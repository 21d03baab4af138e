package wasm

import (
	"errors"
	"fmt"
	"os"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/rlmhq/rlm/internal/machine/mapbudget"
	"github.com/rlmhq/rlm/internal/machine/pagemap"
	"github.com/rlmhq/rlm/internal/machine/prefault"
)

const (
	pageSize = 4096
	guard    = 64 << 10
)

// mapping is a sandbox's linear memory: a guard, the image (copy-on-write), zeros up to the limit,
// and a guard. It never moves. Texts are mapped, also copy-on-write, where the memory ended when
// they were added.
type mapping struct {
	img   *image
	data  []byte // the mapping between the guards, nil once freed
	used  uint64
	limit uint64 // excluding texts
	// reach is the range within which a faulty access of the guest's code may fall, in bytes; 0 if
	// the code checks each access. Unused memory within reach faults.
	reach    uint64
	texts    []span
	watch    *memoryWatch
	textMaps int // the memory maps of texts that the process's budget counts
	// warm reports whether the hot pages are already private, and ahead whether there may be pages
	// beyond used.
	warm, ahead bool
}

// allocate maps memory of size bytes, at least the image's size, that can grow to limit, plus
// room bytes for texts. reach is the program's.
func (img *image) allocate(
	size, limit, room, reach uint64, watch *memoryWatch,
) (linearMemory, error) {
	limit = max(limit, img.size)
	length := max(limit+room, size)
	m := &mapping{img: img, used: max(size, img.size), limit: limit, reach: reach, watch: watch}
	if m.data = img.reuse(length, reach); m.data != nil {
		if err := m.admit(img.size, m.used); err != nil {
			return nil, errors.Join(err, release(m.data, reach))
		}
		return m, nil
	}
	data, err := reserve(length, reach)
	if err != nil {
		return nil, err
	}

	m.data = data
	err = m.admit(0, m.used)
	if err == nil {
		err = img.show(data, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_NORESERVE)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("cannot map the image: %w", err), release(data, reach))
	}

	return m, nil
}

// admit makes a part of the memory accessible to the guest. Before, accesses to that part faulted.
func (m *mapping) admit(start, end uint64) error {
	if m.reach == 0 || start >= end {
		return nil // the whole memory is accessible from the beginning
	}
	if err := unix.Mprotect(m.data[start:end], unix.PROT_READ|unix.PROT_WRITE); err != nil {
		return fmt.Errorf("cannot make %d MiB of memory accessible: %w", (end-start)>>20, err)
	}
	return nil
}

// hide reverses admit from start on, and reports whether that succeeded.
func (m *mapping) hide(start uint64) bool {
	return m.reach == 0 || start == uint64(len(m.data)) ||
		unix.Mprotect(m.data[start:], unix.PROT_NONE) == nil
}

// prefault copies the pages that every snippet writes, in a few system calls instead of a page
// fault for each.
func (m *mapping) prefault() {
	if m.warm {
		return
	}
	for _, run := range m.img.hot {
		// Kernels before 5.14 refuse this. The pages then fault one by one.
		_ = unix.Madvise(m.data[run.Start:run.End], unix.MADV_POPULATE_WRITE)
	}
}

// expect makes the kernel provide pages where the memory is about to grow, until end is called.
func (m *mapping) expect(bytes uint64) (end func()) {
	last := min(m.used+bytes, m.limit, uint64(len(m.data)))
	if last < m.used+prefault.Least {
		return func() {}
	}
	m.ahead = true
	if m.admit(m.used, last) != nil {
		return func() {}
	}
	stop := prefault.Begin(m.data[m.used:last])
	return func() {
		stop()
		m.hide(m.used) // if it fails, accesses there do not trap, but stay within this memory
	}
}

// resetBytes bounds the private pages that reset keeps.
const resetBytes = 512 * pageSize

// reset restores the image's bytes and reports whether that succeeded. It overwrites the few pages
// that a small snippet changed and keeps them private. Dropping them instead would flush their
// address translations on all processors of this process, page by page.
func (m *mapping) reset(watch *memoryWatch) bool {
	if m.used != m.img.size || m.ahead {
		return false
	}
	runs, err := m.privatePages()
	if err != nil || length(runs) > resetBytes {
		if !m.drop() {
			return false
		}
		runs = nil
	}

	for _, run := range runs {
		copy(m.data[run.Start:run.End], m.img.view[run.Start:run.End])
	}
	m.watch, m.warm = watch, len(runs) > 0
	return true
}

func (m *mapping) drop() bool { return unix.Madvise(m.data, unix.MADV_DONTNEED) == nil }

// Reallocate grows the memory to size bytes for an engine. It returns nil beyond the limit.
func (m *mapping) Reallocate(size uint64) []byte {
	if size > uint64(len(m.data)) || size > m.limit+length(m.texts) || m.admit(m.used, size) != nil {
		m.watch.refused = true
		return nil
	}
	m.used = max(m.used, size)
	m.watch.peak = max(m.watch.peak, m.own())
	return m.data[:m.used]
}

func (m *mapping) bytes() []byte { return m.data }

// newTestMemory returns a page of memory without an image.
func newTestMemory(reach uint64) (*mapping, error) {
	data, err := reserve(wasmPage, reach)
	if err != nil {
		return nil, err
	}
	m := &mapping{img: &image{}, data: data, used: wasmPage, limit: wasmPage, reach: reach}
	if err := m.admit(0, wasmPage); err != nil {
		return nil, errors.Join(err, release(data, reach))
	}
	return m, nil
}

// state returns the page before the memory, which the guest cannot reach, for the state of a
// machine.
func (m *mapping) state() ([]byte, error) {
	start := unsafe.Add(unsafe.Pointer(unsafe.SliceData(m.data)), -pageSize)
	page := unsafe.Slice((*byte)(start), pageSize)
	if err := unix.Mprotect(page, unix.PROT_READ|unix.PROT_WRITE); err != nil {
		return nil, fmt.Errorf("cannot prepare the state of a guest: %w", err)
	}
	return page, nil
}

func (m *mapping) own() uint64 { return m.used - length(m.texts) }

// addText adds a text to the memory.
func (m *mapping) addText(text span) error {
	if text.End > uint64(len(m.data)) {
		return fmt.Errorf("cannot map a text of %d MiB: the sandbox has room for %d MiB more",
			(text.End-text.Start)>>20, (uint64(len(m.data))-min(m.used, uint64(len(m.data))))>>20)
	}
	m.texts = append(m.texts, text)
	return nil
}

// mapText maps a file over a text. The mapping must stay writable, because a fault in the guest's
// machine code would be a trap, or end this process.
func (m *mapping) mapText(text span, file *os.File, size int64) error {
	err := mapbudget.Process().Take(mapsOfText)
	if err == nil {
		m.textMaps += mapsOfText
		_, err = unix.MmapPtr(
			int(file.Fd()), 0, unsafe.Pointer(&m.data[text.Start]), uintptr(size),
			unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_FIXED|unix.MAP_NORESERVE,
		)
	}
	if err != nil {
		return fmt.Errorf("cannot map a text of %d MiB: %w", size>>20, err)
	}
	return nil
}

// Free drops the private pages and returns the mapping for reuse.
func (m *mapping) Free() {
	if m.data == nil {
		return
	}
	// Texts must not reach the next sandbox.
	if len(m.texts) > 0 || !m.drop() || !m.shrink() || !m.img.keep(m.data, m.reach) {
		_ = release(m.data, m.reach) // fails only for memory that was never mapped
		mapbudget.Process().Give(m.textMaps)
	}
	m.data = nil
}

// shrink hides everything beyond the image's size again.
func (m *mapping) shrink() bool {
	return m.used == m.img.size && !m.ahead || m.hide(m.img.size)
}

// dirty lists the pages of m that may differ from the image. It reads the kernel's page table
// if possible.
func (m *mapping) dirty() []span {
	runs, err := m.privatePages()
	if err != nil {
		return m.ownParts()
	}
	return runs
}

// ownParts lists the memory in use without the texts.
func (m *mapping) ownParts() []span {
	var parts []span
	start := uint64(0)
	for _, text := range m.texts { // in the order of their addresses
		parts = append(parts, span{start, text.Start})
		start = text.End
	}
	return append(parts, span{start, m.used})
}

// privatePages lists the pages that do not belong to the image's file, from the kernel's table.
func (m *mapping) privatePages() ([]span, error) {
	var runs []span
	for _, part := range m.ownParts() {
		found, err := pagemap.Private(m.data[part.Start:part.End])
		if err != nil {
			return nil, err
		}
		for _, run := range found {
			runs = append(runs, span{part.Start + run.Start, part.Start + run.End})
		}
	}
	return runs, nil
}

// The memory maps that count towards the process's budget. A memory has maps for its state, the
// image, the grown part, and the rest; its sandbox has one for a checkpoint. A text also splits the
// map around it.
const (
	mapsOfMemory = 5
	mapsOfText   = 2
)

// reserve maps length bytes of zeros between two guards that fault. If reach is not 0, no byte up
// to it is accessible yet: see admit.
func reserve(length, reach uint64) ([]byte, error) {
	if err := mapbudget.Process().Take(mapsOfMemory); err != nil {
		return nil, fmt.Errorf("cannot reserve memory for a sandbox: %w", err)
	}
	flags := unix.MAP_PRIVATE | unix.MAP_ANONYMOUS | unix.MAP_NORESERVE
	base, err := unix.MmapPtr(-1, 0, nil, reserved(length, reach), unix.PROT_NONE, flags)
	if err != nil {
		mapbudget.Process().Give(mapsOfMemory)
		return nil, fmt.Errorf(
			"cannot reserve %d MiB of address space: %w: close sandboxes, or raise ulimit -v or "+
				"vm.max_map_count", reserved(length, reach)>>20, err,
		)
	}
	data := unsafe.Slice((*byte)(unsafe.Add(base, guard)), length)
	if reach > 0 {
		return data, nil
	}
	if err := unix.Mprotect(data, unix.PROT_READ|unix.PROT_WRITE); err != nil {
		return nil, errors.Join(
			fmt.Errorf("cannot reserve %d MiB of memory: %w", length>>20, err), release(data, reach),
		)
	}

	return data, nil
}

// reserved returns the address space of a memory with its guards, in bytes.
func reserved(length, reach uint64) uintptr { return uintptr(guard + max(length, reach) + guard) }

// release unmaps memory mapped by reserve.
func release(data []byte, reach uint64) error {
	mapbudget.Process().Give(mapsOfMemory)
	base := unsafe.Add(unsafe.Pointer(unsafe.SliceData(data)), -guard)
	return unix.MunmapPtr(base, reserved(uint64(len(data)), reach))
}

// buffer is memory outside Go's heap. Go's heap would grow by doubling, treat the buffer as the
// program's own memory, and retain it after use.
type buffer struct{ data []byte }

// resize changes the buffer's size and keeps its bytes, up to the new size. After an error, the
// buffer is unchanged.
func (b *buffer) resize(size uint64) error {
	old := len(b.data)
	var data []byte
	var err error
	switch {
	case size == uint64(old):
		return nil
	case size == 0:
		b.free()
		return nil
	case old == 0:
		flags := unix.MAP_PRIVATE | unix.MAP_ANONYMOUS
		data, err = unix.Mmap(-1, 0, int(size), unix.PROT_READ|unix.PROT_WRITE, flags)
	default:
		data, err = unix.Mremap(b.data, int(size), unix.MREMAP_MAYMOVE)
	}

	if err != nil {
		return fmt.Errorf("cannot allocate %d MiB: %w", size>>20, err)
	}
	b.data = data
	if old < len(data) {
		// Kernels before 5.14 refuse this. The pages then fault one by one.
		_ = unix.Madvise(data[old:], unix.MADV_POPULATE_WRITE)
	}

	return nil
}

// free returns the memory to the system.
func (b *buffer) free() {
	if b.data != nil {
		_ = unix.Munmap(b.data) // fails only for memory that was never mapped
		b.data = nil
	}
}
