package tablesql

import (
	"context"
	"errors"
	"reflect"
	"sync"
	"time"
	"unsafe"

	"github.com/ncruces/go-sqlite3"
)

// memory is the memory that an engine has reserved. SQLite checks its context only between two
// operations, and one of them may take days: LIKE over a long text, a power with a million digits,
// a step of the compiler. All of these need memory, so an engine that continues after the end of
// its context loses its memory: the next access panics in the engine's goroutine, which recovers.
type memory struct {
	ignore func() bool // stops waiting for the context

	mu    sync.Mutex
	bytes []byte // nil once released, or if they cannot be taken away
	timer *time.Timer
}

// patience is how long an engine may continue after the end of its context. Most engines stop
// sooner.
const patience = 50 * time.Millisecond

// watchMemory takes away the memory of an engine after the end of a context. The caller must drop
// the memory.
func watchMemory(ctx context.Context, db *sqlite3.Conn) (*memory, error) {
	m := &memory{}
	if canTake {
		var err error
		if m.bytes, err = findMemory(db); err != nil {
			return nil, err
		}
	}

	m.ignore = context.AfterFunc(ctx, func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		if m.bytes != nil {
			m.timer = time.AfterFunc(patience, m.take)
		}
	})
	return m, nil
}

func (m *memory) take() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.bytes != nil {
		forbid(m.bytes)
	}
}

// drop releases the memory, and reports whether it succeeded. The engine is then unusable.
func (m *memory) drop() bool {
	m.ignore()
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.timer != nil {
		m.timer.Stop()
	}

	bytes := m.bytes
	m.bytes = nil
	return bytes != nil && unmap(bytes) == nil
}

// findMemory returns all bytes that an engine has reserved, including those that it does not use
// yet. The engine's package has no function for this.
func findMemory(db *sqlite3.Conn) ([]byte, error) {
	v := reflect.ValueOf(db)
	for _, field := range []string{"wrp", "Memory", "Buf"} {
		if v = reflect.Indirect(v); v.Kind() == reflect.Struct {
			v = v.FieldByName(field)
		}
	}
	if v.Kind() != reflect.Slice || v.Type().Elem().Kind() != reflect.Uint8 || v.Cap() == 0 {
		return nil, errors.New("cannot find the memory of SQLite in this version of its package")
	}
	return unsafe.Slice((*byte)(v.UnsafePointer()), v.Cap()), nil
}
