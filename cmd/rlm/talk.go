package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/rlmhq/rlm"
	"github.com/rlmhq/rlm/cmd/rlm/internal/sessions"
	"github.com/rlmhq/rlm/inputs"
	"github.com/rlmhq/rlm/tiers"
)

// talk is a session that goes on from question to question and, with a name, from run to run.
type talk struct {
	session *rlm.Session
	kept    sessions.Conversation
	stored  *sessions.Kept // nil without a name
}

// openKept opens the session of a name, none if it is empty. It has the contexts, the variables and
// the histories that are kept under the name, and the contexts of the flags.
func (e *env) openKept(
	ctx context.Context, engine *rlm.Engine, name string, contexts *contextFlags, cfg rlm.SessionConfig,
	note func(string, ...any),
) (_ *talk, err error) {
	given, err := contexts.keep(e)
	if err != nil {
		return nil, Usage(err)
	}
	t := &talk{}
	defer func() {
		if err != nil {
			err = joinExit(err, t.release())
		}
	}()
	if name != "" {
		if err := t.open(ctx, e, name); err != nil {
			return nil, Usage(err)
		}
	}
	if err := t.restore(ctx, e, engine, cfg, note); err != nil {
		return nil, Usage(t.explain(err, name))
	}

	var added []rlm.Context
	for _, c := range given {
		if !slices.ContainsFunc(t.kept.Contexts, func(old sessions.Context) bool { return old.Equals(&c) }) {
			t.kept.Contexts, added = append(t.kept.Contexts, c), append(added, e.makeContext(&c, note))
		}
	}
	if err := t.session.AddContext(ctx, added...); err != nil {
		return nil, Usage(errors.Join(err, t.session.Close()))
	}
	return t, nil
}

// open takes what is kept under a name, which no other process can use before release.
func (t *talk) open(ctx context.Context, e *env, name string) error {
	dir, err := e.needStore()
	if err != nil {
		return err
	}
	if t.stored, err = sessions.Open(ctx, dir, name); err != nil {
		return err
	}
	t.kept = t.stored.Conversation
	return nil
}

// release lets other processes continue what is kept under the name.
func (t *talk) release() error {
	if t == nil || t.stored == nil {
		return nil
	}
	return t.stored.Close()
}

// close ends the session.
func (t *talk) close() error { return errors.Join(t.session.Close(), t.release()) }

// restore opens the session as it was kept.
func (t *talk) restore(
	ctx context.Context, e *env, engine *rlm.Engine, cfg rlm.SessionConfig, note func(string, ...any),
) (err error) {
	if cfg.Keep {
		cfg.Histories = t.kept.Histories
	}
	if t.session, err = engine.Open(ctx, t.addContexts(e, cfg, note)); err != nil {
		return err
	}
	if t.stored == nil || t.stored.IsNew() {
		return nil
	}

	report, err := t.session.Restore(ctx, t.stored.Snapshot())
	if err != nil {
		return errors.Join(err, t.session.Close())
	}
	noteLosses(report, note)
	return nil
}

// noteLosses notes each value that a session has not got back, and why its memory did not fit.
func noteLosses(report tiers.Report, note func(string, ...any)) {
	if report.Inexact != "" && len(report.Left) > 0 {
		note("the session continues with its portable state: %s", report.Inexact)
	}
	for _, left := range report.Left {
		note("not restored: %s: %s", escape(left.Name), escape(left.Reason))
	}
}

// addContexts returns a configuration with the kept contexts. A nil talk has none.
func (t *talk) addContexts(e *env, cfg rlm.SessionConfig, note func(string, ...any)) rlm.SessionConfig {
	if t == nil {
		return cfg
	}
	cfg.Contexts = slices.Clone(cfg.Contexts)
	for _, c := range t.kept.Contexts {
		cfg.Contexts = append(cfg.Contexts, e.makeContext(&c, note))
	}
	return cfg
}

// save keeps the session for the next command, if it has a name.
func (t *talk) save(ctx context.Context) error {
	if t == nil || t.stored == nil {
		return nil
	}
	return t.stored.Save(ctx, t.kept, func(w io.Writer) error { return t.session.Snapshot(ctx, w) })
}

// saveTime bounds how long an interrupted command saves its session, whose code runs for that.
const saveTime = 10 * time.Second

// saveAtEnd is save for a command that may have been interrupted.
func (t *talk) saveAtEnd(ctx context.Context) error {
	if ctx.Err() == nil {
		return t.save(ctx)
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), saveTime)
	defer cancel()
	return t.save(ctx)
}

// explain says what to do about a session that cannot go on.
func (t *talk) explain(err error, name string) error {
	if t.stored == nil || t.stored.IsNew() {
		return err
	}
	return fmt.Errorf("cannot continue session %s: %w; its contexts must not change: "+
		"use another name, or delete it: rlm sessions rm %s", name, err, name)
}

// makeContext returns a kept context for a session.
func (e *env) makeContext(c *sessions.Context, note func(string, ...any)) rlm.Context {
	options := c.Reading.Options(e.settings.CacheDir, note)
	options.Servers = e.settings.ContextServer
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

// ask asks a question, and keeps what the next run needs.
func (t *talk) ask(ctx context.Context, question string) (rlm.AnswerOutcome, error) {
	outcome, err := t.session.Ask(ctx, question)
	if err != nil || t.stored == nil {
		return outcome, err
	}
	t.kept.Histories = append(slices.Clip(t.kept.Histories), outcome.Messages)
	return outcome, t.save(ctx)
}
