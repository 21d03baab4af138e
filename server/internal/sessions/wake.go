package sessions

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/rlmhq/rlm"
	"github.com/rlmhq/rlm/internal/plan/results"
	"github.com/rlmhq/rlm/internal/snippet/session"
	"github.com/rlmhq/rlm/tiers"
)

// wake opens a session in its last saved state, unless it is already open, and repeats its log. The
// caller holds using.
func (m *Manager) wake(ctx context.Context, l *live) error {
	if l.session != nil {
		return nil
	}
	r, err := m.Get(ctx, l.tenant, l.id) // it may have been deleted
	if err != nil {
		return err
	}
	if err := m.takePlace(l); err != nil {
		return err
	}

	var lost *tiers.Loss
	l.log = logged{}
	l.session, err = m.openSession(ctx, &r, l.functions)
	if err == nil {
		lost, err = m.restoreState(ctx, l.session, &r)
	}
	if err == nil && r.Unsaved {
		var more *tiers.Loss
		whole, end := m.unlessClientGone(ctx, l)
		more, err = m.repeatLog(whole, l, &r)
		end()
		lost = results.JoinLosses(lost, more)
	}
	if err != nil {
		err = errors.Join(err, m.close(l))
		m.giveBack(l)
		return err
	}

	l.record, l.lost, l.isKept = r, lost, m.keeps(&r)
	l.isUnsaved.Store(r.Unsaved)
	if r.Unsaved {
		l.changes++ // to save it again
		l.unsaved = time.Now()
		m.noteVariables(l)
	}

	if r.Unsaved && l.isKept && (!r.Logged || lost != nil) {
		m.trySave(l) // another repetition of the log would not yield this state
	}
	return nil
}

// unlessClientGone returns a context that does not end when the client disconnects. Otherwise, a
// log that takes longer than clients wait would never be repeated. The context ends if the session
// is interrupted or deleted, or when the manager ends.
func (m *Manager) unlessClientGone(ctx context.Context, l *live) (_ context.Context, end func()) {
	whole, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	m.mu.Lock()
	l.cancelRepeat = cancel
	m.mu.Unlock()
	if ctx.Err() != nil && !isClientGone(ctx) {
		cancel(context.Cause(ctx)) // this context did not exist when stop was called
	}
	endWithManager := context.AfterFunc(m.life, func() { cancel(errStopping) })

	return whole, func() {
		endWithManager()
		m.mu.Lock()
		l.cancelRepeat = nil
		m.mu.Unlock()
		cancel(nil)
	}
}

// DurabilityOf returns the durability of a session, from its request or from its profile.
func (m *Manager) DurabilityOf(r *Record) string {
	durability := r.Spec.Durability
	if allowed, err := m.Terms(r.Spec.Profile); err == nil && durability == "" {
		durability = allowed.Durability
	}
	return cmp.Or(durability, DurabilityKept)
}

// keeps reports whether each change of a session must be durable before its answer.
func (m *Manager) keeps(r *Record) bool { return m.DurabilityOf(r) != DurabilityIdle }

// repeatLog repeats the entries of a session's log. Lost describes what differed or is missing
// afterwards. An error fails only this request; the next one tries again.
func (m *Manager) repeatLog(ctx context.Context, l *live, r *Record) (lost *tiers.Loss, err error) {
	entries, all, err := m.readLog(ctx, l.id)
	if err != nil && !errors.Is(err, errLogDamaged) {
		return nil, err
	}
	if err != nil {
		m.Log.Error("the log of a session is damaged", "session", l.id, "error", err)
		r.Logged = false
	}
	l.log = all

	differed, before := []string{}, ""
	for i := range entries {
		why, err := repeatEntry(ctx, l.session, &entries[i])
		switch {
		case err != nil && (ctx.Err() != nil || mayPass(err)):
			return nil, err
		case err != nil:
			differed = append(differed, fmt.Sprintf("%s: %v", describeEntry(&entries[i]), err))
		case why == otherVariables && before == why: // reported already
		case why != "":
			differed = append(differed, describeEntry(&entries[i])+": "+why)
		}
		before = why
	}

	if len(differed) > 0 {
		const most = 5
		more := ""
		if n := len(differed) - most; n > 0 {
			differed, more = differed[:most], fmt.Sprintf("; and %d more", n)
		}
		lost = newLoss("The server was killed. It repeated what had run since the session was saved, and this " +
			"was different the second time: " + strings.Join(differed, "; ") + more + ".")
	}

	if !r.Logged {
		l.log.gap = "the log ends before the session did"
		lost = results.JoinLosses(lost, newLoss("The session could not be kept as it was; it went back to its "+
			"last saved state."))
	}
	return lost, nil
}

// mayPass reports whether an error may be temporary, so that the entry should be repeated later.
func mayPass(err error) bool {
	var broken *tiers.BrokenError
	return errors.As(err, &broken) || errors.Is(err, rlm.ErrBusy) || errors.Is(err, rlm.ErrClosed)
}

// describeEntry describes an entry for a human reader.
func describeEntry(e *session.Change) string {
	if e.Moved != "" {
		return fmt.Sprintf("the variable %.100q that moved", e.Moved)
	}
	line, _, _ := strings.Cut(strings.TrimSpace(string(e.Source)), "\n")
	return fmt.Sprintf("the snippet %.60q", line)
}

const otherVariables = "the variables after it"

// repeatEntry repeats an entry of a log in a session. Why describes how the repetition differed; it
// is empty if it did not.
func repeatEntry(ctx context.Context, s *rlm.Session, e *session.Change) (why string, err error) {
	tape, err := session.ReadTape(e.Tape)
	if err != nil {
		return "", err
	}
	if e.Moved != "" {
		tape.MoveVariable()
	}

	result, err := s.RunJob(tape.With(ctx), tiers.Job{Language: e.Language, Source: string(e.Source)})
	if err != nil {
		return "", err
	}
	switch {
	case tape.Strayed() != "":
		return tape.Strayed(), nil
	case !bytes.Equal(session.Outcome(&result.Result), e.Outcome):
		return "its output or its end", nil
	case !bytes.Equal(session.SumVariables(&result.Result), e.Variables):
		return otherVariables, nil
	}
	return "", nil
}
