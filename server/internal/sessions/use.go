package sessions

import (
	"context"
	"database/sql"
	"errors"
	"net/http"
	"slices"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/rlmhq/rlm"
	"github.com/rlmhq/rlm/internal/plan/results"
	"github.com/rlmhq/rlm/internal/snippet/protocol"
	"github.com/rlmhq/rlm/internal/snippet/session"
	"github.com/rlmhq/rlm/internal/snippet/wirevalue"
	"github.com/rlmhq/rlm/internal/text/problem"
	"github.com/rlmhq/rlm/router"
	"github.com/rlmhq/rlm/server/internal/access"
	"github.com/rlmhq/rlm/server/internal/contents"
	"github.com/rlmhq/rlm/server/internal/snippets"
	"github.com/rlmhq/rlm/tiers"
)

// Exec runs a snippet in a session of the key's tenant.
func (m *Manager) Exec(
	ctx context.Context, k access.Key, id string, snippet *snippets.Snippet,
) (result *results.Result, err error) {
	if err := m.Quota.Check(ctx, k.Tenant, k.Limits.Files, 0); err != nil {
		return nil, err
	}

	begun := time.Now()
	effects := tiers.EffectsNeverRan
	err = m.use(ctx, k.Tenant, id, true, func(ctx context.Context, l *live) (err error) {
		if result, err = m.run(ctx, l, snippet); err != nil {
			effects = effectsOf(err)
			return err
		}
		effects = tiers.EffectsRan
		if isClientGone(ctx) {
			l.lost = result.Lost // for the next request
		}
		return nil
	})
	if m.Ran != nil && result != nil {
		m.Ran(string(result.Status), time.Since(begun))
	}

	if known := (*problem.Error)(nil); errors.As(err, &known) {
		told := *known
		told.Effects = effects
		err = &told
	}
	return result, err
}

// effectsOf returns the effects of a snippet that ended with an error.
func effectsOf(err error) tiers.Effects {
	var refused *router.NoTierError
	var broken *tiers.BrokenError
	switch {
	case errors.Is(err, snippets.ErrLanguage), errors.Is(err, snippets.ErrVariables):
		return tiers.EffectsNeverRan
	case errors.As(err, &refused):
		return refused.Effects
	case errors.As(err, &broken):
		return broken.Effects
	}
	return tiers.EffectsUnknown
}

// isClientGone reports whether the client of a request has gone away.
func isClientGone(ctx context.Context) bool {
	why := context.Cause(ctx)
	return why != nil && !errors.Is(why, errInterrupted) && !errors.Is(why, errDeleted) && !errors.Is(why, errStopping)
}

// run runs a snippet and records the variables. Its result includes all losses that no result has
// reported yet. The caller holds using.
func (m *Manager) run(ctx context.Context, l *live, snippet *snippets.Snippet) (*results.Result, error) {
	result, err := snippet.Run(ctx, m.Engine, l.session)
	m.noteVariables(l)
	if err == nil {
		if l.lost != nil {
			session.ChangeLogOf(ctx).Break("the saved state has a loss that this result reports")
		}
		result.Lost, l.lost = results.JoinLosses(l.lost, result.Lost), nil
		result.OmitKnown(&l.enforced)
	}
	return result, err
}

// runOwn runs a snippet of the manager, whose result no client receives.
func (m *Manager) runOwn(ctx context.Context, l *live, source string) (*results.Result, error) {
	result, err := m.run(ctx, l, &snippets.Snippet{Language: tiers.Python, Source: source})
	if err == nil {
		l.lost = result.Lost
	}
	return result, err
}

// listVariables makes a restored session list its variables.
func (m *Manager) listVariables(ctx context.Context, l *live) error {
	_, err := m.runOwn(ctx, l, "pass")
	return err
}

func (m *Manager) noteVariables(l *live) {
	if known := l.session.Variables(); known != nil {
		l.variables.Store(&known)
	}
}

// Variables returns the variables of a session after its last snippet that ended normally.
func (m *Manager) Variables(ctx context.Context, tenant, id string) ([]tiers.Variable, error) {
	r, err := m.Get(ctx, tenant, id)
	if err != nil {
		return nil, err
	}

	l := m.find(id)
	if l == nil && r.Unsaved && r.Logged { // some variables may exist only in the log
		err = m.use(ctx, tenant, id, false, func(_ context.Context, woken *live) error {
			l = woken
			return nil
		})
	}
	if l != nil {
		if known := l.variables.Load(); known != nil {
			return *known, nil
		}
	}
	return r.Standing.Variables, err
}

// GetVariable returns the value of a variable, in the format of package wirevalue.
func (m *Manager) GetVariable(ctx context.Context, tenant, id, name string) (value wirevalue.Value, err error) {
	err = m.use(ctx, tenant, id, true, func(ctx context.Context, l *live) error {
		return badRequest("name", l.session.Get(ctx, name, &value))
	})
	return value, err
}

