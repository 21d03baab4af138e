package rustmodule

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// mapping is address space for an instance. Only the used part occupies memory: it grows without
// copying, and is freed with the instance.
type mapping struct {
	data    []byte // the whole address space
	used    uint64
	refused bool
}

// newMemory returns fresh memory for one instance, which can grow to limit bytes.
func (m *Module) newMemory(limit uint64) (Memory, error) {
	data, err := unix.Mmap(-1, 0, int(limit), unix.PROT_NONE,
		unix.MAP_PRIVATE|unix.MAP_ANONYMOUS|unix.MAP_NORESERVE)
	if err != nil {
		return nil, fmt.Errorf("cannot reserve %d MiB of address space: %w", limit>>20, err)
	}
	memory := &mapping{data: data}
	if memory.Reallocate(m.Size()) == nil {
		memory.Free()
		return nil, fmt.Errorf("it has no memory for the module's %d MiB", m.Size()>>20)
	}
	return memory, nil
}

// Reallocate grows the memory for wazero. It returns nil beyond the limit.
func (m *mapping) Reallocate(size uint64) []byte {
	if size > uint64(len(m.data)) || size > m.used &&
		unix.Mprotect(m.data[:size], unix.PROT_READ|unix.PROT_WRITE) != nil {
		m.refused = true
		return nil
	}
	m.used = max(m.used, size)
	return m.data[:m.used]
}

// Free drops the memory.
func (m *mapping) Free() {
	if m.data != nil {
		_ = unix.Munmap(m.data) // fails only for memory that was never mapped
		m.data = nil
	}
}

// Refused implements [Memory].
func (m *mapping) Refused() bool {
	was := m.refused
	m.refused = false
	return was
}
