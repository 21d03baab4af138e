package journal

import (
	"context"
	"errors"
	"fmt"

	"github.com/rlmhq/rlm/internal/store"
)

// Status returns the status of a run. One whose process has ended before it is interrupted.
func Status(ctx context.Context, s store.Store, log *store.Log) (string, error) {
	if log.Status != StatusRunning && log.Status != "" {
		return log.Status, nil
	}
	owner, err := s.Owner(ctx, log.ID)
	if err != nil || owner == "" {
		return StatusInterrupted, err
	}
	return StatusRunning, nil
}

// Rewind takes back the turns of a run after a turn, 0 for all.
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

// Fork makes a run that has the turns of another one up to a turn.
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

// Remove deletes a run, and the contents that only it had.
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