// SetVariable sets a variable to a value in the format of package wirevalue.
func (m *Manager) SetVariable(ctx context.Context, k access.Key, id, name string, value jsontext.Value) error {
	if err := m.Quota.Check(ctx, k.Tenant, k.Limits.Files, 0); err != nil {
		return err
	}
	return m.use(ctx, k.Tenant, id, true, func(ctx context.Context, l *live) error {
		defer m.noteVariables(l)
		return badRequest("value", l.session.Set(ctx, name, wirevalue.Value(value)))
	})
}

// DeleteVariable deletes a variable.
func (m *Manager) DeleteVariable(ctx context.Context, tenant, id, name string) error {
	return m.use(ctx, tenant, id, true, func(ctx context.Context, l *live) error {
		if err := protocol.CheckName(name); err != nil {
			return problem.Bad("name", "%.100q cannot be deleted: it is reserved, or no identifier", name)
		}
		result, err := m.runOwn(ctx, l, "del "+name)
		switch {
		case err != nil:
			return err
		case result.Exception != nil && result.Exception.Type == "NameError":
			return problem.NotFound("variable", name)
		case result.Status != tiers.StatusOK:
			return problem.New(http.StatusConflict, "not_deleted",
				"the variable may be there still: to delete it ended with %s", result.Status)
		}
		return nil
	})
}

// badRequest returns an error about a value or a name as a client error. It leaves errors of the
// session unchanged.
func badRequest(param string, err error) error {
	if err == nil || isOurs(err) {
		return err
	}
	return problem.Bad(param, "%v", err)
}

// isOurs reports whether an error has causes other than the client's data.
func isOurs(err error) bool {
	var broken *tiers.BrokenError
	return errors.As(err, &broken) || slices.ContainsFunc(
		[]error{rlm.ErrBusy, rlm.ErrClosed, rlm.ErrInUse, rlm.ErrNoTier, context.Canceled, context.DeadlineExceeded},
		func(known error) bool { return errors.Is(err, known) })
}

// AddContexts adds contexts for later snippets of a session of the key's tenant.
func (m *Manager) AddContexts(ctx context.Context, k access.Key, id string, list []Content) (r Record, err error) {
	err = m.use(ctx, k.Tenant, id, true, func(ctx context.Context, l *live) error {
		err := m.add(ctx, k, l, list)
		r = l.record
		return err
	})
	return r, err
}

// add adds either all contexts to an open session or none. The caller holds using.
func (m *Manager) add(ctx context.Context, k access.Key, l *live, list []Content) error {
	before := len(l.record.Spec.Contexts)
	if err := checkContents(list, before); err != nil {
		return err
	}
	more := int64(0)
	for _, c := range list {
		more += int64(len(c.Text))
	}
	if err := m.Quota.Check(ctx, k.Tenant, k.Limits.Files, more); err != nil {
		return err
	}

	r := l.record
	r.Spec.Contexts = slices.Clip(r.Spec.Contexts)
	incoming, err := m.writeContents(ctx, &r, list)
	if err == nil {
		err = m.addContexts(ctx, k, l, &r, incoming)
	}
	if err != nil {
		m.Contents.Drop(incoming)
	}
	return err
}

// addContexts adds written contexts to an open session, whose record r already includes them.
func (m *Manager) addContexts(
	ctx context.Context, k access.Key, l *live, r *Record, incoming []*contents.Incoming,
) error {
	opened, closeFiles, err := m.openContexts(ctx, r, len(l.record.Spec.Contexts))
	if err != nil {
		return err
	}
	defer closeFiles()

	bytes := sizeOf(incoming)
	err = m.Quota.Add(ctx, k.Tenant, k.Limits.Files, bytes, func() error {
		return m.Contents.Keep(ctx, incoming, func(tx *sql.Tx) error {
			return errors.Join(setSpec(ctx, tx, r, bytes), distrustLog(ctx, tx, r.ID))
		})
	})
	if err != nil {
		return err
	}
	l.record.Logged, r.Logged, l.log.gap = false, false, "contexts were added"
	if err := l.session.AddContext(ctx, opened...); err != nil {
		return errors.Join(badRequest("contexts", err), m.takeBack(context.WithoutCancel(ctx), l, incoming))
	}
	l.record = *r
	return nil
}

