//go:build !linux

package rustmodule

// sliceMemory is memory of the Go heap, which moves when it grows.
type sliceMemory struct {
	data    []byte
	used    uint64
	limit   uint64
	refused bool
}

// newMemory returns fresh memory for one instance, which can grow to limit bytes.
func (m *Module) newMemory(limit uint64) (Memory, error) {
	return &sliceMemory{data: make([]byte, m.Size()), used: m.Size(), limit: limit}, nil
}

// Reallocate grows the memory for wazero. It returns nil beyond the limit.
func (m *sliceMemory) Reallocate(size uint64) []byte {
	if size > m.limit {
		m.refused = true
		return nil
	}
	if size > uint64(len(m.data)) {
		grown := make([]byte, min(m.limit, max(size, uint64(len(m.data))*5/4)))
		copy(grown, m.data)
		m.data = grown
	}

	m.used = max(m.used, size)
	return m.data[:m.used]
}

// Free drops the memory.
func (m *sliceMemory) Free() { m.data = nil }

// Refused implements [Memory].
func (m *sliceMemory) Refused() bool {
	was := m.refused
	m.refused = false
	return was
}
