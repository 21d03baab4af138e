package sessions

import (
	"context"
	"errors"
	"time"

	"github.com/rlmhq/rlm"
	"github.com/rlmhq/rlm/internal/snippet/session"
	"github.com/rlmhq/rlm/server/internal/access"
	"github.com/rlmhq/rlm/server/internal/connect"
	"github.com/rlmhq/rlm/server/internal/runs"
)

// Holder holds sessions for a connection of a key. It is a [connect.Keeper].
type Holder struct {
	*Manager
	Key     access.Key
	Profile string
}

var _ connect.Keeper = (*Holder)(nil)

// Reserve counts an unnamed session, which lives as long as its connection, until release is
// called.
func (h *Holder) Reserve() (release func(), err error) {
	if err := h.reserve(&h.Key); err != nil {
		return nil, err
	}
	l := &live{tenant: h.Key.Tenant}
	if err := h.takePlace(l); err != nil {
		h.unreserve(h.Key.ID, h.Key.Tenant)
		return nil, err
	}

	return func() {
		h.giveBack(l)
		h.unreserve(h.Key.ID, h.Key.Tenant)
	}, nil
}

// Hold implements [connect.Keeper].
func (h *Holder) Hold(ctx context.Context, r *connect.KeptRequest) (_ connect.Kept, notes []string, err error) {
	record, notes, err := h.Create(ctx, h.Key, Request{
		Name: r.Name, Contents: contentsOf(r.Contexts), Spec: Spec{
			Profile: h.Profile, Limits: r.Limits, Policy: r.Policy, Deterministic: r.Deterministic, Out: r.Out,
			Durability: r.Durability,
		},
	})
	if err != nil {
		return nil, nil, err
	}
	ctx, l, err := h.claim(ctx, h.Key.Tenant, record.ID)
	if err != nil {
		return nil, nil, err
	}
	if err := h.prepare(ctx, l, r.Functions); err != nil {
		l.functions = nil
		h.release(l)
		return nil, nil, h.asProblem(ctx, err)
	}
	if l.lost != nil {
		notes = append(notes, l.lost.Reason)
		l.log.gap = "the saved state has a loss that the client knows"
	}
	l.lost = nil
	h.free(l)

	h.mu.Lock()
	defer h.mu.Unlock()
	l.isHeld = true
	l.cancel(nil)
	l.cancel = nil
	h.requests.Done()
	return &held{h, l}, notes, nil
}

func contentsOf(list []connect.KeptContext) (all []Content) {
	for _, c := range list {
		all = append(all, Content{
			Content: runs.Content{Name: c.Name, Text: c.Text}, Variable: c.Name, IsValue: c.IsValue,
		})
	}
	return all
}

// prepare opens a session with the functions of a connection. If the session is open without them,
// prepare reopens it. The caller holds using.
func (m *Manager) prepare(ctx context.Context, l *live, functions []rlm.Function) error {
	if len(functions) > 0 && l.session != nil {
		if l.record.Unsaved {
			if err := m.save(ctx, l); err != nil {
				return err
			}
		}
		if err := m.close(l); err != nil {
			return err
		}
	}

	l.functions = functions
	if err := m.wake(ctx, l); err != nil {
		return err
	}
	if l.session.Variables() != nil || len(l.record.Standing.Variables) == 0 {
		return nil
	}
	return m.listVariables(ctx, l)
}

// held is a session that a connection holds.
type held struct {
	*Holder
	l *live
}

// Enter implements [connect.Kept].
func (h *held) Enter(ctx context.Context) (_ context.Context, _ *rlm.Session, leave func() error, err error) {
	l := h.l
	h.mu.Lock()
	switch {
	case h.closed:
		err = errDraining()
	case l.isDeleted:
		err = errNotFound(l.id)
	}
	if err != nil {
		h.mu.Unlock()
		return nil, nil, nil, err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	l.cancel = cancel
	h.requests.Add(1)
	h.mu.Unlock()

	l.using.Lock()
	stop := context.AfterFunc(h.life, func() { cancel(errStopping) })
	var done *session.ChangeLog
	leave = func() error {
		stop()
		if l.session != nil {
			h.noteVariables(l)
		}
		failed := h.keep(ctx, l, done)
		h.free(l)
		h.mu.Lock()
		defer h.mu.Unlock()
		l.lastUse, l.cancel = time.Now(), nil
		cancel(nil)
		h.requests.Done()
		return failed
	}
	if err = h.Quota.Check(ctx, l.tenant, h.Key.Limits.Files, 0); err == nil {
		err = h.wake(ctx, l)
	}
	if err == nil {
		err = h.noteChange(ctx, l)
	}
	if err != nil {
		err = h.asProblem(ctx, err)
		_ = leave() // no snippet has run
		return nil, nil, nil, err
	}
	done = l.changeLog()
	return done.With(ctx), l.session, leave, nil
}

// Add implements [connect.Kept].
func (h *held) Add(ctx context.Context, contexts []connect.KeptContext) error {
	return h.asProblem(ctx, h.add(ctx, h.Key, h.l, contentsOf(contexts)))
}

// Release implements [connect.Kept]. A session with functions of the connection is saved and
// closed, because the functions no longer have a host.
func (h *held) Release() (err error) {
	l := h.l
	l.using.Lock()
	if l.session != nil && l.record.Unsaved && l.tried != l.changes {
		h.trySave(l)
	}
	if len(l.functions) > 0 && !l.record.Unsaved {
		err = h.close(l)
	}
	l.functions = nil
	isOpen := l.session != nil
	l.using.Unlock()

	h.mu.Lock()
	defer h.mu.Unlock()
	l.isHeld, l.isBusy, l.lastUse = false, false, time.Now()
	if !isOpen && h.lives[l.id] == l && !l.isDeleted {
		delete(h.lives, l.id)
	}
	if errors.Is(err, rlm.ErrClosed) {
		err = nil // the engine has ended
	}
	return err
}
