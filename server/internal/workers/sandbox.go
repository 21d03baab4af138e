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

	"github.com/rlmhq/rlm/internal/snippet/outfiles"
	"github.com/rlmhq/rlm/internal/snippet/protocol"
	"github.com/rlmhq/rlm/internal/snippet/session"
	"github.com/rlmhq/rlm/internal/snippet/slots"
	"github.com/rlmhq/rlm/tiers"
)

// sandbox is the parent's view of a session, which may leave its worker and be restored in another
// one.
type sandbox struct {
	pool   *pool
	tier   *tier
	tenant string
	limits tiers.Limits

	using     sync.Mutex // held by the running call, and by a save
	lastUse   atomic.Int64
	isBusy    atomic.Bool  // the owner uses it, whereas a save may also hold using
	pinned    atomic.Bool  // its state cannot be saved completely
	memory    atomic.Int64 // a copy of held, readable without using
	isSaved   atomic.Bool  // after the last snippet, completely or not
	isSuspect atomic.Bool  // one of its snippets may have ended a worker

	configuring sync.Mutex   // guards cfg, which a worker's requests read
	cfg         tiers.Config // including additions by Extend

	// The following fields are guarded by using.
	worker       *worker     // nil if it is only saved
	id           int64       // the session's ID in the worker
	ordinal      int         // number of the last snippet
	pauses       int         // number of pauses of its snippets
	before       int         // snippets that the current interpreter does not count
	saved        *saved      // nil before the first save
	added        []extension // additions since the last save
	covered      int         // the last snippet that saved or lost includes
	uncovered    time.Time
	tried        int       // the last snippet before the last attempt to save it
	savedAt      time.Time // the end of the last attempt
	saveCost     time.Duration
	lost         *tiers.Loss // the loss that no result has reported yet
	isAway       bool        // evicted, and counted as saved
	enforced     []tiers.Enforcement
	held         int64 // memory of its interpreter after the last snippet, in bytes
	checkpointed int64 // held before the last snippet
	saving       *time.Timer
	isClosed     bool
}

var (
	_ tiers.Sandbox   = (*sandbox)(nil)
	_ tiers.Forker    = (*sandbox)(nil)
	_ tiers.Exporter  = (*sandbox)(nil)
	_ tiers.Extender  = (*sandbox)(nil)
	_ tiers.Collector = (*sandbox)(nil)
)

// enter begins a call by the owner, which lasts until leave is called.
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
	return s.leave, nil
}

// leave ends a call by the owner. If a save is due, it is made before the next call, and does not
// delay the answer to this one.
func (s *sandbox) leave() {
	s.lastUse.Store(time.Now().UnixNano())
	s.isBusy.Store(false)
	if s.isSaveDue() {
		go func() {
			defer s.using.Unlock()
			s.saveIfNew(s.pool.life)
		}()
		return
	}
	s.planSave()
	s.using.Unlock()
}

// open opens the sandbox in a worker, with a state unless it is nil.
func (s *sandbox) open(ctx context.Context, from *saved) error {
	for begun := time.Now(); ; {
		w, id, err := s.pool.enter(ctx, s)
		if err != nil {
			return err
		}
		if err = s.openIn(ctx, w, id, from); err == nil {
			s.worker, s.id, s.enforced = w, id, nil
			return nil
		}
		if !errors.Is(err, errGone) {
			_ = w.call(context.WithoutCancel(ctx), methodClose, ofSession{id}, nil) // may not exist
		}
		s.pool.leave(w, id)
		switch {
		case !errors.Is(err, errGone):
			return err
		case time.Since(begun) > s.pool.patience:
			_, why := w.why()
			return fmt.Errorf("%w: workers end while the session is opened, the last one: %s", slots.ErrBusy, why)
		}
	}
}

// openIn opens the sandbox with the state's configuration, and then applies later additions.
func (s *sandbox) openIn(ctx context.Context, w *worker, id int64, from *saved) error {
	s.lastUse.Store(time.Now().UnixNano())
	if err := w.limitMemory(ctx); err != nil {
		return err
	}
	cfg := s.cfg
	if from != nil {
		cfg = from.cfg
	}
	inputs, err := w.handOver(ctx, cfg.Inputs)
	if err != nil {
		return err
	}
	packages, err := s.tier.packages.send(w, cfg.Packages)
	if err != nil {
		return err
	}

	p := openParams{
		ofSession: ofSession{id}, Language: cfg.Language, Limits: encodeLimits(s.limits),
		Functions: encodeFunctions(cfg.Functions), Inputs: inputs, Deterministic: cfg.Deterministic, Out: cfg.Out,
		HasHost: cfg.Host != nil, Packages: packages,
	}
	if err := w.call(ctx, methodOpen, p, nil); err != nil || from == nil {
		return err
	}
	state := from.state
	if state.Data, err = from.read(); err != nil {
		return err
	}
	state.Snippet = s.ordinal
	if _, err := s.importInto(ctx, w, id, state, from.pages); err != nil {
		return err
	}

	for _, more := range s.added {
		if err := w.extend(ctx, id, more); err != nil {
			return err
		}
	}
	return nil
}

