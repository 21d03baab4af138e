// Package prefault makes the kernel provide memory pages in the background, while the program
// already writes to the first of them. The first accesses to new memory can take longer than the
// work on it.
package prefault

import "sync/atomic"

const (
	// Least is the size of memory, in bytes, below which Begin gains nothing and does nothing.
	Least = 4 << 20
	// step is the number of bytes provided between two checks of whether Begin's goroutine should
	// end.
	step = 256 << 10
)

// Begin provides memory in the background. The memory must remain mapped until end has returned.
func Begin(memory []byte) (end func()) {
	if len(memory) < Least {
		return func() {}
	}
	var isOver atomic.Bool
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for len(memory) > 0 && !isOver.Load() {
			part := memory[:min(step, len(memory))]
			if !provide(part) {
				return
			}
			memory = memory[len(part):]
		}
	}()
	return func() { isOver.Store(true); <-ended }
}
