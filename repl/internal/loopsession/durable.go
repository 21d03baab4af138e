package loopsession

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/rlmhq/rlm/internal/keep/runlog"
	"github.com/rlmhq/rlm/internal/keep/store"
	"github.com/rlmhq/rlm/internal/snippet/protocol"
	"github.com/rlmhq/rlm/repl"
	"github.com/rlmhq/rlm/repl/internal/calls"
	"github.com/rlmhq/rlm/repl/ledger"
	"github.com/rlmhq/rlm/tiers"
)

// callTool answers a call of a snippet. The run log stores the answers of tools, so that a tool
// does not do its work twice, and the budget counts the call once. For functions of the protocol,
// it stores their model calls instead.
func (s *Session) callTool(ctx context.Context, call tiers.Call) (tiers.Value, error) {
	ctx = runlog.At(ctx, "call %d", call.Ordinal)
	if _, isProtocol := protocol.Lookup(call.Function); isProtocol {
		return s.tools.Call(ctx, call)
	}

	step, err := runlog.Begin(ctx, func() runlog.Request { return describeCall(&call) })
	if err != nil {
		return nil, err
	}
	defer step.Leave()
	if kept, ok := step.Ending(); ok {
		return s.repeat(&call, kept)
	}

	used, err := s.account.take(&call)
	if err != nil {
		return nil, err
	}
	begun := time.Now()
	value, made, err := s.callAllowed(ctx, step, call)
	if !made {
		s.account.giveBack(&used)
	}
	var stopped *runlog.StoppedError
	if err != nil && (ctx.Err() != nil || errors.As(err, &stopped)) {
		step.Drop(store.Cost(used))
		return nil, err // the call was interrupted; a later process makes it again
	}

	e := toolEnding{Value: value, Used: used}
	if err != nil {
		e.Error = err.Error()
	}
	if failed := step.End(ctx, e, store.Cost(used)); failed != nil {
		return nil, failed
	}
	s.account.report(&call, &e, time.Since(begun))
	return value, err
}

// repeat ends a call as it ended in an earlier process.
func (s *Session) repeat(call *tiers.Call, kept json.RawMessage) (tiers.Value, error) {
	e, err := decodeToolEnding(kept)
	if err != nil {
		return nil, fmt.Errorf("cannot read the run log: %w", err)
	}
	s.account.book(e.Used)
	s.account.report(call, &e, 0)
	return e.value()
}

// callAllowed calls a tool if that is allowed, and reports whether it did. A call that waits for
// a human decision parks the run.
func (s *Session) callAllowed(
	ctx context.Context, step *runlog.Step, call tiers.Call,
) (value tiers.Value, made bool, err error) {
	decision := step.Decision()
	switch {
	case decision == nil:
		err = s.approve(ctx, call)
	case !decision.Allow:
		return nil, false, fmt.Errorf("the call of %s was denied: %s", call.Function,
			cmp.Or(decision.Reason, "no reason was given"))
	case decision.Value != nil:
		return decision.Value, false, nil
	}

	if err == nil {
		made = true
		value, err = s.tools.Call(ctx, call)
	}
	if !errors.Is(err, repl.ErrLater) {
		return value, made, err
	}
	whole, bad := json.Marshal(struct {
		Function string                 `json:"function"`
		Args     []tiers.Value          `json:"args,omitempty"`
		Named    map[string]tiers.Value `json:"named,omitempty"`
	}{call.Function, call.Args, call.Named})
	if bad != nil {
		return nil, made, bad
	}
	failed := step.Park(ctx, whole, fmt.Sprintf("%s: %v", call.Function, err))
	return nil, made, fmt.Errorf("the call of %s has no answer: %w", call.Function, failed)
}

// toolEnding is the outcome of a tool call, as stored in the run log.
type toolEnding struct {
	Value tiers.Value     `json:"value,omitempty"`
	Error string          `json:"error,omitempty"`
	Used  ledger.Spending `json:"used,omitzero"`
}

// decodeToolEnding decodes an ending strictly, like the endings of model calls.
func decodeToolEnding(kept []byte) (e toolEnding, err error) {
	decoder := json.NewDecoder(bytes.NewReader(kept))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&e); err != nil {
		return toolEnding{}, err
	}
	switch {
	case decoder.More():
		return toolEnding{}, errors.New("an ending has more than one value")
	case !calls.IsPlausible(e.Used):
		return toolEnding{}, fmt.Errorf("a call of a tool cannot have used %+v", e.Used)
	}
	return e, nil
}

func (e *toolEnding) value() (tiers.Value, error) {
	if e.Error != "" {
		return nil, errors.New(e.Error)
	}
	return e.Value, nil
}

// describeCall identifies a call in the run log.
func describeCall(call *tiers.Call) runlog.Request {
	// Arguments are valid JSON, because other calls are refused.
	args, _ := json.Marshal(call.Args)   //nolint:errchkjson // see above
	named, _ := json.Marshal(call.Named) //nolint:errchkjson // see above
	sum := sha256.Sum256(fmt.Appendf(nil, "%q %s %s", call.Function, args, named))
	return runlog.Request{
		What: call.Function, Digest: hex.EncodeToString(sum[:]),
		About: fmt.Sprintf("%s: %.200s %.200s", call.Function, args, named),
	}
}

// mover is a runner whose namespaces can be exported and imported. An engine's runners implement
// it.
type mover interface {
	Export(ctx context.Context, language tiers.Language) (tiers.State, error)
	Import(ctx context.Context, states ...tiers.State) (tiers.Report, error)
}

// Export returns the namespaces of the session, or none before the first snippet. Code that runs
// during the export cannot call tools.
func (s *Session) Export(ctx context.Context) ([]tiers.State, error) {
	runner, ok := s.runner.(mover)
	if !ok {
		return nil, errors.New("the runner of the session cannot write its namespaces")
	}
	s.mute()

	var states []tiers.State
	for _, language := range []tiers.Language{tiers.Python, tiers.Go} {
		if s.runner.Home(language) == "" {
			continue
		}
		state, err := runner.Export(ctx, language)
		if err != nil {
			return nil, err
		}
		states = append(states, state)
	}
	return states, nil
}

// Import loads namespaces, with the kinds of their variables, into a session that has not run any
// code.
func (s *Session) Import(
	ctx context.Context, variables map[string]string, states ...tiers.State,
) (tiers.Report, error) {
	runner, ok := s.runner.(mover)
	if !ok {
		return tiers.Report{}, errors.New("the runner of the session cannot read namespaces")
	}
	s.mute()
	report, err := runner.Import(ctx, states...)
	if err == nil {
		s.variables = variables
	}
	return report, err
}

// mute refuses the calls of code until the next snippet.
func (s *Session) mute() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.muted = true
}
