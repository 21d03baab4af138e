//go:build linux && (amd64 || arm64)

package workers

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rlmhq/rlm/internal/outfiles"
	"github.com/rlmhq/rlm/internal/protocol"
	"github.com/rlmhq/rlm/internal/session"
	"github.com/rlmhq/rlm/tiers"
)

// sandbox is a session, seen from the parent. Its life in a worker may end, and begin again in
// another one.
type sandbox struct {
	pool   *pool
	tier   *tier
	tenant string
	limits tiers.Limits

	using   sync.Mutex // held by the call that runs, and by a save
	lastUse atomic.Int64
	isBusy  atomic.Bool // the owner uses it: using may also be held by a save
	pinned  atomic.Bool // its state cannot be saved whole

	configuring sync.Mutex   // guards cfg, which a worker's requests read
	cfg         tiers.Config // with all that Extend has added

	// Guarded by using.
	worker   *worker     // nil: only saved
	id       int64       // in the worker
	ordinal  int         // of the last snippet
	saved    *saved      // nil before the first save
	lost     *tiers.Loss // what no result has said yet
	isAway   bool        // evicted, and counted as saved
	enforced []tiers.Enforcement
	saving   *time.Timer
	isClosed bool
}

var (
	_ tiers.Sandbox   = (*sandbox)(nil)
	_ tiers.Forker    = (*sandbox)(nil)
	_ tiers.Exporter  = (*sandbox)(nil)
	_ tiers.Extender  = (*sandbox)(nil)
	_ tiers.Collector = (*sandbox)(nil)
)

// enter begins a call of the owner, until leave is called.
func (s *sandbox) enter() (leave func(), err error) {
	if !s.isBusy.CompareAndSwap(false, true) {
		return nil, session.ErrInUse
	}
	s.using.Lock() // a save may still run
	if s.isClosed {
		s.using.Unlock()
		s.isBusy.Store(false)
		return nil, session.ErrClosed
	}

	if s.saving != nil {
		s.saving.Stop()
	}
	return func() {
		s.lastUse.Store(time.Now().UnixNano())
		s.planSave()
		s.using.Unlock()
		s.isBusy.Store(false)
	}, nil
}

// open opens the sandbox in a worker, with a state unless that is nil.
func (s *sandbox) open(ctx context.Context, from *saved) error {
	for attempt := 1; ; attempt++ {
		w, id, err := s.pool.enter(ctx, s)
		if err != nil {
			return err
		}
		if err = s.openIn(ctx, w, id, from); err == nil {
			s.worker, s.id, s.enforced = w, id, nil
			return nil
		}
		if !errors.Is(err, errGone) {
			_ = w.call(context.WithoutCancel(ctx), methodClose, ofSession{id}, nil) // it may not be there
		}
		s.pool.leave(w, id)
		if !errors.Is(err, errGone) || attempt == openAttempts {
			return err
		}
	}
}

// openAttempts bounds the workers in which a session is opened: one may have ended just now.
const openAttempts = 3

func (s *sandbox) openIn(ctx context.Context, w *worker, id int64, from *saved) error {
	s.lastUse.Store(time.Now().UnixNano())
	inputs, err := w.handOver(ctx, s.cfg.Inputs)
	if err != nil {
		return err
	}
	packages, err := s.tier.packages.send(w, s.cfg.Packages)
	if err != nil {
		return err
	}

	p := openParams{
		ofSession: ofSession{id}, Language: s.cfg.Language, Limits: encodeLimits(s.cfg.Limits),
		Functions: encodeFunctions(s.cfg.Functions), Inputs: inputs, Deterministic: s.cfg.Deterministic, Out: s.cfg.Out,
		HasHost: s.cfg.Host != nil, Packages: packages,
	}
	if err := w.call(ctx, methodOpen, p, nil); err != nil {
		return err
	}

	if from == nil {
		return nil
	}
	state := from.state
	if state.Data, err = from.read(); err != nil {
		return err
	}
	state.Snippet = s.ordinal
	_, err = s.importInto(ctx, w, id, state)
	return err
}

// revive makes sure that the sandbox lives in a worker. It notes what its session has lost, for
// the next result.
func (s *sandbox) revive(ctx context.Context) error {
	if s.worker != nil && !s.worker.isGone() {
		return nil
	}
	var why string
	if s.worker != nil {
		why, _ = s.worker.why()
		s.worker = nil
	}

	if err := s.open(ctx, s.saved); err != nil {
		return fmt.Errorf("cannot bring the session back: %w", err)
	}
	s.setAway(false)
	if why != "" { // else it was evicted, after its last snippet
		s.lost = session.JoinLosses(s.lost, s.lossSince(s.saved, why))
	}
	return nil
}

// lossSince describes what a session has lost that went back to a state, nil for nothing.
func (s *sandbox) lossSince(from *saved, why string) *tiers.Loss {
	kept := 0
	if from != nil {
		kept = from.snippet
	}
	if kept >= s.ordinal {
		return nil
	}
	lost := &tiers.Loss{Reason: fmt.Sprintf(
		"The process of the session has ended (%s); the session went back to its last saved state.", why)}
	for n := kept + 1; n <= s.ordinal; n++ {
		lost.Snippets = append(lost.Snippets, n)
	}

	return lost
}

