package session

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/rlmhq/rlm/internal/data/bigtext"
	"github.com/rlmhq/rlm/internal/data/pyfolder"
	"github.com/rlmhq/rlm/internal/snippet/hostcall"
	"github.com/rlmhq/rlm/internal/snippet/protocol"
	"github.com/rlmhq/rlm/internal/snippet/session/wire"
	"github.com/rlmhq/rlm/internal/snippet/slots"
	"github.com/rlmhq/rlm/tiers"
)

// Accounts hold the host's data about one session: its inputs, and the running snippet's host
// calls, time, output, answer and limits. They answer the guest's requests: see [Accounts.Handle].
//
// They do not support concurrent use. Only the host functions that they call run on separate
// goroutines.
type Accounts struct {
	cfg      tiers.Config
	files    files
	paths    []string // paths of the inputs' files for the guest: see ShowFiles
	mapper   TextMapper
	packages *pyfolder.Folder // the session's packages; may be nil
	version  int              // version of the guest's configuration: see Configuration

	packagesSum []byte // see Fingerprint

	ordinal   int // number of the current or last snippet
	language  tiers.Language
	meter     meter
	slot      *slots.Slot   // the current snippet's slot; may be nil
	queued    time.Duration // time that the last snippet waited for its slots
	calls     calls
	ahead     map[byte]*rowsAhead // by operation
	gate      *hostcall.Gate
	output    output
	final     *tiers.Final
	raised    *exception
	variables []tiers.Variable
	artefacts artefacts
	moving    moving

	verdict string // on the last snippet; see Verdict

	broken     error  // why the host cannot serve the snippet
	missing    string // needed by the snippet at run time but missing in the tier
	rejectable bool
	seed       []byte // seed of the snippet's randomness; may be empty
	tape       *Tape  // of the running snippet; may be nil
}

// exception is the guest's report on an exception that a snippet did not catch.
type exception struct {
	Type      string `json:"type"`
	Message   string `json:"message"`
	Traceback string `json:"traceback"`
	Code      int    `json:"code"`
}

// NewAccounts returns the accounts of a new session. It reads as much of the inputs as it needs to
// determine their lengths, so a huge input may take a while.
func NewAccounts(ctx context.Context, cfg tiers.Config) (*Accounts, error) {
	if err := cfg.Limits.Validate(); err != nil {
		return nil, err
	}
	cfg.Limits = cfg.Limits.WithDefaults()
	cfg.Inputs = slices.Clone(cfg.Inputs)

	a := &Accounts{gate: hostcall.New(cfg.Limits)}
	if cfg.Out {
		a.version++ // a guest without files must create the folder
	}
	if cfg.Packages != nil {
		folder, err := pyfolder.Open(cfg.Packages)
		if err != nil {
			return nil, err
		}
		cfg.Packages, a.packages = folder, folder
		a.version++ // the guest must add it to its path
	}
	inputs, functions := cfg.Inputs, cfg.Functions
	a.cfg = cfg
	a.cfg.Inputs, a.cfg.Functions = nil, nil
	if err := a.Extend(ctx, inputs, functions); err != nil {
		return nil, err
	}
	return a, nil
}

// Extend adds either all of the inputs and functions to the session or none.
func (a *Accounts) Extend(
	ctx context.Context, inputs []tiers.Input, functions []tiers.Function,
) error {
	if len(inputs) == 0 && len(functions) == 0 {
		return nil
	}

	inputs = slices.Clone(inputs)
	for i := range inputs {
		number, in := len(a.cfg.Inputs)+i, &inputs[i]
		if err := checkInput(*in); err != nil {
			return fmt.Errorf("cannot use input %d (%s): %w", number, in.Name, err)
		}
		if err := adoptInput(ctx, in); err != nil {
			return fmt.Errorf("cannot read input %d: %w", number, err)
		}
	}
	if err := CheckFunctions(functions); err != nil {
		return err
	}
	inputs = slices.Concat(a.cfg.Inputs, inputs)
	functions = protocol.Add(a.cfg.Functions, functions)
	if err := checkVariables(inputs, functions); err != nil {
		return err
	}

	a.cfg.Inputs, a.cfg.Functions = inputs, functions
	a.version++
	return nil
}

// Configuration returns the version of the data that the guest must request before a snippet runs:
// see [wire.FlagConfigure]. It is 0 if there is nothing to request, and changes with Extend.
func (a *Accounts) Configuration() int { return a.version }

// adoptInput converts an input to one of package bigtext.
func adoptInput(ctx context.Context, in *tiers.Input) error {
	switch {
	case in.Text != nil:
		text, err := bigtext.Of(ctx, in.Text)
		if err != nil {
			return err
		}
		in.Text = text
		_, err = text.Len(ctx)
		return err

	case in.Dir != nil:
		dir, err := bigtext.DirOf(in.Dir)
		if err != nil {
			return err
		}
		in.Dir = dir
	}
	return nil
}

