package mcp

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rlmhq/rlm"
	"github.com/rlmhq/rlm/internal/text/quantity"
	"github.com/rlmhq/rlm/mcp/tools"
	"github.com/rlmhq/rlm/repl/ledger"
	"github.com/rlmhq/rlm/tiers"
)

// Limits on the files that a handle keeps.
const (
	maxFiles     = 200
	maxFileBytes = 64 << 20
)

// handle is a session that a client identifies by an unguessable name.
type handle struct {
	name     string // empty for the session of one call
	session  *rlm.Session
	calls    *tools.Allowance                   // limits calls of tools
	progress atomic.Pointer[func(ledger.Event)] // reports progress of the current question
	turn     chan struct{}                      // holds one token, for which calls take turns
	files    []tiers.Artefact                   // guarded by turn
	given    []Given                            // by the client, for questions without a session
	idle     *time.Timer
}

// keep keeps a snippet's files, and drops the oldest files beyond the limits.
func (h *handle) keep(more []tiers.Artefact) {
	h.files = append(h.files, more...)
	size := 0
	for i := len(h.files) - 1; i >= 0; i-- {
		size += len(h.files[i].Data)
		if size > maxFileBytes || len(h.files)-i > maxFiles {
			h.files = slices.Clone(h.files[i+1:])
			return
		}
	}
}

// handles are the open handles.
type handles struct {
	most   int
	idle   time.Duration
	places *Places // shared by all servers; nil means no limit
	tenant string

	mu     sync.Mutex
	open   map[string]*handle // nil while the handle is being opened
	closed bool
}

// Places bounds the total number of open handles in the servers of all tenants. Each tenant has a
// share.
type Places struct {
	most  int
	share func(tenant string, places int) int

	mu    sync.Mutex
	taken int
	of    map[string]int // by tenant
}

// NewPlaces returns most places for handles. Share returns how many of the places a tenant may
// have.
func NewPlaces(most int, share func(tenant string, places int) int) *Places {
	return &Places{most: most, share: share, of: map[string]int{}}
}

// take takes a place. If no place is free, the error explains why.
func (p *Places) take(tenant string) error {
	if p == nil {
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.taken >= p.most:
		return fmt.Errorf("the server has %s open, which is its limit: try again later",
			quantity.Plural(p.most, "session", "sessions"))
	case p.of[tenant] >= p.share(tenant, p.most):
		return fmt.Errorf("%s of this tenant open, and the other places are for other tenants: end one with "+
			"rlm_close", quantity.Plural(p.of[tenant], "session is", "sessions are"))
	}

	p.taken++
	p.of[tenant]++
	return nil
}

func (p *Places) free(tenant string) {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.taken--
	if p.of[tenant]--; p.of[tenant] == 0 {
		delete(p.of, tenant)
	}
}

var errServerClosed = errors.New("the server ends")

// reserve takes a place for a new handle and returns its name.
func (hs *handles) reserve() (name string, err error) {
	hs.mu.Lock()
	defer hs.mu.Unlock()
	if hs.closed {
		return "", errServerClosed
	}
	if len(hs.open) >= hs.most {
		return "", fmt.Errorf("%s open, which is the limit: end one with rlm_close, or use one of yours",
			quantity.Plural(len(hs.open), "session is", "sessions are"))
	}
	if err := hs.places.take(hs.tenant); err != nil {
		return "", err
	}
	if hs.open == nil {
		hs.open = map[string]*handle{}
	}

	name = rand.Text()
	hs.open[name] = nil
	return name, nil
}

// put puts a handle into its reserved place, or frees the place if the handle is nil.
func (hs *handles) put(name string, h *handle) error {
	hs.mu.Lock()
	defer hs.mu.Unlock()
	if h == nil {
		hs.remove(name)
		return nil
	}
	if hs.closed {
		return errServerClosed
	}

	hs.open[name] = h
	h.idle = time.AfterFunc(hs.idle, func() { hs.endIdle(h) })
	return nil
}

// use waits until it is the call's turn to use a handle. The caller calls leave after the call.
func (hs *handles) use(ctx context.Context, name string) (_ *handle, leave func(), err error) {
	hs.mu.Lock()
	h := hs.open[name]
	hs.mu.Unlock()
	if h == nil {
		return nil, nil, fmt.Errorf("there is no session %.40q, or it was idle for %v and ended: "+
			"open one with rlm_open", name, hs.idle)
	}

	select {
	case <-h.turn:
	case <-ctx.Done():
		return nil, nil, context.Cause(ctx)
	}

	h.idle.Stop()
	if !hs.has(h) {
		h.turn <- struct{}{}
		return nil, nil, errors.New("the session was closed while the call waited: open one with rlm_open")
	}
	return h, func() { h.idle.Reset(hs.idle); h.turn <- struct{}{} }, nil
}

func (hs *handles) has(h *handle) bool {
	hs.mu.Lock()
	defer hs.mu.Unlock()
	return hs.open[h.name] == h
}

// forget removes a handle whose turn the caller holds, and closes its session.
func (hs *handles) forget(h *handle) error {
	err := h.session.Close()
	hs.mu.Lock()
	defer hs.mu.Unlock()
	hs.remove(h.name)
	return err
}

// remove frees the place of a handle. The caller holds hs.mu.
func (hs *handles) remove(name string) {
	if _, ok := hs.open[name]; ok {
		delete(hs.open, name)
		hs.places.free(hs.tenant)
	}
}

// endIdle closes a handle that has been idle for too long.
func (hs *handles) endIdle(h *handle) {
	select {
	case <-h.turn:
	default:
		return // a call has begun, and sets the timer when it ends
	}
	defer func() { h.turn <- struct{}{} }()
	if hs.has(h) {
		_ = hs.forget(h) // nobody could receive the error
	}
}

// close ends all handles, after the calls that use them.
func (hs *handles) close() error {
	hs.mu.Lock()
	hs.closed = true
	all := slices.Collect(maps.Values(hs.open))
	hs.open = nil
	hs.mu.Unlock()

	errs := make([]error, len(all))
	var closing sync.WaitGroup
	for i, h := range all {
		if h == nil {
			continue
		}
		closing.Go(func() {
			h.idle.Stop()
			<-h.turn
			errs[i] = h.session.Close()
			h.turn <- struct{}{}
		})
	}
	closing.Wait()
	return errors.Join(errs...)
}

// open opens a session as an unnamed handle.
func (s *Server) open(ctx context.Context, given []Given) (*handle, error) {
	h := &handle{turn: make(chan struct{}, 1), calls: tools.NewAllowance(s.cfg.ToolCalls)}
	h.turn <- struct{}{}
	var more []rlm.Context
	for _, one := range given {
		more = append(more, one.Context)
	}
	if s.cfg.Answer != nil {
		h.given = given
	}
	var err error
	h.session, err = s.cfg.Open(ctx, more, func(e ledger.Event) {
		if progress := h.progress.Load(); progress != nil {
			(*progress)(e)
		}
	})
	return h, err
}

// with calls use with the named handle. Without a name it opens a session for this call.
func (s *Server) with(ctx context.Context, name string, use func(*handle) error) error {
	if name != "" {
		h, leave, err := s.handles.use(ctx, name)
		if err != nil {
			return err
		}
		defer leave()
		return use(h)
	}

	place, err := s.handles.reserve()
	if err != nil {
		return err
	}

	defer func() { _ = s.handles.put(place, nil) }()
	h, err := s.open(ctx, nil)
	if err != nil {
		return err
	}
	return errors.Join(use(h), h.session.Close())
}
