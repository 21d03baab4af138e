//go:build linux && (amd64 || arm64)

package workers

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/rlmhq/rlm/tiers"
)

// saved is a state to which a session can go back.
type saved struct {
	snippet int         // the last one in it
	state   tiers.State // without Data if a file has it
	file    *os.File    // without a name; nil for a small state
	cost    time.Duration
}

const (
	// smallState is kept in memory.
	smallState = 1 << 20
	// maxState bounds a state that is saved. A larger session lasts as long as its worker.
	maxState = 256 << 20
	// saveShare bounds the cost of saves: the time between two is that many times as long.
	saveShare = 20
)

// save takes the state of a session. using is held.
func (s *sandbox) save(ctx context.Context) error {
	begun := time.Now()
	state, err := s.export(ctx, maxState)
	if err != nil {
		return err
	}
	if err := s.keep(state); err != nil {
		return err
	}

	s.saved.cost = time.Since(begun)
	s.pinned.Store(len(state.Left) > 0 || s.cfg.Deterministic || s.cfg.Out)
	return nil
}

// keep makes a state the one to go back to. using is held.
func (s *sandbox) keep(state tiers.State) error {
	kept := &saved{snippet: s.ordinal, state: state}
	kept.state.Exact = nil // no worker gets it, and a client may have chosen its size
	if len(state.Data) > smallState {
		if err := kept.write(); err != nil {
			return err
		}
	}

	err := s.saved.close()
	s.saved = kept
	return err
}

// write moves the data to a file without a name.
func (k *saved) write() error {
	file, err := os.CreateTemp("", "rlm-session-*")
	if err != nil {
		return fmt.Errorf("cannot save the session: %w", err)
	}
	err = os.Remove(file.Name())
	if err == nil {
		_, err = file.Write(k.state.Data)
	}

	if err != nil {
		return errors.Join(fmt.Errorf("cannot save the session: %w", err), file.Close())
	}
	k.file, k.state.Data = file, nil
	return nil
}

// read returns the data.
func (k *saved) read() ([]byte, error) {
	if k.file == nil {
		return k.state.Data, nil
	}
	info, err := k.file.Stat()
	if err != nil {
		return nil, err
	}
	return io.ReadAll(io.NewSectionReader(k.file, 0, info.Size()))
}

func (k *saved) close() error {
	if k == nil || k.file == nil {
		return nil
	}
	return k.file.Close()
}

// planSave saves the session when it has rested for a while. using is held.
func (s *sandbox) planSave() {
	if s.isClosed || s.worker == nil || s.ordinal == 0 || s.saved != nil && s.saved.snippet == s.ordinal {
		return
	}
	delay := s.pool.options.SaveAfter
	if s.saved != nil {
		delay = max(delay, saveShare*s.saved.cost)
	}
	if s.saving != nil {
		s.saving.Reset(delay)
		return
	}

	s.saving = time.AfterFunc(delay, func() {
		if s.using.TryLock() {
			defer s.using.Unlock()
			s.saveIfNew(context.Background())
		}
	})
}

// saveIfNew saves the session unless that was done, and reports whether it is saved whole. using is
// held.
func (s *sandbox) saveIfNew(ctx context.Context) bool {
	switch {
	case s.isClosed || s.worker == nil || s.worker.isGone():
		return false
	case s.ordinal == 0:
		return true
	case s.saved == nil || s.saved.snippet != s.ordinal:
		ctx, cancel := context.WithTimeout(ctx, saveWithin)
		defer cancel()
		if err := s.save(ctx); err != nil {
			s.pinned.Store(true)
			s.pool.options.Log.Warn("a session cannot be saved, and lasts as long as its worker", "error", err)
			return false
		}
	}

	return !s.pinned.Load()
}

// saveWithin bounds a save that nobody waits for.
const saveWithin = 60 * time.Second

// rests reports whether a session may be evicted.
func (s *sandbox) rests() bool { return !s.isBusy.Load() && !s.pinned.Load() }

