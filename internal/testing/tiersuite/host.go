package tiersuite

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rlmhq/rlm/tiers"
)

// rendezvous is how long calls that must be under way at the same time wait for one another. It is
// long, because it elapses only if the test fails.
const rendezvous = time.Minute

// scripted is the host of the tests. It records its actions, which tests check after a snippet.
type scripted struct {
	mu    sync.Mutex
	calls []tiers.Call

	meetings  sync.Map // name -> *meeting
	running   atomic.Int64
	most      atomic.Int64  // the largest number of simultaneous calls of "crowd"
	cancelled chan struct{} // closed when the context of a call of "hang" has ended
	hanging   chan struct{} // closed when a call of "hang" begins
}

func newHost() *scripted {
	return &scripted{cancelled: make(chan struct{}), hanging: make(chan struct{})}
}

// config returns a configuration with this host and all of its functions.
func (h *scripted) config() tiers.Config {
	cfg := tiers.Config{Host: h}
	for _, name := range slices.Sorted(maps.Keys(h.configWithFunctions())) {
		cfg.Functions = append(cfg.Functions, tiers.Function{Name: name, Doc: "The test's " + name + "."})
	}
	return cfg
}

type function func(context.Context, tiers.Call) (tiers.Value, error)

func (h *scripted) configWithFunctions() map[string]function {
	return map[string]function{
		"ask":       h.ask,
		"echo":      h.echo,
		"raw":       h.raw,
		"seen":      h.seen,
		"fail":      h.fail,
		"panics":    func(context.Context, tiers.Call) (tiers.Value, error) { panic("a secret") },
		"leaves":    func(context.Context, tiers.Call) (tiers.Value, error) { runtime.Goexit(); return nil, nil },
		"meet":      h.meet,
		"crowd":     h.crowd,
		"hang":      h.hang,
		"began":     h.began,
		"slow":      h.slow,
		"llm_query": h.ask,
	}
}

// Call answers a call.
func (h *scripted) Call(ctx context.Context, call tiers.Call) (tiers.Value, error) {
	h.mu.Lock()
	h.calls = append(h.calls, call)
	h.mu.Unlock()
	f, ok := h.configWithFunctions()[call.Function]
	if !ok {
		return nil, fmt.Errorf("the test's host has no function %q", call.Function)
	}

	return f(ctx, call)
}

func (h *scripted) made() []tiers.Call {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.calls)
}

// ask answers ask(p) with "re: " + p.
func (h *scripted) ask(_ context.Context, call tiers.Call) (tiers.Value, error) {
	p, err := textArgument(call)
	if err != nil {
		return nil, err
	}
	return json.Marshal("re: " + p)
}

// echo answers echo(x) with x; for echo() and echo(named=...) it returns all arguments.
func (h *scripted) echo(_ context.Context, call tiers.Call) (tiers.Value, error) {
	if len(call.Args) == 1 && len(call.Named) == 0 {
		return call.Args[0], nil
	}
	return json.Marshal(map[string]any{"args": call.Args, "named": call.Named})
}

// raw answers raw(s) with s itself as the JSON of the value.
func (h *scripted) raw(_ context.Context, call tiers.Call) (tiers.Value, error) {
	p, err := textArgument(call)
	return tiers.Value(p), err
}

// seen answers seen(x) with a string, the JSON in which x arrived.
func (h *scripted) seen(_ context.Context, call tiers.Call) (tiers.Value, error) {
	if len(call.Args) != 1 {
		return nil, errors.New("seen takes one argument")
	}
	return json.Marshal(string(call.Args[0]))
}

// fail answers fail(s) with an error whose message is s.
func (h *scripted) fail(_ context.Context, call tiers.Call) (tiers.Value, error) {
	p, err := textArgument(call)
	if err != nil {
		return nil, err
	}
	return nil, errors.New(p)
}

// meeting is a number of calls that wait for one another.
type meeting struct {
	here atomic.Int64
	full chan struct{}
}

// meet answers meet(p, n) with p once n calls are under way at the same time.
func (h *scripted) meet(ctx context.Context, call tiers.Call) (tiers.Value, error) {
	p, err := textArgument(call)
	n := int64(3)
	if len(call.Args) > 1 {
		err = errors.Join(err, json.Unmarshal(call.Args[1], &n))
	}
	if err != nil {
		return nil, err
	}

	v, _ := h.meetings.LoadOrStore(call.Snippet, &meeting{full: make(chan struct{})})
	if err := v.(*meeting).wait(ctx, n); err != nil {
		return nil, err
	}
	return json.Marshal(p)
}

// wait returns once n calls are under way at the same time.
func (m *meeting) wait(ctx context.Context, n int64) error {
	if m.here.Add(1) == n {
		close(m.full)
	}
	select {
	case <-m.full:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(rendezvous):
		return fmt.Errorf("%d of %d calls arrived: they do not run at the same time", m.here.Load(), n)
	}
}

// crowd answers crowd() and records how many of its calls run at the same time.
func (h *scripted) crowd(ctx context.Context, _ tiers.Call) (tiers.Value, error) {
	n := h.running.Add(1)
	defer h.running.Add(-1)
	for most := h.most.Load(); n > most; most = h.most.Load() {
		if h.most.CompareAndSwap(most, n) {
			break
		}
	}

	// This is long enough for other calls to arrive, but nothing depends on whether they do.
	return tiers.Value("null"), pause(ctx, 10*time.Millisecond)
}

// hang answers hang() only when its context ends.
func (h *scripted) hang(ctx context.Context, _ tiers.Call) (tiers.Value, error) {
	close(h.hanging)
	<-ctx.Done()
	close(h.cancelled)
	return nil, ctx.Err()
}

// began answers began() once a call of hang has reached the host.
func (h *scripted) began(ctx context.Context, _ tiers.Call) (tiers.Value, error) {
	select {
	case <-h.hanging:
		return tiers.Value("true"), nil
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-time.After(rendezvous):
		return nil, errors.New("hang was not called at the same time")
	}
}

// slow answers slow(ms) after that time.
func (h *scripted) slow(ctx context.Context, call tiers.Call) (tiers.Value, error) {
	var ms int64
	if len(call.Args) != 1 || json.Unmarshal(call.Args[0], &ms) != nil {
		return nil, errors.New("slow takes a number of milliseconds")
	}
	return tiers.Value("true"), pause(ctx, time.Duration(ms)*time.Millisecond)
}

func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// textArgument returns a call's first argument, which must be a string.
func textArgument(call tiers.Call) (string, error) {
	var s string
	if len(call.Args) == 0 {
		return "", fmt.Errorf("%s needs 1 argument, got none", call.Function)
	}
	if err := json.Unmarshal(call.Args[0], &s); err != nil {
		return "", fmt.Errorf("the argument of %s is no string: %w", call.Function, err)
	}

	return s, nil
}
