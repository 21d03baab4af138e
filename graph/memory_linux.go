package graph

import (
	"errors"
	"fmt"
	"os"
	"unsafe"

	"golang.org/x/sys/unix"
)

const (
	pageSize = 4096
	guard    = 64 << 10
)

// state is the engine's memory after the last update. The memory is in a memfd, of which the
// instances have copy-on-write views.
type state struct {
	file  *os.File
	size  uint64 // bytes in use, a whole number of wasm pages
	limit uint64 // the largest size to which it may grow
}

func newState(size, limit uint64) (*state, error) {
	if limit < size {
		return nil, fmt.Errorf("graph.Config: MaxMemory is less than the engine's %d MiB", size>>20)
	}
	fd, err := unix.MemfdCreate("rlm-graph", unix.MFD_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("cannot create a file in memory: %w", err)
	}

	s := &state{file: os.NewFile(uintptr(fd), "rlm-graph"), size: size, limit: limit}
	if err := s.file.Truncate(int64(size)); err != nil {
		return nil, errors.Join(err, s.file.Close())
	}
	return s, nil
}

// close frees the state. Close all views first.
func (s *state) close() { _ = s.file.Close() } // the memory is freed in any case

// memory is an instance's view of the state: a guard, the copy-on-write state, zeros up to the
// limit, and a guard. It never moves.
type memory struct {
	state   *state
	data    []byte // between the guards, nil once freed
	mapped  uint64 // the part that maps the state
	used    uint64
	refused bool // growth beyond the limit was refused
}

func (s *state) view() (*memory, error) {
	flags := unix.MAP_PRIVATE | unix.MAP_ANONYMOUS | unix.MAP_NORESERVE
	base, err := unix.MmapPtr(-1, 0, nil, uintptr(s.limit)+2*guard, unix.PROT_NONE, flags)
	if err != nil {
		return nil, fmt.Errorf("cannot reserve %d MiB of address space: %w", s.limit>>20, err)
	}
	data := unsafe.Slice((*byte)(unsafe.Add(base, guard)), s.limit)
	m := &memory{state: s, data: data, used: s.size}
	// A load writes much fresh memory, and looks up nodes at many places in it: with small pages,
	// it takes 25% longer. A kernel without large pages refuses, which does no harm.
	_ = unix.Madvise(data, unix.MADV_HUGEPAGE)
	if err = unix.Mprotect(data, unix.PROT_READ|unix.PROT_WRITE); err == nil {
		err = m.show(s.size)
	}

	if err != nil {
		m.Free()
		return nil, fmt.Errorf("cannot map the graph's memory: %w", err)
	}
	return m, nil
}

// show maps the state up to the given size.
func (m *memory) show(size uint64) error {
	if size <= m.mapped {
		return nil
	}
	_, err := unix.MmapPtr(
		int(m.state.file.Fd()), int64(m.mapped), unsafe.Pointer(&m.data[m.mapped]),
		uintptr(size-m.mapped), unix.PROT_READ|unix.PROT_WRITE,
		unix.MAP_PRIVATE|unix.MAP_FIXED|unix.MAP_NORESERVE,
	)
	if err == nil {
		m.mapped = size
	}

	return err
}

// Reallocate grows the memory for wazero. It returns nil beyond the limit.
func (m *memory) Reallocate(size uint64) []byte {
	if size > uint64(len(m.data)) {
		m.refused = true
		return nil
	}
	m.used = max(m.used, size)
	return m.data[:m.used]
}

// Refused reports whether growth beyond the limit was refused since the last call.
func (m *memory) Refused() bool {
	refused := m.refused
	m.refused = false
	return refused
}

// Free unmaps the memory.
func (m *memory) Free() {
	if m.data == nil {
		return
	}
	base := unsafe.Add(unsafe.Pointer(unsafe.SliceData(m.data)), -guard)
	_ = unix.MunmapPtr(base, uintptr(len(m.data))+2*guard) // fails only for memory that was never mapped
	m.data = nil
}

// reset discards the instance's writes. It returns false if the memory has grown, because wazero
// cannot shrink it.
func (m *memory) reset() bool {
	if m.used != m.state.size {
		return false
	}
	for _, run := range m.written() {
		if unix.Madvise(m.data[run.start:run.end], unix.MADV_DONTNEED) != nil {
			return false
		}
	}
	return true
}

// commit makes a view's bytes the new state, and the view a view of that state.
//
// It first writes the part after the old state, because a failure there does not affect the old
// state. The pages that it then overwrites already exist, so the rest cannot run out of memory.
func (s *state) commit(m *memory) error {
	old := s.size
	if err := s.file.Truncate(int64(m.used)); err != nil {
		return fmt.Errorf("cannot keep the graph's new state: %w", err)
	}
	changed := m.changed(0, old)
	var err error
	for _, run := range changed {
		if err == nil { // a hole would take memory
			err = unix.Fallocate(int(s.file.Fd()), unix.FALLOC_FL_KEEP_SIZE,
				int64(run.start), int64(run.end-run.start))
		}
	}
	if err == nil {
		err = s.append(m, old)
	}
	if err != nil {
		return errors.Join(fmt.Errorf("cannot keep the graph's new state: %w", err),
			s.file.Truncate(int64(old)))
	}

	for _, run := range changed {
		if _, err := s.file.WriteAt(m.data[run.start:run.end], int64(run.start)); err != nil {
			return fmt.Errorf("the graph's state is lost: %w", err)
		}
	}
	s.size = m.used
	if err := m.show(m.used); err != nil {
		return fmt.Errorf("cannot map the graph's memory: %w", err)
	}
	return unix.Madvise(m.data[:m.used], unix.MADV_DONTNEED)
}

// portion is the number of bytes of a grown memory that exist twice during a commit.
const portion = 16 << 20

// append writes the memory after the old state. It frees each portion after writing it.
func (s *state) append(m *memory, old uint64) error {
	for start := old; start < m.used; start += portion {
		end := min(start+portion, m.used)
		for _, run := range m.changed(start, end) {
			if _, err := s.file.WriteAt(m.data[run.start:run.end], int64(run.start)); err != nil {
				return err
			}
		}
		if err := unix.Madvise(m.data[start:end], unix.MADV_DONTNEED); err != nil {
			return err
		}
	}

	return nil
}
