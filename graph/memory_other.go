//go:build !linux

package graph

import "fmt"

// state is the engine's memory after the last update. On systems other than Linux, each
// instance has a plain copy of it.
type state struct {
	data  []byte
	size  uint64
	limit uint64 // the largest size to which it may grow
}

func newState(size, limit uint64) (*state, error) {
	if limit < size {
		return nil, fmt.Errorf("graph.Config: MaxMemory is less than the engine's %d MiB", size>>20)
	}
	return &state{data: make([]byte, size), size: size, limit: limit}, nil
}

func (s *state) close() { s.data = nil }

// memory is an instance's memory, a Go slice that moves when it grows.
type memory struct {
	state   *state
	data    []byte
	used    uint64
	refused bool // growth beyond the limit was refused
}

func (s *state) view() (*memory, error) {
	m := &memory{state: s, data: make([]byte, s.size), used: s.size}
	copy(m.data, s.data)
	return m, nil
}

// Reallocate grows the memory for wazero. It returns nil beyond the limit.
func (m *memory) Reallocate(size uint64) []byte {
	if size > m.state.limit {
		m.refused = true
		return nil
	}
	if size > uint64(len(m.data)) {
		grown := make([]byte, min(m.state.limit, max(size, uint64(len(m.data))*5/4)))
		copy(grown, m.data)
		m.data = grown
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

// Free drops the memory.
func (m *memory) Free() { m.data = nil }

// reset restores the state. It returns false if the memory has grown.
func (m *memory) reset() bool {
	if m.used != m.state.size {
		return false
	}
	copy(m.data, m.state.data)
	return true
}

// commit makes a view's bytes the new state.
func (s *state) commit(m *memory) error {
	s.data = append([]byte(nil), m.data[:m.used]...)
	s.size = m.used
	return nil
}
