package session

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/rlmhq/rlm/internal/snippet/protocol"
	"github.com/rlmhq/rlm/tiers"
)

// Machine runs a session's snippets in one tier: it prepares and runs them, closes their accounts,
// heals guests, and reports losses. It does not support concurrent use.
type Machine struct {
	// Tier is the tier's name.
	Tier string
	// Accounts are the session's accounts.
	Accounts *Accounts
	// Guests run the snippets, by language. The same guest may appear twice.
	Guests map[tiers.Language]Guest
	// Lacks is the part of a rejection that concerns other languages.
	Lacks string
	// Nouns are the words for guests in loss reports, by language; the default is "interpreter".
	Nouns map[tiers.Language]string
	// Enforced describes how limits are enforced, by language.
	Enforced map[tiers.Language][]tiers.Enforcement
	// Denials, if set, returns the connections refused since the last call.
	Denials func() []tiers.Denial
	// Closers are closed with the session, after its guests.
	Closers []io.Closer

	last     tiers.Language // the last snippet's language
	foreign  map[int]Guest  // guests by the ordinals of their snippets, if there are several guests
	isClosed bool

	using sync.Mutex // held by the current call
}

var (
	_ tiers.Sandbox  = (*Machine)(nil)
	_ tiers.Exporter = (*Machine)(nil)
	_ tiers.Extender = (*Machine)(nil)
)

// ErrClosed is the error of calls after Close, and ErrInUse that of calls while another call runs.
var (
	ErrClosed = errors.New("the sandbox is closed")
	ErrInUse  = errors.New("the sandbox is in use by another call")
)

// Enter begins a call by the sandbox's owner, which lasts until leave is called.
func (m *Machine) Enter() (leave func(), err error) {
	if !m.using.TryLock() {
		return nil, ErrInUse
	}
	return m.using.Unlock, nil
}

// Run runs a snippet: see [tiers.Sandbox].
func (m *Machine) Run(ctx context.Context, job tiers.Job) (tiers.Result, error) {
	leave, err := m.Enter()
	if err != nil {
		return tiers.Result{}, m.broken(tiers.EffectsNeverRan, nil, err)
	}
	defer leave()

	if job.Language == "" {
		job.Language = tiers.Python
	}
	guest, err := m.choose(ctx, job.Language)
	if err != nil {
		return tiers.Result{}, err
	}

	repeater, canRepeat := guest.(Repeater)
	canRepeat = canRepeat && repeater.CanRepeat()
	if err := TapeOf(ctx).Enter(m.Tier, canRepeat); err != nil {
		return tiers.Result{}, err
	}

	if err := m.Accounts.waitForSlot(ctx); err != nil {
		return tiers.Result{}, m.neverRan(nil, err)
	}
	defer m.Accounts.endSlot()

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

// note records the guest of the snippet that has just begun.
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

// neverRan returns the error of a snippet that could not begin. If the tier rejected the snippet
// rather than failed, the rejection takes precedence.
func (m *Machine) neverRan(lost *tiers.Loss, err error) error {
	var rejected *tiers.RejectedError
	if errors.As(err, &rejected) {
		return err
	}
	return m.broken(tiers.EffectsNeverRan, lost, err)
}

// Export returns the namespace of the language that ran last, for another tier.
func (m *Machine) Export(ctx context.Context) (tiers.State, error) {
	return m.export(ctx, Mover.Export)
}

// ExportExact is like Export, with the exact state if the guest has one.
func (m *Machine) ExportExact(ctx context.Context) (tiers.State, error) {
	return m.export(ctx, func(mover Mover, ctx context.Context) (tiers.State, error) {
		if exact, can := mover.(ExactMover); can {
			return exact.ExportExact(ctx)
		}
		return mover.Export(ctx)
	})
}

// SavePages writes the memory of the guest that ran last: see [ExactMover].
func (m *Machine) SavePages(ctx context.Context, to io.Writer) (tiers.State, error) {
	return m.export(ctx, func(mover Mover, ctx context.Context) (tiers.State, error) {
		if exact, can := mover.(ExactMover); can {
			return exact.SavePages(ctx, to)
		}
		return tiers.State{}, fmt.Errorf("tier %s cannot save the memory of a session", m.Tier)
	})
}

func (m *Machine) export(
	ctx context.Context, export func(Mover, context.Context) (tiers.State, error),
) (tiers.State, error) {
	leave, err := m.Enter()
	if err != nil {
		return tiers.State{}, err
	}
	defer leave()

	mover, err := m.mover(m.last)
	if err != nil {
		return tiers.State{}, err
	}
	if err := m.Accounts.waitForSlot(ctx); err != nil {
		return tiers.State{}, err
	}
	defer m.Accounts.endSlot()
	state, err := export(mover, ctx)
	if err != nil {
		return state, err
	}

	for language, guest := range m.Guests {
		if other, _ := guest.(Mover); other != mover && m.hasRun(guest) {
			state.Left = append(state.Left, tiers.Left{
				Name: "*",
				Type: string(language),
				Reason: fmt.Sprintf(
					"the last snippet was not in %s, and only the variables of its language move",
					title(language),
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

// mover returns the guest that can move the namespaces of a language.
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

// Import restores, in a fresh sandbox, a namespace from another tier.
func (m *Machine) Import(ctx context.Context, state tiers.State) (tiers.Report, error) {
	leave, err := m.Enter()
	if err != nil {
		return tiers.Report{}, err
	}
	defer leave()

	if n := m.Accounts.Ordinal(); n > 0 {
		return tiers.Report{}, fmt.Errorf("cannot import variables: the sandbox has already run %d snippets", n)
	}
	mover, err := m.mover(state.Language)
	if err != nil {
		return tiers.Report{}, err
	}

	if err := m.Accounts.waitForSlot(ctx); err != nil {
		return tiers.Report{}, err
	}
	defer m.Accounts.endSlot()

	report, err := mover.Import(ctx, state)
	if err == nil {
		m.last = state.Language
	}
	return report, err
}

// Extend adds inputs and functions, which are available to the next snippet.
func (m *Machine) Extend(
	ctx context.Context, inputs []tiers.Input, functions []tiers.Function,
) error {
	leave, err := m.Enter()
	if err != nil {
		return err
	}
	defer leave()
	if m.isClosed {
		return ErrClosed
	}
	return m.Accounts.Extend(ctx, inputs, functions)
}

// IsClosed reports whether Close has been called.
func (m *Machine) IsClosed() bool { return m.isClosed }

// Close ends the session. It is idempotent.
func (m *Machine) Close() error {
	leave, err := m.Enter()
	if err != nil {
		return err
	}
	defer leave()
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

// CheckFunctions returns an error for the first function that snippets could not call by its name.
func CheckFunctions(functions []tiers.Function) error {
	for _, f := range functions {
		if err := protocol.CheckOffer(f); err != nil {
			return err
		}
		if f.Value != nil && !json.Valid(f.Value) {
			return fmt.Errorf("cannot give the variable %q: its value is not JSON", f.Name)
		}
	}
	return nil
}
