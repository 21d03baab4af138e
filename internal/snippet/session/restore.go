package session

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/rlmhq/rlm/tiers"
)

// reject ends a snippet that its guest cannot run.
func (m *Machine) reject(ctx context.Context, guest Guest, s Snippet, ending Ending) error {
	m.Accounts.End(ending.Code)
	m.Accounts.forget()

	before := s
	before.Ordinal--
	healed, err := guest.Heal(ctx, before, !ending.IsGone)
	if err != nil {
		return m.broken(tiers.EffectsNeverRan, nil, errors.Join(ending.Rejected, err))
	}
	if lost := m.lost(guest, before, healed); lost != nil {
		return m.broken(tiers.EffectsNeverRan, lost, ending.Rejected)
	}
	return ending.Rejected
}

// finish returns the result of a snippet that has ended, and makes the guest fit for the next one.
func (m *Machine) finish(
	ctx context.Context, guest Guest, s Snippet, ending Ending, changed *tiers.Loss,
) (tiers.Result, error) {
	a := m.Accounts
	r := a.End(ending.Code)
	r.Usage.Fuel, r.Usage.PeakMemory = ending.Fuel, ending.PeakMemory
	r.Enforced = m.Enforced[s.Language]
	if m.Denials != nil {
		r.Denied = m.Denials()
	}
	if r.Status == tiers.StatusCrashed {
		crash := ending.Crash
		r.Exception = &crash
	}

	isOrderly := !ending.IsGone && (r.Status != tiers.StatusCrashed || a.WasInterrupted())
	healed, err := guest.Heal(context.WithoutCancel(ctx), s, isOrderly)
	r.Lost = JoinLosses(changed, m.lost(guest, s, healed))
	if err != nil {
		err = fmt.Errorf("cannot restore the sandbox: %w", errors.Join(err, healed.Fault))
		return r, m.broken(tiers.EffectsRan, r.Lost, err)
	}

	err = m.explain(ctx, &r, healed)
	return r, err
}

// explain returns an error if anything except the snippet itself or its limits ended the snippet.
func (m *Machine) explain(ctx context.Context, r *tiers.Result, healed Healed) error {
	a := m.Accounts
	isLost := r.Lost != nil && healed.Kept < a.Ordinal()
	switch {
	case a.Failure() != nil:
		return m.broken(tiers.EffectsRan, r.Lost, a.Failure())
	case isLost && a.Missing() != "":
		a.forget()
		return m.lacksModule(a.Missing())
	case a.WasInterrupted(), isLost && ctx.Err() != nil:
		return m.broken(tiers.EffectsRan, r.Lost, context.Cause(ctx))
	case healed.Fault != nil:
		return m.broken(tiers.EffectsRan, r.Lost, healed.Fault)
	}

	if err := a.CheckInputs(); err != nil {
		return m.broken(tiers.EffectsRan, r.Lost, err)
	}
	return nil
}

func (m *Machine) lacksModule(name string) error {
	return &tiers.RejectedError{
		Tier: m.Tier, Missing: name, Effects: tiers.EffectsRan,
		Reason: fmt.Sprintf("it lacks the module %s, which the snippet imported at run time", name),
	}
}

// lost describes the snippets whose effects disappeared when a guest returned to an earlier state,
// or returns nil.
func (m *Machine) lost(guest Guest, s Snippet, healed Healed) *tiers.Loss {
	if healed.Kept >= s.Ordinal {
		return nil
	}

	loss := &tiers.Loss{}
	for n := healed.Kept + 1; n <= s.Ordinal; n++ {
		if owner := m.foreign[n]; owner == nil || owner == guest {
			loss.Snippets = append(loss.Snippets, n)
		}
	}
	if healed.Why != "" {
		loss.Reason = fmt.Sprintf(
			"The %s had to be stopped and the session starts again, empty, because %s.", m.noun(s),
			healed.Why,
		)
		return loss
	}

	state := "the state before the snippet"
	switch {
	case healed.Kept == 0:
		state = "a fresh sandbox"
	case len(loss.Snippets) > 1:
		state = fmt.Sprintf("the state after snippet %d", healed.Kept)
	}
	loss.Reason = fmt.Sprintf(
		"The %s had to be stopped; the session was restored to %s.", m.noun(s), state,
	)
	if n := len(loss.Snippets); n > 1 {
		loss.Reason += fmt.Sprintf(
			" The changes that snippets %d to %d made to the variables are lost.", loss.Snippets[0],
			loss.Snippets[n-1],
		)
	}
	return loss
}

func (m *Machine) noun(s Snippet) string {
	if noun := m.Nouns[s.Language]; noun != "" {
		return noun
	}
	return "interpreter"
}

// LeftOf converts a loss that no result has reported yet to an entry in a state's list of values
// left behind.
func LeftOf(lost *tiers.Loss) tiers.Left {
	reason := lost.Reason
	if len(lost.Snippets) > 0 {
		reason += fmt.Sprintf(" (%s)", DescribeLoss(lost))
	}
	return tiers.Left{Name: "*", Type: "session", Reason: reason}
}

// DescribeLoss names the snippets of a loss.
func DescribeLoss(lost *tiers.Loss) string {
	numbers := strings.Trim(fmt.Sprint(lost.Snippets), "[]")
	return "what these snippets did is lost: " + strings.ReplaceAll(numbers, " ", ", ")
}

// JoinLosses adds one loss to another. Either may be nil.
func JoinLosses(a, b *tiers.Loss) *tiers.Loss {
	switch {
	case a == nil:
		return b
	case b == nil:
		return a
	}
	snippets := slices.Concat(a.Snippets, b.Snippets)
	slices.Sort(snippets)
	return &tiers.Loss{Snippets: slices.Compact(snippets), Reason: a.Reason + " " + b.Reason}
}
