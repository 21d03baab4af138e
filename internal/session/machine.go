package session

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/rlmhq/rlm/internal/protocol"
	"github.com/rlmhq/rlm/tiers"
)

// Guest runs the snippets of one session in one language or several. A Machine drives
// it. It has one owner.
type Guest interface {
	// Prepare makes the guest ready for a snippet: it starts what is gone, compiles,
	// runs earlier snippets again. Nothing of that is charged to the snippet. If
	// mustSave is set, Heal must be able to return to the state before the snippet;
	// otherwise the guest saves that state if it costs little.
	//
	// An error means that the snippet has not run. A loss is what earlier snippets
	// made and is different now.
	Prepare(ctx context.Context, s Snippet, mustSave bool) (*tiers.Loss, error)
	// Run runs the snippet. The accounts have been opened and answer it.
	Run(ctx context.Context, s Snippet) Ending
	// Heal makes the guest fit for the next snippet, after the accounts were closed. If
	// isOrderly is set the snippet ended well enough for the guest to live, and Heal
	// checks whether it is unharmed. A guest that is harmed returns to an earlier
	// state.
	Heal(ctx context.Context, s Snippet, isOrderly bool) (Healed, error)
	// Close ends the guest. It is idempotent.
	Close() error
}

// Mover is a Guest whose namespace can move to another tier. Its methods are those of
// [tiers.Exporter].
type Mover interface {
	Export(ctx context.Context) (tiers.State, error)
	Import(ctx context.Context, state tiers.State) (tiers.Report, error)
}

// Snippet is what a guest runs.
type Snippet struct {
	tiers.Job
	// Ordinal is its number in the session, from 1.
	Ordinal int
}

// Ending is how a snippet ended, as its guest saw it.
type Ending struct {
	// Code is one of the codes of package wire, or Died.
	Code int
	// IsGone says that the guest is beyond use and has to return to an earlier state.
	IsGone bool
	// Crash describes the death of a snippet that no limit stopped.
	Crash tiers.Exception
	// Rejected says that the guest cannot run the snippet. It has not begun.
	Rejected *tiers.RejectedError
	// PeakMemory is in bytes, Fuel as in tiers.Usage.
	PeakMemory int64
	Fuel       uint64
}

// Died as a code of an Ending says that the snippet did not end by itself.
const Died = -1

// Healed is the state of a guest after Heal.
type Healed struct {
	// Kept is the last snippet whose effects the guest has.
	Kept int
	// Why says why it is not the one that was saved last, empty if it is.
	Why string
	// Fault is why the guest ended, if the snippet had nothing to do with it.
	Fault error
}

// Machine is the life of a session's snippets in one tier: prepare, run, end, heal,
// report what was lost. It has one owner.
type Machine struct {
	// Tier is the tier's name.
	Tier string
	// Accounts are the session's.
	Accounts *Accounts
	// Guests are what runs snippets, by language. One guest may stand there twice.
	Guests map[tiers.Language]Guest
	// Lacks is what a rejection says about other languages.
	Lacks string
	// Noun is what loss reports call a guest: "interpreter" if empty.
	Nouns map[tiers.Language]string
	// Enforced says how limits are kept, by language.
	Enforced map[tiers.Language][]tiers.Enforcement
	// Denials, if set, returns the connections that were refused since the last time.
	Denials func() []tiers.Denial
	// Closers are closed with the session, after its guests.
	Closers []io.Closer

	last     tiers.Language // of the snippet that ran last
	foreign  map[int]Guest  // the guest that ran a snippet, by ordinal, if there are several guests
	isClosed bool
}

var (
	_ tiers.Sandbox  = (*Machine)(nil)
	_ tiers.Exporter = (*Machine)(nil)
	_ tiers.Extender = (*Machine)(nil)
)

// ErrClosed answers whoever uses a sandbox after its Close.
var ErrClosed = errors.New("the sandbox is closed")

// Run runs a snippet. See [tiers.Sandbox].
func (m *Machine) Run(ctx context.Context, job tiers.Job) (tiers.Result, error) {
	if job.Language == "" {
		job.Language = tiers.Python
	}
	guest, err := m.choose(ctx, job.Language)
	if err != nil {
		return tiers.Result{}, err
	}

	s := Snippet{job, m.Accounts.Ordinal() + 1}
	changed, err := guest.Prepare(ctx, s, job.Rejectable)
	if err == nil {
		err = m.Accounts.Begin(ctx, job)
	}
	if err != nil {
		return tiers.Result{}, m.neverRan(changed, err)
	}
	m.note(job.Language, guest)

	ending := guest.Run(ctx, s)
	if ending.Rejected != nil {
		return tiers.Result{}, m.reject(ctx, guest, s, ending)
	}
	return m.finish(ctx, guest, s, ending, changed)
}

// choose returns the guest for a language.
func (m *Machine) choose(ctx context.Context, language tiers.Language) (Guest, error) {
	if m.isClosed {
		return nil, m.broken(tiers.EffectsNeverRan, nil, ErrClosed)
	}
	guest := m.Guests[language]
	if guest == nil {
		return nil, &tiers.RejectedError{
			Tier: m.Tier, Missing: string(language), Effects: tiers.EffectsNeverRan,
			Reason: fmt.Sprintf("%s, not %s", m.Lacks, language),
		}
	}
	if err := ctx.Err(); err != nil {
		return nil, m.broken(tiers.EffectsNeverRan, nil, err)
	}
	return guest, nil
}