// textOf returns the input with the given number if it is a text, or nil.
func (a *Accounts) textOf(input int) *bigtext.Text {
	if input < 0 || input >= len(a.cfg.Inputs) {
		return nil
	}
	text, _ := a.cfg.Inputs[input].Text.(*bigtext.Text)
	return text
}

// directoryOf returns the input with the given number if it is a directory, or nil.
func (a *Accounts) directoryOf(input int) *bigtext.Dir {
	if input < 0 || input >= len(a.cfg.Inputs) {
		return nil
	}
	dir, _ := a.cfg.Inputs[input].Dir.(*bigtext.Dir)
	return dir
}

// CopyFor returns the accounts of a session that starts as a copy of this one and then diverges.
// They continue the numbering of snippets and have the same open texts.
func (a *Accounts) CopyFor(ctx context.Context) (*Accounts, error) {
	c, err := NewAccounts(ctx, a.cfg)
	if err != nil {
		return nil, err
	}

	c.ordinal = a.ordinal
	c.files = a.files.clone()

	return c, nil
}

// checkVariables refuses an input with a name that is already taken.
func checkVariables(inputs []tiers.Input, functions []tiers.Function) error {
	taken := map[string]bool{}
	for _, f := range functions {
		taken[f.Name] = true
	}
	for i, in := range inputs {
		switch {
		case in.Variable == "":
			continue
		case taken[in.Variable]:
			return fmt.Errorf("cannot name input %d %q: the name is taken", i, in.Variable)
		}
		if err := protocol.CheckName(in.Variable); err != nil {
			return fmt.Errorf("cannot name input %d %q: use a plain Python identifier that is not reserved",
				i, in.Variable)
		}
		taken[in.Variable] = true
	}
	return nil
}

func checkInput(in tiers.Input) error {
	set := 0
	for _, has := range []bool{in.Text != nil, in.Dir != nil, in.Value != nil} {
		if has {
			set++
		}
	}

	if set != 1 {
		return errors.New("set exactly one of Text, Dir and Value")
	}
	if in.Value != nil && !json.Valid(in.Value) {
		return errors.New("its value is not JSON")
	}
	return nil
}

// ShowFiles sets the path of each input's file in the guest's own file system, empty if the guest
// cannot read it.
func (a *Accounts) ShowFiles(paths []string) { a.paths = paths }

// Config returns the session's configuration, with complete limits.
func (a *Accounts) Config() tiers.Config { return a.cfg }

// Limits returns the session's complete limits.
func (a *Accounts) Limits() tiers.Limits { return a.cfg.Limits }

// Ordinal returns the number of the current or last snippet, from 1.
func (a *Accounts) Ordinal() int { return a.ordinal }

// ContinueAfter continues the numbering after a snippet that ran in another tier.
func (a *Accounts) ContinueAfter(ordinal int) { a.ordinal = ordinal }

// Begin opens the accounts of a snippet. It fails if an input has changed on disk, because offsets
// into it would be wrong.
func (a *Accounts) Begin(ctx context.Context, job tiers.Job) error {
	if err := a.CheckInputs(); err != nil {
		return err
	}

	a.ordinal++
	a.language, a.rejectable, a.seed = job.Language, job.Rejectable, job.Seed
	a.reset(ctx, a.cfg.Limits)
	a.output.sinks = sinks{job.Stdout, job.Stderr}

	return nil
}

// reset opens the accounts for a run, of a snippet or of other code.
func (a *Accounts) reset(ctx context.Context, limits tiers.Limits) {
	a.final, a.raised, a.variables = nil, nil, nil
	a.broken, a.missing = nil, ""
	a.artefacts = artefacts{}
	a.ahead = map[byte]*rowsAhead{}
	a.output = output{limit: limits.Output}
	a.calls.begin(ctx, a.ordinal)
	a.meter.begin(limits)
}

// CheckInputs returns an error if an input has changed on disk since it was opened, because
// snippets may then read wrong content.
func (a *Accounts) CheckInputs() error {
	for i := range a.cfg.Inputs {
		text := a.textOf(i)
		if text == nil {
			continue
		}
		if err := text.Changed(); err != nil {
			return err
		}
	}
	return nil
}

// forget makes the ordinal of a rejected snippet available again.
func (a *Accounts) forget() { a.ordinal-- }