// revive makes sure that the sandbox is in a worker.
func (s *sandbox) revive(ctx context.Context) error {
	if s.worker != nil && !s.worker.isGone() {
		return nil
	}
	if s.worker != nil {
		_, why := s.worker.why()
		s.noteEnd(endOfProcess(why))
	}

	need := 2*s.held + spareMemory // with a checkpoint
	if err := s.pool.lend(ctx, s, need); err != nil {
		return err
	}
	defer s.pool.giveBack(s.tenant, need, 2*s.held)
	err := s.open(ctx, s.saved)
	if errors.Is(err, errMisfit) {
		s.pool.options.Log.Error("a session cannot go back to its saved state", "error", err)
		_ = s.saved.close() // the state is useless
		s.saved, s.covered = nil, 0
		s.lose("The saved state of the session does not fit any more; the session starts again, empty.")
		err = s.open(ctx, nil)
	}
	if err != nil {
		return fmt.Errorf("cannot bring the session back: %w", err)
	}
	s.setAway(false)

	s.before = 0
	if s.saved == nil {
		s.before = s.ordinal
	}
	return nil
}

func endOfProcess(why string) string {
	return fmt.Sprintf("The process of the session has ended (%s)", why)
}

// noteEnd records, for the next result, that the session lost its worker and the state in it.
func (s *sandbox) noteEnd(why string) {
	s.worker = nil
	reason := why + "; the session "
	switch left := s.saved.forgetLeft(); {
	case s.saved == nil:
		s.lose(reason + "starts again, empty.")
	case left != "":
		s.lost = session.JoinLosses(s.lost, &tiers.Loss{
			Snippets: []int{}, Reason: reason + "went back to its last saved state, which lacks " + left + ".",
		})
	}
	s.lose(reason + "went back to its last saved state.")
}

// lose records the loss of the snippets that no saved state includes.
func (s *sandbox) lose(reason string) {
	if s.covered >= s.ordinal {
		return
	}
	lost := &tiers.Loss{Reason: reason}
	for n := s.covered + 1; n <= s.ordinal; n++ {
		lost.Snippets = append(lost.Snippets, n)
	}
	s.lost, s.covered = session.JoinLosses(s.lost, lost), s.ordinal
}

// takeLost returns the loss that no result has reported yet.
func (s *sandbox) takeLost() *tiers.Loss {
	lost := s.lost
	s.lost = nil
	return lost
}

// Fork returns a copy of the sandbox, in the same worker.
func (s *sandbox) Fork(ctx context.Context) (_ tiers.Sandbox, err error) {
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
		before: s.before, worker: s.worker, lost: s.lost, enforced: s.enforced,
		held: s.held, uncovered: time.Now(), saveCost: s.saveCost,
	}
	if s.covered == s.ordinal {
		if fork.saved, err = s.saved.share(); err != nil {
			return nil, err
		}
		fork.covered, fork.added = s.covered, slices.Clone(s.added)
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, fork.saved.close())
		}
	}()
	need := s.held + spareMemory
	if err := s.pool.lend(ctx, s, need); err != nil {
		return nil, err
	}
	defer s.pool.relend(s.tenant, -need)
	fork.lastUse.Store(time.Now().UnixNano())
	fork.isSuspect.Store(s.isSuspect.Load())
	fork.pinned.Store(s.pinned.Load()) // the same values cannot be saved
	fork.memory.Store(s.held)
	fork.isSaved.Store(fork.covered == fork.ordinal)
	if fork.id, err = s.pool.join(s.worker, fork); err != nil {
		return nil, err
	}

	err = s.worker.limitMemory(ctx)
	if err == nil {
		err = s.worker.call(ctx, methodFork, forkParams{ofSession{s.id}, fork.id}, nil)
	}
	if err != nil {
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

	more := extension{inputs, functions}
	if err := s.worker.extend(ctx, s.id, more); err != nil {
		return err
	}
	if s.saved != nil {
		s.added = append(s.added, more)
	}

	s.configuring.Lock()
	defer s.configuring.Unlock()
	s.cfg.Inputs = slices.Concat(s.cfg.Inputs, inputs)
	s.cfg.Functions = protocol.Add(s.cfg.Functions, functions)
	return nil
}

// extension is an addition to a session since it was last saved.
type extension struct {
	inputs    []tiers.Input
	functions []tiers.Function
}

func (w *worker) extend(ctx context.Context, id int64, more extension) error {
	list, err := w.handOver(ctx, more.inputs)
	if err != nil {
		return err
	}
	p := extendParams{ofSession: ofSession{id}, Inputs: list, Functions: encodeFunctions(more.functions)}
	return w.call(ctx, methodExtend, p, nil)
}

// input returns the session's input with the given number.
func (s *sandbox) input(number int) (tiers.Input, error) {
	s.configuring.Lock()
	defer s.configuring.Unlock()
	if number < 0 || number >= len(s.cfg.Inputs) {
		return tiers.Input{}, failed("there is no input %d", number)
	}
	return s.cfg.Inputs[number], nil
}

// offers reports whether the host answers calls of a function.
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
		err := s.worker.callToEnd(ctx, methodCollect, ofSession{s.id}, &r)
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
