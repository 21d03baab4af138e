package wiring

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/rlmhq/rlm"
	"github.com/rlmhq/rlm/cmd/rlm/internal/cli"
	"github.com/rlmhq/rlm/cmd/rlm/internal/sessions"
	"github.com/rlmhq/rlm/inputs"
	"github.com/rlmhq/rlm/tiers"
)

// Talk is a session that continues from question to question and, if it is named, from run to run.
type Talk struct {
	Session *rlm.Session
	Kept    sessions.Conversation
	stored  *sessions.Kept // nil for an unnamed session
}

// OpenTalk opens the named session, or an unnamed one. It has the contexts, variables and
// histories stored under the name, and the contexts of the flags.
func OpenTalk(
	ctx context.Context, e *cli.Env, engine *rlm.Engine, name string, contexts *ContextFlags, cfg rlm.SessionConfig,
	note func(string, ...any),
) (_ *Talk, err error) {
	given, err := contexts.keep(e)
	if err != nil {
		return nil, cli.Usage(err)
	}

	t := &Talk{}
	defer func() {
		if err != nil {
			err = cli.JoinExit(err, t.Release())
		}
	}()
	if name != "" {
		if err := t.open(ctx, e, name); err != nil {
			return nil, cli.Usage(err)
		}
	}
	if err := t.restore(ctx, e, engine, cfg, note); err != nil {
		return nil, cli.Usage(t.explain(err, name))
	}

	var added []rlm.Context
	for _, c := range given {
		if !slices.ContainsFunc(t.Kept.Contexts, func(old sessions.Context) bool { return old.Equals(&c) }) {
			t.Kept.Contexts, added = append(t.Kept.Contexts, c), append(added, makeContext(e, &c, note))
		}
	}
	if err := t.Session.AddContext(ctx, added...); err != nil {
		return nil, cli.Usage(errors.Join(err, t.Session.Close()))
	}
	return t, nil
}

// open claims the session stored under a name; no other process can use it before Release.
func (t *Talk) open(ctx context.Context, e *cli.Env, name string) error {
	dir, err := NeedStore(e)
	if err != nil {
		return err
	}
	if t.stored, err = sessions.Open(ctx, dir, name); err != nil {
		return err
	}
	t.Kept = t.stored.Conversation
	return nil
}

// Release lets other processes continue the stored session.
func (t *Talk) Release() error {
	if t == nil || t.stored == nil {
		return nil
	}
	return t.stored.Close()
}

// Close ends the session.
func (t *Talk) Close() error { return errors.Join(t.Session.Close(), t.Release()) }

// restore opens the session with its stored state.
func (t *Talk) restore(
	ctx context.Context, e *cli.Env, engine *rlm.Engine, cfg rlm.SessionConfig, note func(string, ...any),
) (err error) {
	if cfg.Keep {
		cfg.Histories = t.Kept.Histories
	}
	if t.Session, err = engine.Open(ctx, t.AddContexts(e, cfg, note)); err != nil {
		return err
	}
	if t.stored == nil || t.stored.IsNew() {
		return nil
	}

	report, err := t.Session.Restore(ctx, t.stored.Snapshot())
	if err != nil {
		return errors.Join(err, t.Session.Close())
	}
	NoteLosses(report, note)
	return nil
}

// NoteLosses writes a note for each value that a session could not restore, and a note why its
// memory did not fit.
func NoteLosses(report tiers.Report, note func(string, ...any)) {
	if report.Inexact != "" && len(report.Left) > 0 {
		note("the session continues with its portable state: %s", report.Inexact)
	}
	for _, left := range report.Left {
		note("not restored: %s: %s", cli.Escape(left.Name), cli.Escape(left.Reason))
	}
}

// AddContexts returns a configuration with the stored contexts. A nil talk has no contexts.
func (t *Talk) AddContexts(e *cli.Env, cfg rlm.SessionConfig, note func(string, ...any)) rlm.SessionConfig {
	if t == nil {
		return cfg
	}
	cfg.Contexts = slices.Clone(cfg.Contexts)
	for _, c := range t.Kept.Contexts {
		cfg.Contexts = append(cfg.Contexts, makeContext(e, &c, note))
	}
	return cfg
}

// Save stores the session for the next command, if it has a name.
func (t *Talk) Save(ctx context.Context) error {
	if t == nil || t.stored == nil {
		return nil
	}
	return t.stored.Save(ctx, t.Kept, func(w io.Writer) error { return t.Session.Snapshot(ctx, w) })
}

// saveTime bounds the time that an interrupted command takes to save its session, because saving
// runs code.
const saveTime = 10 * time.Second

// SaveAtEnd is like Save, for a command that may have been interrupted.
func (t *Talk) SaveAtEnd(ctx context.Context) error {
	if ctx.Err() == nil {
		return t.Save(ctx)
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), saveTime)
	defer cancel()
	return t.Save(ctx)
}

// explain adds advice to the error of a session that cannot continue.
func (t *Talk) explain(err error, name string) error {
	if t.stored == nil || t.stored.IsNew() {
		return err
	}
	return fmt.Errorf("cannot continue session %s: %w; its contexts must not change: "+
		"use another name, or delete it: rlm sessions rm %s", name, err, name)
}

// makeContext makes a session's context from a stored one.
func makeContext(e *cli.Env, c *sessions.Context, note func(string, ...any)) rlm.Context {
	options := c.Reading.Options(e.Settings.CacheDir, note)
	options.Servers = e.Settings.ContextServer
	var made rlm.Context
	switch {
	case c.Path != "":
		made = inputs.Files(options, c.Path)
	case len(c.Paths) > 0:
		made = inputs.Files(options, c.Paths...)
	case c.JSON != nil:
		made = rlm.Value(c.Name, c.JSON)
	case len(c.Text) == 0:
		made = rlm.Text(c.Name, "")
	default:
		made = inputs.Stream(options, c.Name, bytes.NewReader(c.Text), int64(len(c.Text)))
	}
	return made.As(c.Variable)
}

// Ask asks a question and stores what the next run needs.
func (t *Talk) Ask(ctx context.Context, question string) (rlm.Outcome, error) {
	outcome, err := t.Session.Ask(ctx, question)
	if err != nil || t.stored == nil {
		return outcome, err
	}
	t.Kept.Histories = append(slices.Clip(t.Kept.Histories), outcome.Messages)
	return outcome, t.Save(ctx)
}