// End closes the accounts of a snippet and returns its result. code is the ending that the guest
// reported: one of the codes of package wire, or any other number if the snippet did not end in
// order.
func (a *Accounts) End(code int) tiers.Result {
	usage := a.meter.usage()
	a.endCalls()
	usage.HostCalls, usage.OutputBytes = a.calls.made, a.output.total
	usage.Queued = max(a.queued, a.slot.Waited())

	r := tiers.Result{
		Stdout: a.output.text(0), Stderr: a.output.text(1), Dropped: a.output.dropped(),
		Echo: a.output.echoed, Artefacts: a.artefacts.list,
		Final: a.final, Usage: usage, Variables: a.variables,
	}
	switch code {
	case wire.CodeOK:
		r.Status = tiers.StatusOK
	case wire.CodeRaised:
		r.Status = tiers.StatusRaised
	case wire.CodeExited:
		r.Status = tiers.StatusExited
	default:
		r.Status = tiers.StatusCrashed
	}

	if e := a.raised; e != nil && code != wire.CodeOK {
		r.Exception = &tiers.Exception{
			Type: e.Type, Message: e.Message, Traceback: e.Traceback, ExitCode: e.Code,
		}
	}
	if r.Status == tiers.StatusExited && r.Exception == nil {
		r.Status = tiers.StatusCrashed // the guest lies: a real exit includes the exit code
	}

	a.blameLimit(&r)
	a.verdict = a.Verdict(code)
	return r
}

// blameLimit marks a result as ended by a limit, unless the snippet ended by itself.
func (a *Accounts) blameLimit(r *tiers.Result) {
	fired, refused := a.meter.fired, a.meter.refused
	if fired == interrupted {
		fired = "" // the caller itself interrupted the snippet
	}

	switch {
	case r.Status == tiers.StatusCrashed && fired != "":
		r.Status, r.Limit = tiers.StatusLimit, fired
	case r.Status == tiers.StatusCrashed && refused == tiers.LimitMemory:
		r.Status, r.Limit = tiers.StatusLimit, refused
	case r.Status == tiers.StatusRaised && fired != "" && isCausedBy(fired, r.Exception):
		r.Status, r.Limit = tiers.StatusLimit, fired
	case r.Status == tiers.StatusRaised && refused != "" && isCausedBy(refused, r.Exception):
		r.Status, r.Limit = tiers.StatusLimit, refused
	case fired != "": // the snippet continued in spite of the limit
		r.Limit = fired
	case refused == tiers.LimitHostCalls && a.language == tiers.Go:
		r.Limit = refused // a refused call is an error value in Go, which a snippet may ignore
	case r.Dropped > 0:
		r.Limit = tiers.LimitOutput
	}
}

// isCausedBy reports whether an exception may be a guest's reaction to a limit.
func isCausedBy(limit tiers.Limit, e *tiers.Exception) bool {
	if e == nil {
		return true
	}

	const hostError = "HostError"
	switch limit {
	case tiers.LimitMemory:
		return strings.HasSuffix(e.Type, "MemoryError") // NumPy has its own class
	case tiers.LimitHostCalls:
		return e.Type == hostError
	default:
		return e.Type == "KeyboardInterrupt" || e.Type == hostError ||
			e.Type == "asyncio.exceptions.CancelledError"
	}
}

// RanOutOfMemory reports whether the snippet raised the exception that an interpreter, or NumPy,
// raises when an allocation fails. A MemoryError that the snippet created itself usually has a
// message.
func (a *Accounts) RanOutOfMemory() bool {
	e := a.raised
	return e != nil &&
		(e.Type == "MemoryError" && e.Message == "" || strings.HasSuffix(e.Type,
			"._ArrayMemoryError"))
}

// Refuse records that the guest was refused something because of a limit, and that an exception in
// the snippet reports it.
func (a *Accounts) Refuse(limit tiers.Limit) { a.meter.refused = limit }

// Raise records an exception that the snippet did not catch, as if the guest had reported it.
func (a *Accounts) Raise(e *tiers.Exception) {
	a.raised = &exception{e.Type, e.Message, e.Traceback, e.ExitCode}
}

// EditTraceback edits the traceback of the exception that the snippet did not catch, if any.
func (a *Accounts) EditTraceback(edit func(string) string) {
	if a.raised != nil {
		a.raised.Traceback = edit(a.raised.Traceback)
	}
}

// Fire records that a limit fired, as found by the guest itself.
func (a *Accounts) Fire(limit tiers.Limit) { a.meter.fire(limit) }

// Fail records that the host cannot serve the snippet, for example because an input vanished.
func (a *Accounts) Fail(err error) {
	if a.broken == nil {
		a.broken = err
	}
}

// Failure returns the error of Fail, or of the caller's writers, during the current snippet.
func (a *Accounts) Failure() error { return errors.Join(a.broken, a.output.failed) }

// Missing returns the module or other requirement that the snippet turned out to need and its tier
// lacks, or an empty string. If it is not empty, the snippet must be stopped.
func (a *Accounts) Missing() string { return a.missing }

// IsCanceled reports whether the caller has given up on the snippet.
func (a *Accounts) IsCanceled() bool { return a.calls.ctx.Err() != nil }