// note remembers the guest of the snippet that has just begun.
func (m *Machine) note(language tiers.Language, guest Guest) {
	m.last = language
	for _, other := range m.Guests {
		if other != guest {
			if m.foreign == nil {
				m.foreign = map[int]Guest{}
			}
			m.foreign[m.Accounts.Ordinal()] = guest
			return
		}
	}
}

func (m *Machine) broken(effects tiers.Effects, lost *tiers.Loss, err error) error {
	return &tiers.BrokenError{Tier: m.Tier, Effects: effects, Lost: lost, Err: err}
}

// neverRan is the error of a snippet that could not begin. A tier that rejects it
// instead of breaking has its say.
func (m *Machine) neverRan(lost *tiers.Loss, err error) error {
	var rejected *tiers.RejectedError
	if errors.As(err, &rejected) {
		return err
	}
	return m.broken(tiers.EffectsNeverRan, lost, err)
}

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

// finish makes the result of a snippet that has ended, and a guest that is fit for the
// next one.
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
	r.Lost = join(changed, m.lost(guest, s, healed))
	if err != nil {
		err = fmt.Errorf("cannot restore the sandbox: %w", errors.Join(err, healed.Fault))
		return r, m.broken(tiers.EffectsRan, r.Lost, err)
	}

	err = m.explain(ctx, &r, healed)
	return r, err
}

// explain returns an error if something other than the snippet or its limits ended it.
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

// lost describes the snippets whose effects are gone after a guest returned to an earlier
// state, nil if none.
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
			"The %s had to be stopped and the session begins anew, because %s.", m.noun(s),
			healed.Why,
		)
		return loss
	}

	state := "the state before this snippet"
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
			" What snippets %d to %d did to the variables is gone.", loss.Snippets[0],
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

// join adds one loss to another.
func join(a, b *tiers.Loss) *tiers.Loss {
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

// Export returns the namespace of the language that ran last, for another tier.
func (m *Machine) Export(ctx context.Context) (tiers.State, error) {
	mover, err := m.mover(m.last)
	if err != nil {
		return tiers.State{}, err
	}
	state, err := mover.Export(ctx)
	if err != nil {
		return state, err
	}

	for language, guest := range m.Guests {
		if other, _ := guest.(Mover); other != mover && m.hasRun(guest) {
			state.Left = append(state.Left, tiers.Left{
				Name: "*",
				Type: string(language),
				Reason: fmt.Sprintf(
					"the session's %s variables are of another language", title(language),
				),
			})
		}
	}
	return state, nil
}

func (m *Machine) hasRun(guest Guest) bool {
	for _, owner := range m.foreign {
		if owner == guest {
			return true
		}
	}
	return false
}

func title(language tiers.Language) string {
	if language == tiers.Go {
		return "Go"
	}
	return "Python"
}

// mover returns the guest that moves the namespaces of a language.
func (m *Machine) mover(language tiers.Language) (Mover, error) {
	if m.isClosed {
		return nil, ErrClosed
	}
	if language == "" {
		language = tiers.Python
	}

	mover, ok := m.Guests[language].(Mover)
	if !ok {
		return nil, fmt.Errorf("tier %s cannot move variables of language %q", m.Tier, language)
	}
	return mover, nil
}

// Import brings a namespace from another tier into a fresh sandbox.
func (m *Machine) Import(ctx context.Context, state tiers.State) (tiers.Report, error) {
	if n := m.Accounts.Ordinal(); n > 0 {
		return tiers.Report{}, fmt.Errorf("cannot import a state after %d snippets", n)
	}
	mover, err := m.mover(state.Language)
	if err != nil {
		return tiers.Report{}, err
	}

	report, err := mover.Import(ctx, state)
	if err == nil {
		m.last = state.Language
	}
	return report, err
}

// Extend adds inputs and functions, which the next snippet finds.
func (m *Machine) Extend(
	ctx context.Context, inputs []tiers.Input, functions []tiers.Function,
) error {
	if m.isClosed {
		return ErrClosed
	}
	return m.Accounts.Extend(ctx, inputs, functions)
}

// IsClosed reports whether Close has been called.
func (m *Machine) IsClosed() bool { return m.isClosed }

// Close ends the session. It is idempotent.
func (m *Machine) Close() error {
	if m.isClosed {
		return nil
	}
	m.isClosed = true

	var errs []error
	for _, guest := range m.Guests {
		errs = append(errs, guest.Close())
	}
	for _, closer := range m.Closers {
		errs = append(errs, closer.Close())
	}
	return errors.Join(errs...)
}

// CheckFunctions reports the first function that snippets could not call by its name.
func CheckFunctions(functions []tiers.Function) error {
	for _, f := range functions {
		if err := protocol.CheckName(f.Name); err != nil {
			return err
		}
	}
	return nil
}
