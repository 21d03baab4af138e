package runlog

import (
	"context"
	"errors"
	"fmt"

	"github.com/rlmhq/rlm/internal/keep/store"
)

// List returns the runs that match a filter, with their current statuses: a run whose process ended
// before the run did is interrupted.
func List(ctx context.Context, s store.Store, f store.Filter) ([]store.Log, error) {
	// The store does not record which processes have ended.
	status, limit := f.Status, f.Limit
	if status == StatusInterrupted || status == StatusRunning {
		f.Status, f.Limit = "", 0
	}
	logs, err := s.Logs(ctx, f)
	if err != nil {
		return nil, err
	}

	var list []store.Log
	for i := 0; i < len(logs) && (limit <= 0 || len(list) < limit); i++ {
		if err := updateStatus(ctx, s, &logs[i]); err != nil {
			return nil, err
		}
		if status == "" || logs[i].Status == status {
			list = append(list, logs[i])
		}
	}
	return list, nil
}

// Show returns a run and its turns.
func Show(ctx context.Context, s store.Store, name string) (log store.Log, turns []Turn, err error) {
	if log, err = Look(ctx, s, name); err != nil {
		return log, nil, err
	}
	turns, err = Turns(ctx, s, log.ID)
	return log, turns, err
}

// Look returns a run with its current status: a run whose process ended before the run did is
// interrupted.
func Look(ctx context.Context, s store.Store, name string) (log store.Log, err error) {
	if log, err = s.Log(ctx, store.ID{Kind: store.Run, Name: name}); err != nil {
		return log, err
	}
	err = updateStatus(ctx, s, &log)
	return log, err
}

// updateStatus determines the current status of a run.
func updateStatus(ctx context.Context, s store.Store, log *store.Log) error {
	if !isOpen(log) {
		return nil
	}
	owner, err := s.Owner(ctx, log.ID)
	if err == nil && owner == "" {
		*log, err = s.Log(ctx, log.ID) // the run may have ended since it was read
	}
	if err != nil || !isOpen(log) {
		return err
	}

	log.Status = StatusRunning
	if owner == "" {
		log.Status = StatusInterrupted
	}
	return nil
}

// isOpen reports whether no process has recorded how a run ended.
func isOpen(log *store.Log) bool { return log.Status == StatusRunning || log.Status == "" }

// Rewind removes the turns of a run that follow the given turn; 0 removes all.
func Rewind(ctx context.Context, s store.Store, name string, turn int) error {
	id := store.ID{Kind: store.Run, Name: name}
	if err := checkTurn(ctx, s, id, turn); err != nil {
		return err
	}

	lease, err := s.Acquire(ctx, id)
	if err != nil {
		return err
	}
	return errors.Join(s.Cut(ctx, lease, turn), s.Release(lease))
}

// Fork creates a run with the turns of another one up to and including the given turn.
func Fork(ctx context.Context, s store.Store, name string, turn int, fork store.Log) error {
	id := store.ID{Kind: store.Run, Name: name}
	if turn == 0 {
		return fmt.Errorf("cannot fork %s before its first turn: start a new run instead", id)
	}
	if err := checkTurn(ctx, s, id, turn); err != nil {
		return err
	}

	if fork.Title == "" || fork.Spec == nil {
		log, err := s.Log(ctx, id)
		if err != nil {
			return err
		}
		if fork.Title == "" {
			fork.Title = log.Title
		}
		if fork.Spec == nil {
			fork.Spec = log.Spec
		}
	}

	fork.Status = StatusInterrupted
	return s.Copy(ctx, id, turn, fork)
}

// checkTurn refuses a turn that was not committed.
func checkTurn(ctx context.Context, s store.Store, id store.ID, turn int) error {
	log, err := s.Log(ctx, id)
	if err != nil {
		return err
	}
	if turn < 0 || turn > log.Turn {
		return fmt.Errorf("%s has no turn %d: its last committed turn is %d", id, turn, log.Turn)
	}
	return nil
}

// Remove deletes a run, and the contents that no other log uses.
func Remove(ctx context.Context, s store.Store, name string) error {
	lease, err := s.Acquire(ctx, store.ID{Kind: store.Run, Name: name})
	if err != nil {
		return err
	}
	if err := s.Remove(ctx, lease); err != nil {
		return errors.Join(err, s.Release(lease))
	}
	_, err = s.Collect(ctx)
	return err
}
