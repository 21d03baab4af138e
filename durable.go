package rlm

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/rlmhq/rlm/internal/keep/runlog"
	"github.com/rlmhq/rlm/internal/keep/store"
	"github.com/rlmhq/rlm/repl/ledger"
	"github.com/rlmhq/rlm/tiers"
)

// keptRun describes a durable run that a loop begins or continues.
type keptRun struct {
	name  string // empty for a run that is not durable
	begun json.RawMessage

	// notKept receives errors of the store, which then do not fail the run. If it is nil, they do.
	notKept func(error)

	// The following must be the same whenever the run continues. Only a fork may have a different
	// title, which is the question.
	loop, title, contexts string
}

// keepRun runs a loop with the run log that k names, or without a log if the name is empty. The
// loop returns its status and the reason.
func (e *Engine) keepRun(
	ctx context.Context, k keptRun, loop func(context.Context) (ledger.Status, string, error),
) error {
	if k.name == "" {
		_, _, err := loop(ctx)
		return err
	}
	j, err := e.openRunLog(ctx, &k)
	switch {
	case err != nil && k.notKept != nil && ctx.Err() == nil:
		k.notKept(err)
		_, _, err := loop(ctx)
		return err
	case err != nil:
		return refuse(ctx, fmt.Errorf("cannot keep the run: %w", err))
	case k.notKept != nil:
		j.Spare(k.notKept)
	}

	ctx, cancel := runlog.With(ctx, j)
	defer cancel()
	ended, reason, err := loop(ctx)
	status := string(ended)
	var setup *SetupError
	switch {
	case errors.As(err, &setup) && j.IsNew():
		return errors.Join(err, j.Discard()) // the loop never began
	case ended == ledger.StatusCanceled || ended == "":
		status = runlog.StatusInterrupted
	case err != nil && reason == "":
		reason = err.Error()
	}
	return errors.Join(err, j.Close(status, reason))
}

// openRunLog opens the log of a run and checks its pins.
func (e *Engine) openRunLog(ctx context.Context, k *keptRun) (*runlog.Log, error) {
	s, err := e.store.open(false)
	if err != nil {
		return nil, err
	}
	id := store.ID{Kind: store.Run, Name: k.name}
	j, log, err := runlog.Open(ctx, s, store.Log{ID: id, Title: k.title, Spec: k.begun})
	if err != nil {
		return nil, err
	}

	isFresh := log.Parent != "" && log.Turn == log.ParentTurn
	err = j.Pin(ctx, "loop", k.loop, false)
	if err == nil {
		err = j.Pin(ctx, "question", k.title, isFresh)
	}
	if err == nil {
		err = j.Pin(ctx, "contexts", k.contexts, false)
	}
	if err != nil {
		return nil, errors.Join(err, j.Close(log.Status, log.Reason))
	}
	return j, nil
}

// listContexts describes the contexts in enough detail to distinguish them from others.
func listContexts(inputs []tiers.Input) string {
	described := describeContexts(inputs)
	list := make([]string, len(described))
	for i, c := range described {
		list[i] = fmt.Sprintf("%s (%s of size %d)", inputs[i].Name, c.Kind, c.Bytes)
	}
	if len(list) == 0 {
		return "none"
	}
	return strings.Join(list, ", ")
}
