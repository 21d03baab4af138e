package flow

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/rlmhq/rlm/repl/internal/calls"
	"github.com/rlmhq/rlm/repl/internal/evaluators"
	"github.com/rlmhq/rlm/repl/ledger"
	"github.com/rlmhq/rlm/repl/llm"
	"github.com/rlmhq/rlm/router"
	"github.com/rlmhq/rlm/tiers"
)

// Act runs an action by name, with parameters as in a file: it renders templates over the state,
// fills in defaults and checks types.
func (r *Run) Act(ctx context.Context, name string, with map[string]any) (any, error) {
	action, known := r.actions[name]
	if !known {
		return nil, errors.New(describeUnknown("action", name, r.actions.names()))
	}
	ready, err := r.ready(ctx, &action, with)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}

	result, err := action.Do(ctx, r, ready)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return result, nil
}

// ready renders and checks the parameters of an action.
func (r *Run) ready(
	ctx context.Context, action *Action, with map[string]any,
) (map[string]any, error) {
	now, all := map[string]any{}, map[string]any{}
	plain, err := normal(with)
	if err != nil {
		return nil, err
	}
	for name, value := range plain {
		if p := find(action.Params, name); p == nil || p.Late || p.verbatim() {
			all[name] = value
		} else {
			now[name] = value
		}
	}

	rendered, err := r.Render(ctx, now)
	if err != nil {
		return nil, err
	}
	members, ok := rendered.(map[string]any)
	if !ok {
		return nil, errors.New("the rendered parameters are not an object")
	}

	for name, value := range members {
		all[name] = value
	}
	c := &checker{actions: r.actions, folder: r.folder}
	tree := treeOf(all)
	c.members(tree, action.Params, action.Open, "parameter of "+action.Name)
	if action.Verify != nil && len(c.found) == 0 {
		c.found = action.Verify(tree)
	}
	if len(c.found) > 0 {
		return nil, errors.New(c.found[0].Message)
	}

	for i := range action.Params {
		p := &action.Params[i]
		if _, given := all[p.Name]; !given && p.Default != nil {
			all[p.Name] = p.Default
		}
	}

	return all, nil
}

// normal returns an object in its JSON form.
func normal(with map[string]any) (map[string]any, error) {
	data, err := json.Marshal(with)
	if err != nil {
		return nil, fmt.Errorf("the parameters cannot be encoded: %w", err)
	}
	value, err := Decode(data)
	plain, _ := value.(map[string]any)
	return plain, err
}

// Render renders the templates in a value over the state. A string that consists of one expression
// becomes the expression's value, of any type.
func (r *Run) Render(ctx context.Context, value any) (any, error) {
	if !evaluators.HasTemplate(value) {
		return value, nil
	}
	rendered, err := r.jail().Render(ctx, value, map[string]any{"state": r.State})
	return rendered, programError(ofTemplate, err)
}

// Lua runs a Lua program in a jail; package evaluators describes its variables. The error
// is a [*ProgramError] if the program failed.
func (r *Run) Lua(ctx context.Context, what, source string, values map[string]any) (any, error) {
	return r.inJail(ctx, Code{What: what, Source: source, Values: values}, "lua", r.jail().Lua)
}

// Prolog runs a Prolog program, like Lua.
func (r *Run) Prolog(ctx context.Context, what, source string, values map[string]any) (any, error) {
	return r.inJail(
		ctx, Code{What: what, Source: source, Values: values}, "prolog", r.jail().Prolog,
	)
}

// jailTier is recorded as the tier of code that ran in a jail.
const jailTier = "jail"

