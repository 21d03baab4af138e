package main

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"
)

// kind is a kind of bad session, defined by the snippet that it runs.
type kind struct{ name, source string }

var kinds = []kind{
	{"hang", hang},
	{"loop", "while True:\n    pass\n"},
	{"deaf", "while True:\n    try:\n        while True: pass\n    except BaseException: pass\n"},
	{"hungry", "held = []\nwhile True:\n    held.append(bytearray(b'x') * 4_000_000)\n"},
}

// hang is a snippet that calls C functions from C functions, in a tree of 2**60 calls without a
// loop.
const hang = `
from functools import partial
from itertools import repeat

class Equal:
    __slots__ = ("__eq__",)
    __hash__ = None
    __bool__ = bool

first = Equal()
first.__eq__ = bool
tree = iter(repeat(Equal()).__next__, first)
for _ in range(60):
    twice = Equal()
    twice.__eq__ = partial(next, tree)
    tree = iter(tree.__next__, twice)
next(tree)
`

func kindNames() (names []string) {
	for _, k := range kinds {
		names = append(names, k.name)
	}
	return names
}

// bad holds the bad sessions, which belong to the first tenant.
type bad struct {
	*server
	kind
	ids []string

	mu      sync.Mutex
	endings map[string]int
	longest time.Duration
}

func newBad(ctx context.Context, s *server, k kind, n int, wall time.Duration) (*bad, error) {
	b := &bad{server: s, kind: k, endings: map[string]int{}}
	for range n {
		id, err := s.open(ctx, s.keys[0], map[string]any{"limits": map[string]any{"wall_ms": wall.Milliseconds()}})
		if err != nil {
			return nil, err
		}
		b.ids = append(b.ids, id)
	}
	return b, nil
}

// run runs the snippet in all sessions, repeatedly, until the context ends.
func (b *bad) run(ctx context.Context) {
	var group sync.WaitGroup
	for _, id := range b.ids {
		group.Go(func() {
			for ctx.Err() == nil {
				begun := time.Now()
				a, err := b.exec(ctx, b.keys[0], id, b.source)
				if ctx.Err() == nil {
					b.note(a, err, time.Since(begun))
				}
			}
		})
	}
	group.Wait()
}

func (b *bad) note(a answer, err error, took time.Duration) {
	how := strings.TrimSpace(a.Status + " " + a.Limit)
	switch {
	case err != nil:
		how = err.Error()
	case a.code != http.StatusOK:
		how = fmt.Sprintf("%d: %.60s", a.code, a.Detail)
	}

	b.mu.Lock()
	defer b.mu.Unlock()
	b.endings[how]++
	b.longest = max(b.longest, took)
}

// describe reports how the snippets ended.
func (b *bad) describe() string {
	var all []string
	for _, how := range slices.Sorted(maps.Keys(b.endings)) {
		all = append(all, fmt.Sprintf("%d %s", b.endings[how], how))
	}
	return fmt.Sprintf("%s; the last after %.1fs", strings.Join(all, ", "), b.longest.Seconds())
}

// remove deletes the sessions.
func (b *bad) remove(ctx context.Context) error {
	for _, id := range b.ids {
		if _, err := b.do(ctx, http.MethodDelete, "/"+id, b.keys[0], nil); err != nil {
			return err
		}
	}
	return nil
}