// takeBack undoes the addition of contexts to the record of a session.
func (m *Manager) takeBack(ctx context.Context, l *live, incoming []*contents.Incoming) error {
	for i, d := range incoming {
		err := m.Contents.Remove(ctx, d.Path, func(tx *sql.Tx) error {
			if i > 0 {
				return nil
			}
			return setSpec(ctx, tx, &l.record, -sizeOf(incoming))
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// Fork makes a session with a copy of the variables and the same contexts.
func (m *Manager) Fork(ctx context.Context, k access.Key, id, name, word string) (fork Record, err error) {
	request := Request{Name: name, Idempotency: word}
	if err := request.check(); err != nil {
		return fork, err
	}
	leave, err := m.enter(ctx, k.Tenant, name, word)
	if err != nil {
		return fork, err
	}
	defer leave()
	digest := []byte("fork of " + id + " as " + name)
	if word != "" {
		known, err := m.repeated(ctx, k.Tenant, &Request{Idempotency: word}, digest, true)
		if err != nil || known.ID != "" {
			return known, err
		}
	}

	if name != "" {
		known, err := m.named(ctx, k.Tenant, name)
		if err == nil && known.ID != "" {
			err = problem.New(http.StatusConflict, "name_taken",
				"there is a session %q: delete it, or choose another name", name)
		}
		if err != nil {
			return fork, err
		}
	}

	err = m.use(ctx, k.Tenant, id, false, func(ctx context.Context, l *live) error {
		fork = m.newRecord(k, name, l.record.Spec)
		fork.digest = digest
		return m.adopt(ctx, k, fork, func(ctx context.Context, f *live) (err error) {
			incoming, err := m.copyContexts(ctx, &l.record, fork.ID)
			defer func() {
				if err != nil {
					m.Contents.Drop(incoming)
				}
			}()
			if err != nil {
				return err
			}
			if f.session, err = l.session.Fork(ctx); err != nil {
				return err
			}
			f.variables.Store(l.variables.Load())
			f.lost = l.lost
			f.record.Logged = false // none of its variables are on disk yet
			if err = m.insert(ctx, k, &f.record, incoming, word); err != nil || !f.isKept {
				return err
			}
			if err = m.saveInstead(ctx, f, "it is a copy of another session"); err != nil {
				incoming = nil // delete removes the contents
				_, failed := m.delete(context.WithoutCancel(ctx), f.id)
				err = errors.Join(err, failed)
			}
			return err
		})
	})
	return fork, err
}

// copyContexts writes the contexts of a session for another one.
func (m *Manager) copyContexts(ctx context.Context, r *Record, to string) ([]*contents.Incoming, error) {
	var list []Content
	for i, c := range r.Spec.Contexts {
		content := Content{Variable: c.Variable, IsValue: c.IsValue}
		content.Name, content.Path = c.Name, contextPath(r.ID, i)
		list = append(list, content)
	}
	return m.writeContents(ctx, &Record{ID: to}, list)
}

// Files copies the files that snippets wrote below /out into an empty folder of this machine.
func (m *Manager) Files(ctx context.Context, tenant, id, dir string) (got tiers.Collected, err error) {
	err = m.use(ctx, tenant, id, false, func(ctx context.Context, l *live) (err error) {
		if !l.record.Spec.Out {
			return problem.New(http.StatusConflict, "no_out",
				`the session has no folder /out: make one with "out": true`)
		}
		got, err = l.session.Files(ctx, dir)
		return err
	})
	return got, err
}

// asProblem converts an error of a session for the client. A nil error stays nil.
func (m *Manager) asProblem(ctx context.Context, err error) error {
	var known *problem.Error
	var refused *router.NoTierError
	var broken *tiers.BrokenError
	why := context.Cause(ctx)
	switch {
	case err == nil || errors.As(err, &known):
		return err
	case errors.Is(why, errInterrupted):
		return problem.New(http.StatusConflict, "interrupted", "the snippet was interrupted; the session goes on%s",
			describeLoss(err))
	case errors.Is(why, errDeleted):
		return problem.New(http.StatusConflict, "deleted", "the session was deleted while the snippet ran")
	case errors.Is(why, errStopping) || errors.Is(err, rlm.ErrClosed):
		if errors.As(err, &broken) && broken.Effects != tiers.EffectsNeverRan {
			return problem.New(http.StatusServiceUnavailable, "draining",
				"the server is stopping, and the snippet was interrupted%s", describeLoss(err))
		}
		return errDraining()
	case ctx.Err() != nil:
		return problem.New(http.StatusRequestTimeout, "client_gone", "the client went away")
	case errors.Is(err, snippets.ErrLanguage):
		return problem.Bad("language", "%v", err)
	case errors.Is(err, snippets.ErrVariables) && !isOurs(err):
		return problem.Bad("variables", "%v", err)
	case errors.As(err, &refused):
		return problem.New(http.StatusUnprocessableEntity, "no_tier", "%v", refused)
	case errors.Is(err, rlm.ErrBusy) && (!errors.As(err, &broken) || broken.Effects == tiers.EffectsNeverRan):
		if broken != nil {
			err = broken.Err
		}
		return problem.Later(http.StatusServiceUnavailable, "busy", time.Second,
			"%v: nothing has run, so try again", err)
	case errors.As(err, &broken):
		m.Log.Error("a tier broke", "tier", broken.Tier, "error", err)
		return problem.New(http.StatusBadGateway, "broken", "tier %s broke, %s%s: see the server's log",
			broken.Tier, describeEffects(broken.Effects), describeLoss(err))
	}

	return err
}

func describeEffects(e tiers.Effects) string {
	switch e {
	case tiers.EffectsNeverRan:
		return "before the snippet ran"
	case tiers.EffectsRan:
		return "after the snippet had begun"
	case tiers.EffectsUnknown:
	}
	return "and the snippet may have run"
}

// describeLoss describes the snippets that were lost with an error, or returns "" if there are
// none.
func describeLoss(err error) string {
	var broken *tiers.BrokenError
	if !errors.As(err, &broken) || broken.Lost == nil {
		return ""
	}
	return "; " + session.DescribeLoss(broken.Lost)
}
