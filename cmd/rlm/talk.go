package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/rlmhq/rlm"
	"github.com/rlmhq/rlm/cmd/rlm/internal/sessions"
)

// talk is a session that goes on from question to question and, with a name, from run to run.
type talk struct {
	session *rlm.Session
	kept    sessions.Conversation
	file    *sessions.File // nil without a name
}

// openTalk opens the session of a task. It has the contexts, the variables and the histories
// that are kept under the name, and the contexts of the flags.
func (f *runFlags) openTalk(
	ctx context.Context, e *env, engine *rlm.Engine, task *rlm.AnswerTask, note func(string, ...any),
) (_ *talk, err error) {
	given, err := f.contexts.keep(e.stdin)
	if err != nil {
		return nil, &exitError{exitUsage, err}
	}
	t := &talk{}
	if f.session != "" {
		if t.file, err = sessions.Open(f.session); err != nil {
			return nil, &exitError{exitUsage, err}
		}
		t.kept = t.file.Conversation
		defer func() { err = errors.Join(err, t.file.Close()) }()
	}
	if err := t.restore(ctx, e, engine, task, note); err != nil {
		return nil, &exitError{exitUsage, t.explain(err, f.session)}
	}

	var added []rlm.Context
	for _, c := range given {
		if !slices.ContainsFunc(t.kept.Contexts, func(old sessions.Context) bool { return old.Equals(&c) }) {
			t.kept.Contexts, added = append(t.kept.Contexts, c), append(added, e.makeContext(&c, note))
		}
	}
	if err := t.session.AddContext(ctx, added...); err != nil {
		return nil, &exitError{exitUsage, errors.Join(err, t.session.Close())}
	}
	return t, nil
}

// restore opens the session as it was kept.
func (t *talk) restore(
	ctx context.Context, e *env, engine *rlm.Engine, task *rlm.AnswerTask, note func(string, ...any),
) (err error) {
	cfg := rlm.SessionConfig{
		Policy: task.Policy, Limits: task.Config.Limits, Deterministic: task.Config.Deterministic,
		Ask: task.Config, Keep: true, Histories: t.kept.Histories, Out: task.Config.Out != "",
	}
	cfg.Ask.Out = "" // the caller collects the session's files
	for _, c := range t.kept.Contexts {
		cfg.Contexts = append(cfg.Contexts, e.makeContext(&c, note))
	}
	if t.session, err = engine.Open(ctx, cfg); err != nil {
		return err
	}
	if t.file == nil || t.file.Snapshot() == nil {
		return nil
	}

	report, err := t.session.Restore(ctx, t.file.Snapshot())
	if err != nil {
		return errors.Join(err, t.session.Close())
	}
	for _, left := range report.Left {
		note("not restored: %s: %s", escape(left.Name), escape(left.Reason))
	}
	return nil
}

// explain says what to do about a session that cannot go on.
func (t *talk) explain(err error, name string) error {
	if t.file == nil || t.file.Snapshot() == nil {
		return err
	}
	path, pathErr := sessions.Path(name)
	return errors.Join(fmt.Errorf("cannot continue session %s: %w; its contexts must not change: "+
		"use another name, or delete %s", name, err, path), pathErr)
}

// makeContext returns a kept context for a session.
func (e *env) makeContext(c *sessions.Context, note func(string, ...any)) rlm.Context {
	options := c.Reading.Options(e.settings.CacheDir, note)
	options.Servers = e.settings.ContextServer
	var made rlm.Context
	switch {
	case c.Path != "":
		made = rlm.Files(options, c.Path)
	case len(c.Paths) > 0:
		made = rlm.Files(options, c.Paths...)
	case c.JSON != nil:
		made = rlm.Value(c.Name, c.JSON)
	case len(c.Text) == 0:
		made = rlm.Text(c.Name, "")
	default:
		made = rlm.Stream(options, c.Name, bytes.NewReader(c.Text), int64(len(c.Text)))
	}
	return made.As(c.Variable)
}

// ask asks a question, and keeps what the next run needs.
func (t *talk) ask(ctx context.Context, question string) (rlm.AnswerOutcome, error) {
	outcome, err := t.session.Ask(ctx, question)
	if err != nil || t.file == nil {
		return outcome, err
	}
	t.kept.Histories = append(slices.Clip(t.kept.Histories), outcome.Messages)
	return outcome, t.file.Save(t.kept, func(w io.Writer) error { return t.session.Snapshot(ctx, w) })
}