// Fork returns a copy of the sandbox, in the same worker.
func (s *sandbox) Fork(ctx context.Context) (tiers.Sandbox, error) {
	leave, err := s.enter()
	if err != nil {
		return nil, err
	}
	defer leave()
	if err := s.revive(ctx); err != nil {
		return nil, err
	}

	fork := &sandbox{
		pool: s.pool, tier: s.tier, tenant: s.tenant, limits: s.limits, cfg: s.cfg, ordinal: s.ordinal,
		worker: s.worker, lost: s.lost, enforced: s.enforced,
	}
	fork.lastUse.Store(time.Now().UnixNano())
	if fork.id, err = s.pool.join(s.worker, fork); err != nil {
		return nil, err
	}

	if err := s.worker.call(ctx, methodFork, forkParams{ofSession{s.id}, fork.id}, nil); err != nil {
		s.pool.leave(s.worker, fork.id)
		return nil, err
	}
	fork.using.Lock()
	fork.planSave()
	fork.using.Unlock()
	return fork, nil
}

// join puts a fork into the worker of its original.
func (p *pool) join(w *worker, s *sandbox) (int64, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if w.isClosed {
		return 0, errGone
	}
	id := w.lastID.Add(1)
	w.boxes[id] = s
	return id, nil
}

// Extend adds inputs and functions for the next snippet.
func (s *sandbox) Extend(ctx context.Context, inputs []tiers.Input, functions []tiers.Function) error {
	leave, err := s.enter()
	if err != nil {
		return err
	}
	defer leave()
	if err := s.revive(ctx); err != nil {
		return err
	}

	list, err := s.worker.handOver(ctx, inputs)
	if err != nil {
		return err
	}
	p := extendParams{ofSession: ofSession{s.id}, Inputs: list, Functions: encodeFunctions(functions)}
	if err := s.worker.call(ctx, methodExtend, p, nil); err != nil {
		return err
	}

	s.configuring.Lock()
	defer s.configuring.Unlock()
	s.cfg.Inputs = slices.Concat(s.cfg.Inputs, inputs)
	s.cfg.Functions = protocol.Add(s.cfg.Functions, functions)
	return nil
}

// input returns an input of the session.
func (s *sandbox) input(number int) (tiers.Input, error) {
	s.configuring.Lock()
	defer s.configuring.Unlock()
	if number < 0 || number >= len(s.cfg.Inputs) {
		return tiers.Input{}, failed("there is no input %d", number)
	}
	return s.cfg.Inputs[number], nil
}

// offers reports whether the host answers a function.
func (s *sandbox) offers(name string) bool {
	s.configuring.Lock()
	defer s.configuring.Unlock()
	return s.cfg.Host != nil && slices.ContainsFunc(s.cfg.Functions, func(f tiers.Function) bool {
		return f.Name == name && f.Value == nil
	})
}

// checkInputs returns an error if a file has changed since it was opened.
func (s *sandbox) checkInputs() error {
	for _, in := range s.cfg.Inputs {
		if text, ok := in.Text.(interface{ Changed() error }); ok {
			if err := text.Changed(); err != nil {
				return err
			}
		}
	}
	return nil
}

// Collect copies the files below /out into a folder of the host.
func (s *sandbox) Collect(ctx context.Context, dir string) (tiers.Collected, error) {
	leave, err := s.enter()
	if err != nil {
		return tiers.Collected{}, err
	}
	defer leave()
	if err := s.revive(ctx); err != nil {
		return tiers.Collected{}, err
	}

	var r collectResult
	most := outfiles.Folder.Bytes + 4096*int64(outfiles.Folder.Entries)
	stream, err := s.worker.withScratch(most, func() (int64, error) {
		err := s.worker.call(ctx, methodCollect, ofSession{s.id}, &r)
		return r.Bytes, err
	})
	if err != nil {
		return tiers.Collected{}, err
	}

	got, err := outfiles.Unpack(bytes.NewReader(stream), dir, outfiles.Folder)
	if len(r.Lost) <= maxName {
		got.Lost = r.Lost
	}
	return got, err
}

// Close ends the sandbox. It is idempotent.
func (s *sandbox) Close() error {
	leave, err := s.enter()
	switch {
	case errors.Is(err, session.ErrClosed):
		return nil
	case err != nil:
		return err
	}
	defer leave()
	s.isClosed = true
	s.setAway(false)
	err = s.saved.close()
	s.saved = nil
	if s.worker == nil || s.worker.isGone() {
		return err
	}

	w, id := s.worker, s.id
	s.worker = nil
	ctx, cancel := context.WithTimeout(context.Background(), endTimeout)
	defer cancel()
	if failed := w.call(ctx, methodClose, ofSession{id}, nil); failed != nil && !errors.Is(failed, errGone) {
		err = errors.Join(err, failed)
	}
	s.pool.leave(w, id)
	return err
}
