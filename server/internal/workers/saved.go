//go:build linux && (amd64 || arm64)

package workers

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rlmhq/rlm/tiers"
)

// saved is a state from which a session can be restored. It contains either the pages of its
// interpreter, with all values, or its variables.
type saved struct {
	cfg   tiers.Config // the session's configuration at that time
	state tiers.State  // without Data if there is a file
	file  *os.File     // unlinked; nil for a small state
	pages *os.File     // in memory; nil for a state of variables
}

const (
	// A state of up to smallState bytes is kept in memory, and so are pages of up to mostInMemory.
	smallState   = 1 << 20
	mostInMemory = 16 << 20
	// maxState is the maximum size of a state of variables, and maxPages that of pages, in bytes. A
	// larger session lasts only as long as its worker.
	maxState = 256 << 20
	maxPages = 132 << 20
	// maxHead bounds a worker's data in addition to the pages.
	maxHead = 8 << 20
	// saveShare bounds the cost of saves while a session rests: the time between two saves is at
	// least saveShare times the duration of a save. A busy session is saved after saveSnippets
	// snippets, whatever the cost, or after saveWait. A large busy session is only saved after
	// saveWait, and as rarely as a resting one.
	saveShare    = 20
	saveSnippets = 20
	saveWait     = 5 * time.Second
	// saveLargeAfter is how long a large session rests before it is saved, because saving it takes
	// long and is often unnecessary.
	saveLargeAfter = 2 * time.Second
)

// save saves the state of a session. The caller holds using.
func (s *sandbox) save(ctx context.Context) error {
	begun := time.Now()
	kept, err := s.savePages(ctx)
	if err != nil && !errors.Is(err, errGone) && ctx.Err() == nil {
		kept, err = s.saveVariables(ctx)
	}
	if !wasBrokenOff(err) {
		s.savedAt, s.tried = time.Now(), s.ordinal
		s.saveCost = s.savedAt.Sub(begun)
	}
	if err != nil {
		return err
	}
	s.keep(kept)
	s.pinned.Store(kept.pages == nil && (len(kept.state.Left) > 0 || s.cfg.Deterministic || s.cfg.Out))
	return nil
}

// keep sets the state to restore, which includes the last snippet. The caller holds using.
func (s *sandbox) keep(kept *saved) {
	_ = s.saved.close() // the previous state was only read
	kept.cfg = s.cfg
	s.saved, s.covered, s.added = kept, s.ordinal, nil
	s.isSaved.Store(true)
}

// errNoPages means that one worker's pages may be unusable in another worker, or that there are too
// many pages.
var errNoPages = errors.New("the pages of the session cannot be saved")

// savePages makes the worker write the pages of the session to a file in memory, which is
// immutable afterwards.
func (s *sandbox) savePages(ctx context.Context) (_ *saved, err error) {
	if !s.pool.sharesParts() || s.held > 2*maxPages {
		return nil, errNoPages
	}
	giveBack, err := s.pool.lendForSave(ctx, s)
	if err != nil {
		return nil, err
	}
	defer giveBack()
	file, err := memoryFile()
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			_ = file.Close() // the file is useless
		}
	}()

	t, err := s.worker.send(file)
	if err != nil {
		return nil, err
	}
	var r saveResult
	if err := s.worker.call(ctx, methodSave, saveParams{ofSession{s.id}, t}, &r); err != nil {
		return nil, err
	}
	if _, err := unix.FcntlInt(file.Fd(), unix.F_ADD_SEALS, allSeals); err != nil {
		return nil, fmt.Errorf("cannot seal the pages of a session: %w", err)
	}
	info, err := file.Stat()
	if err != nil {
		return nil, err
	}
	if info.Size() > maxPages || len(r.Head) > maxHead {
		return nil, fmt.Errorf("the pages of the session have more than %d MiB", maxPages>>20)
	}
	kept := &saved{pages: file, state: tiers.State{
		Language: tiers.Python, Format: "pickle", From: s.name(), Data: r.Head,
	}}
	if info.Size() > mostInMemory {
		err = kept.movePages()
	}
	return kept, err
}

// movePages moves the pages from memory to an unlinked file.
func (k *saved) movePages() error {
	file, err := namelessFile()
	if err != nil {
		return err
	}
	if _, err := io.Copy(file, io.NewSectionReader(k.pages, 0, maxPages)); err != nil {
		return errors.Join(fmt.Errorf("cannot save the session: %w", err), file.Close())
	}

	_ = k.pages.Close() // the pages were only read
	k.pages = file
	return nil
}

// saveVariables makes the worker export the variables of the session.
func (s *sandbox) saveVariables(ctx context.Context) (*saved, error) {
	state, err := s.export(ctx, maxState)
	if err != nil {
		return nil, err
	}
	return keepState(state)
}

// keepState converts a state of variables to one that can be restored.
func keepState(state tiers.State) (*saved, error) {
	kept := &saved{state: state}
	kept.state.Exact = nil // a client may have made this data, and chosen its size
	if len(state.Data) > smallState {
		if err := kept.write(); err != nil {
			return nil, err
		}
	}
	return kept, nil
}

// write moves the data to an unlinked file.
func (k *saved) write() error {
	file, err := namelessFile()
	if err != nil {
		return err
	}
	if _, err = file.Write(k.state.Data); err != nil {
		return errors.Join(fmt.Errorf("cannot save the session: %w", err), file.Close())
	}
	k.file, k.state.Data = file, nil
	return nil
}

