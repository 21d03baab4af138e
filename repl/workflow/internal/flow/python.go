package flow

import (
	"bytes"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/rlmhq/rlm/repl/internal/loopsession"
	"github.com/rlmhq/rlm/repl/ledger"
	"github.com/rlmhq/rlm/tiers"
)

// Code is the body of a Python function. Its result is the returned value, or else its variable
// result.
type Code struct {
	Source string
	// What names the program in errors, Name in tracebacks.
	What, Name string
	// Values are the function's parameters.
	Values map[string]any
}

// body runs a function's body from its syntax tree, because indenting the source would change its
// strings.
//
//go:embed body.py
var body string

// given is the name of the variable that holds the input of the body.
const given = "_rlm_given"

// Python runs code in the sandbox that the router chooses, and returns its result. All
// code of a run shares one session, but no variables: each body receives only its input.
// The error is a [*ProgramError] if the code failed.
func (r *Run) Python(ctx context.Context, c Code) (any, error) {
	if err := r.openPython(ctx); err != nil {
		return nil, err
	}
	err := r.python.Assign(
		ctx, given,
		map[string]any{"source": c.Source, "name": c.Name, "values": c.Values},
	)
	if err != nil {
		return nil, err
	}
	ran, err := r.python.Run(ctx, loopsession.Block{Language: tiers.Python, Source: body + c.writeForAnalysers()})
	invalid := err == nil && neverRan(&ran)
	if invalid { // report the error in the code itself, with its own line numbers
		ran, err = r.python.Run(ctx, loopsession.Block{Language: tiers.Python, Source: body})
	}
	if err != nil {
		return nil, err
	}

	ran.Source = c.Source
	r.ran(ran)
	value, err := c.result(&ran)
	var ended *ProgramError
	if errors.As(err, &ended) {
		ended.Invalid = invalid
	}

	return value, err
}

// writeForAnalysers writes the code as a function after the end of the snippet, where only the
// analysers read it. The function never runs, because its one-space indentation changes strings.
func (c *Code) writeForAnalysers() string {
	text := strings.ReplaceAll(strings.TrimRight(c.Source, "\n"), "\n", "\n ")
	return "\n\ndef _rlm_seen(" + strings.Join(
		slices.Sorted(maps.Keys(c.Values)), ", ",
	) + "):\n " + text + "\n pass\n_rlm_seen\n" // the analysers ignore names that no line mentions
}

// neverRan reports whether a snippet is not valid Python, in which case the traceback has no frame
// of the snippet.
func neverRan(ran *ledger.Snippet) bool {
	e := ran.Exception
	return e != nil &&
		slices.Contains([]string{"SyntaxError", "IndentationError", "TabError"}, e.Type) &&
		!strings.Contains(e.Traceback, "in <module>")
}

// openPython opens the session before the first code.
func (r *Run) openPython(ctx context.Context) (err error) {
	if r.python != nil {
		return nil
	}
	if r.cfg.Open == nil {
		return errors.New("cannot run code: set Config.Open")
	}

	r.python, err = loopsession.Open(ctx, loopsession.Config{
		Open: r.cfg.Open, Limits: r.cfg.Limits, Deterministic: r.cfg.Deterministic,
	})

	return err
}

// noResult is the Type of a ProgramError for code that ended without a result.
const noResult = "the end of its code"

// result returns the result of a body, or a *ProgramError.
func (c *Code) result(ran *ledger.Snippet) (any, error) {
	ended := &ProgramError{What: c.What}
	switch {
	case ran.Final != nil:
		value, err := Decode(ran.Final.Value)
		if err != nil {
			return nil, &ProgramError{
				What: c.What, Type: "ValueError",
				Message: "the returned value is not JSON: " + err.Error(),
			}
		}
		return value, nil
	case ran.Limit != "":
		ended.Type, ended.Message = "a limit", "the limit "+string(ran.Limit)+" was exceeded"
	case ran.Exception != nil:
		ended.Type, ended.Message, ended.Traceback = ran.Exception.Type, ran.Exception.Message, ran.Exception.Traceback
	case ran.Status == tiers.StatusOK:
		ended.Type, ended.Message = noResult, "the code neither returns a value nor sets the variable result"
	default:
		ended.Type, ended.Message = string(ran.Status), "the code gave no result"
	}

	return nil, ended
}

// Decode decodes one JSON value, with numbers as json.Number.
func Decode(raw []byte) (any, error) {
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.UseNumber()
	var value any
	if err := decoder.Decode(&value); err != nil {
		return nil, fmt.Errorf("cannot decode a value: %w", err)
	}
	return value, nil
}