// evict ends the life of a session in its worker. Its next use brings it back. It reports whether
// there is a free place now.
func (s *sandbox) evict(ctx context.Context) bool {
	if !s.using.TryLock() {
		return false
	}
	defer s.using.Unlock()
	if s.isBusy.Load() || !s.saveIfNew(ctx) {
		return false
	}
	w, id := s.worker, s.id
	ctx, cancel := context.WithTimeout(ctx, endTimeout)
	defer cancel()
	if err := w.call(ctx, methodClose, ofSession{id}, nil); err != nil {
		return false
	}

	s.worker = nil
	s.setAway(true)
	s.pool.leave(w, id)
	return true
}

// setAway notes whether the session is only a saved state.
func (s *sandbox) setAway(away bool) {
	if s.isAway != away {
		s.isAway = away
		s.pool.countSaved(map[bool]int{true: 1, false: -1}[away])
	}
}

// export asks the worker for the variables, of at most so many bytes.
func (s *sandbox) export(ctx context.Context, most int64) (tiers.State, error) {
	var r stateParams
	data, err := s.worker.withScratch(most, func() (int64, error) {
		err := s.worker.call(ctx, methodExport, ofSession{s.id}, &r)
		if err == nil && r.Bytes > most {
			return 0, fmt.Errorf("the variables have more than %d MiB", most>>20)
		}
		return r.Bytes, err
	})
	if err != nil {
		return tiers.State{}, err
	}

	return tiers.State{
		Language: r.Language, Format: r.Format, From: s.name(), Snippet: s.ordinal, Left: r.Left, Data: data,
	}, checkState(r)
}

// checkState checks what a worker says of a state.
func checkState(r stateParams) error {
	switch {
	case r.Language != tiers.Python && r.Language != tiers.Go && r.Language != "",
		r.Format != "pickle" && r.Format != "replay":
		return errors.New("the state has an unknown form")
	case len(r.Left) > maxLost:
		return errors.New("the state lists too much that was left behind")
	}
	return nil
}

// maxMoved bounds a state that moves to another tier.
const maxMoved = 1 << 30

// Export returns the whole namespace.
func (s *sandbox) Export(ctx context.Context) (tiers.State, error) {
	leave, err := s.enter()
	if err != nil {
		return tiers.State{}, err
	}
	defer leave()
	if err := s.revive(ctx); err != nil {
		return tiers.State{}, err
	}

	state, err := s.export(ctx, maxMoved)
	if s.lost != nil {
		state.Left = append(state.Left, tiers.Left{Name: "*", Type: "session", Reason: s.lost.Reason})
	}
	return state, err
}

// Import loads a state into a sandbox that has not run a snippet yet.
func (s *sandbox) Import(ctx context.Context, state tiers.State) (tiers.Report, error) {
	leave, err := s.enter()
	if err != nil {
		return tiers.Report{}, err
	}
	defer leave()
	if err := s.revive(ctx); err != nil {
		return tiers.Report{}, err
	}

	report, err := s.importInto(ctx, s.worker, s.id, state)
	if err == nil {
		s.ordinal = state.Snippet
		err = s.keep(state)
	}
	return report, err
}

// importInto loads a state into a sandbox of a worker.
func (s *sandbox) importInto(ctx context.Context, w *worker, id int64, state tiers.State) (tiers.Report, error) {
	data, err := w.sendBytes(state.Data)
	if err != nil {
		return tiers.Report{}, err
	}
	p := stateParams{
		ofSession: ofSession{id}, Language: state.Language, Format: state.Format, From: state.From,
		Snippet: state.Snippet, Left: state.Left, Bytes: int64(len(state.Data)), Data: data,
	}

	var r reportResult
	if err := w.call(ctx, methodImport, p, &r); err != nil {
		return tiers.Report{}, err
	}
	if r.Moved < 0 || len(r.Left) > maxLost {
		return tiers.Report{}, errors.New("the report on the variables is not one")
	}
	return tiers.Report{Moved: r.Moved, Left: r.Left}, nil
}