// namelessFile creates an unlinked file on disk, which disappears when it is closed.
func namelessFile() (*os.File, error) {
	file, err := os.CreateTemp("", "rlm-session-*")
	if err != nil {
		return nil, fmt.Errorf("cannot save the session: %w", err)
	}
	if err := os.Remove(file.Name()); err != nil {
		return nil, errors.Join(fmt.Errorf("cannot save the session: %w", err), file.Close())
	}
	return file, nil
}

// read returns the data of the state.
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

// share returns a copy of the state for another session.
func (k *saved) share() (*saved, error) {
	if k == nil {
		return nil, nil //nolint:nilnil // there is none
	}
	copied := *k
	var err error
	if k.file != nil {
		if copied.file, err = duplicate(k.file); err != nil {
			return nil, err
		}
	}
	if k.pages != nil {
		if copied.pages, err = duplicate(k.pages); err != nil {
			return nil, errors.Join(err, copied.close())
		}
	}
	return &copied, nil
}

func (k *saved) close() error {
	if k == nil {
		return nil
	}
	var errs []error
	for _, file := range []*os.File{k.file, k.pages} {
		if file != nil {
			errs = append(errs, file.Close())
		}
	}
	return errors.Join(errs...)
}

// forgetLeft returns the names of the values that the state lacks, and clears them, so that they
// are reported once.
func (k *saved) forgetLeft() string {
	if k == nil || len(k.state.Left) == 0 {
		return ""
	}
	const most = 10
	var names []string
	for _, left := range k.state.Left {
		if len(names) == most {
			names = append(names, fmt.Sprintf("%d more", len(k.state.Left)-most))
			break
		}
		names = append(names, left.Name)
	}
	k.state.Left = nil
	return strings.Join(names, ", ")
}

// isSaveDue reports whether a session in use must be saved before its next snippet. The caller
// holds using.
func (s *sandbox) isSaveDue() bool {
	isLarge, isMany := s.held > largeMemory, s.ordinal-max(s.covered, s.tried) >= saveSnippets
	isLong := time.Since(s.uncovered) >= saveWait && time.Since(s.savedAt) >= saveShare*s.saveCost
	return s.isUnsaved() && (isMany && !isLarge || isLong)
}

// isUnsaved reports whether there are unsaved changes.
func (s *sandbox) isUnsaved() bool {
	return !s.isClosed && s.worker != nil && s.covered < s.ordinal
}

// planSave schedules a save for when the session has rested for a while. The caller holds using.
func (s *sandbox) planSave() {
	if !s.isUnsaved() {
		return
	}
	delay := max(s.pool.options.SaveAfter, saveShare*s.saveCost-time.Since(s.savedAt))
	if s.held > largeMemory {
		delay = max(delay, saveLargeAfter)
	}
	if s.saving != nil {
		s.saving.Reset(delay)
		return
	}

	s.saving = time.AfterFunc(delay, func() {
		if s.using.TryLock() {
			defer s.using.Unlock()
			s.saveIfNew(s.pool.life)
		}
	})
}

// saveIfNew saves the session unless it is saved already, and reports whether it is saved
// completely. The caller holds using.
func (s *sandbox) saveIfNew(ctx context.Context) bool {
	switch {
	case s.isClosed || s.worker == nil || s.worker.isGone():
		return false
	case s.isUnsaved():
		ctx, cancel := context.WithTimeout(ctx, saveWithin)
		defer cancel()
		switch err := s.save(ctx); {
		case wasBrokenOff(err):
			return false // the session may be saved next time
		case err != nil:
			if wasPinned := s.pinned.Swap(true); !wasPinned {
				s.pool.options.Log.Warn("a session cannot be saved, and lasts as long as its worker", "error", err)
			}
			return false
		}
	}

	return !s.pinned.Load()
}

// wasBrokenOff reports whether a save failed for a reason outside the session.
func wasBrokenOff(err error) bool {
	return errors.Is(err, errGone) || errors.Is(err, errTight) || errors.Is(err, context.Canceled)
}

// saveWithin is the time limit of a save for which no request waits.
const saveWithin = 60 * time.Second

// rests reports whether a session may be evicted. Saving a large session would take too long for
// the session that needs its place.
func (s *sandbox) rests() bool {
	isEasy := s.isSaved.Load() || s.memory.Load() <= largeMemory
	return isEasy && !s.isBusy.Load() && !s.pinned.Load()
}

// evict saves a session and removes it from its worker; its next use restores it. evict reports
// whether a place is now free.
func (s *sandbox) evict(ctx context.Context) bool {
	if !s.using.TryLock() {
		return false
	}
	defer s.using.Unlock()
	return !s.isBusy.Load() && s.moveOut(ctx)
}

// moveOut is like evict, for a caller that holds using.
func (s *sandbox) moveOut(ctx context.Context) bool {
	if !s.saveIfNew(ctx) {
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

// setAway records whether the session exists only as a saved state.
func (s *sandbox) setAway(away bool) {
	if s.isAway != away {
		s.isAway = away
		s.pool.countSaved(map[bool]int{true: 1, false: -1}[away])
	}
}

// export requests the variables from the worker, up to most bytes.
func (s *sandbox) export(ctx context.Context, most int64) (tiers.State, error) {
	var r stateParams
	data, err := s.worker.withScratch(most, func() (int64, error) {
		err := s.worker.callToEnd(ctx, methodExport, ofSession{s.id}, &r)
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

// checkState checks a worker's description of a state.
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
