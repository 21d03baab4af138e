package rustmodule

import (
	"context"
	"fmt"
	"log/slog"
	"runtime"
	"sync"
	"time"
)

// startTime bounds the start of an instance of an [Engine].
const startTime = 2 * time.Minute

// Engine runs calls of a module that hostile files may compromise: each call has a separate
// instance. All engines of a process together run as many calls concurrently as there are
// processors.
type Engine struct {
	Files Files
	// Name is the subject of progress messages, such as "the reader of documents".
	Name string

	mu     sync.Mutex
	module *Module
}

// Start configures how a module is prepared.
type Start struct {
	// CacheDir is the folder of compiled code, or empty for none. The value in a process's first
	// call applies to all calls.
	CacheDir string
	// Progress, if set, is called before work that takes seconds.
	Progress func(what string)
}

var places = make(chan struct{}, runtime.GOMAXPROCS(0))

// Call runs a job in a separate instance.
func (e *Engine) Call(ctx context.Context, s Start, job Job) ([]byte, error) {
	module, err := e.compile(ctx, s)
	if err != nil {
		return nil, fmt.Errorf("cannot prepare %s: %w", e.Name, err)
	}
	select {
	case places <- struct{}{}:
		defer func() { <-places }()
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}

	memory, err := module.newMemory(uint64(job.Memory))
	if err != nil {
		return nil, fmt.Errorf("cannot start %s: %w", e.Name, err)
	}
	instance, err := module.Instantiate(ctx, memory)
	if err != nil {
		return nil, err
	}
	defer instance.Close()
	if err := instance.Prepare(ctx, startTime); err != nil {
		return nil, err
	}
	answer, err := instance.Call(ctx, job)
	if err == nil && memory.Refused() { // a parser may report that as damage
		return nil, &LimitError{"Memory"}
	}
	return answer, err
}

func (e *Engine) compile(ctx context.Context, s Start) (*Module, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.module != nil {
		return e.module, nil
	}

	module, err := Compile(ctx, e.Files, Options{
		CacheDir: s.CacheDir,
		Log:      slog.New(slog.DiscardHandler),
		Announce: func() {
			if s.Progress != nil {
				s.Progress("preparing " + e.Name + " for this machine (only once): a few seconds")
			}
		},
	})
	if err == nil {
		e.module = module
	}
	return module, err
}