// inJail runs a program in a language and records the run.
func (r *Run) inJail(
	ctx context.Context, c Code, language tiers.Language,
	run func(context.Context, string, map[string]any) (any, error),
) (any, error) {
	begun := time.Now()
	value, err := run(ctx, c.Source, c.Values)
	err = programError(c.What, err)
	result := tiers.Result{Status: tiers.StatusOK}
	var ended *ProgramError
	if errors.As(err, &ended) {
		result.Status, result.Exception = tiers.StatusRaised, &tiers.Exception{
			Type: ended.Type, Message: ended.Message,
		}
	}

	if err == nil || ended != nil {
		r.ran(ledger.Snippet{
			Language: language, Source: c.Source,
			Result: router.Result{Result: result, Tier: jailTier}, Elapsed: time.Since(begun),
		})
	}

	return value, err
}

// jail returns the bounds of the run's code.
func (r *Run) jail() evaluators.Jail {
	return evaluators.Jail{Wall: r.cfg.Limits.Wall, Memory: r.cfg.Limits.Memory}
}

// programError adds the name of the file's program to an error of the jail.
func programError(what string, err error) error {
	var ended *evaluators.ProgramError
	if errors.As(err, &ended) {
		return &ProgramError{
			What: what, Type: string(ended.Kind), Message: ended.Message,
			Invalid: ended.Kind == evaluators.Syntax,
		}
	}

	return err
}

// Model returns the model for a name in the file: the replacement in ModelFor, or the name itself
// if it is allowed. Without a name, the model is the state's member "model" if it is an allowed
// model, or else the default.
func (r *Run) Model(name string) (string, error) {
	if stated, ok := r.State["model"].(string); ok && name == "" {
		if model, err := r.cfg.resolve(stated); err == nil {
			return model, nil
		}
	}
	return r.cfg.resolve(name)
}

// Ask asks a model, within the run's budget. It does not check the reply against a
// contract in the question; [Run.Typed] does.
func (r *Run) Ask(ctx context.Context, a calls.Ask) (llm.Response, error) {
	if err := r.fill(&a); err != nil {
		return llm.Response{}, err
	}
	response, err := r.caller.Complete(ctx, a)
	r.replied(&a, response.Text)
	if err == nil {
		err = calls.CheckWhole(a.Model, response)
	}

	return response, err
}

// Typed asks a model for a value that meets a.Schema. It asks again after an invalid reply; the
// error is a [*calls.MismatchError] if no reply was valid.
func (r *Run) Typed(ctx context.Context, a calls.Ask) (any, error) {
	if err := r.fill(&a); err != nil {
		return nil, err
	}
	raw, err := r.caller.CompleteTyped(ctx, a, r.cfg.Retries)
	r.replied(&a, string(raw))
	if err != nil {
		return nil, err
	}

	return Decode(raw)
}

// TypedAll is like [Run.Typed] but returns every value in the reply that meets a.Schema: see
// [calls.Caller.CompleteAll].
func (r *Run) TypedAll(ctx context.Context, a calls.Ask) ([]any, error) {
	if err := r.fill(&a); err != nil {
		return nil, err
	}
	raw, err := r.caller.CompleteAll(ctx, a, r.cfg.Retries)
	if err != nil {
		return nil, err
	}

	values := make([]any, len(raw))
	for i := range raw {
		r.replied(&a, string(raw[i]))
		if values[i], err = Decode(raw[i]); err != nil {
			return nil, err
		}
	}

	return values, nil
}

// fill completes a question with its model and its position in the file.
func (r *Run) fill(a *calls.Ask) error {
	if r.cfg.Models == nil {
		return errors.New("cannot ask a model: set Config.Models")
	}
	model, err := r.Model(a.Model)
	if err != nil {
		return err
	}

	a.Model, a.Node, a.Turn = model, r.at.node, r.at.turn
	return nil
}

// isBroken reports whether the host, not the file, is the cause of a failure.
func isBroken(err error) bool {
	var broken *tiers.BrokenError
	var model *llm.Error
	var jail *evaluators.BrokenError
	return errors.As(err, &broken) || errors.As(err, &model) || errors.As(err, &jail) ||
		errors.Is(err, router.ErrNoTier)
}
