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

	"github.com/rlmhq/rlm/repl"
	"github.com/rlmhq/rlm/repl/ledger"
	"github.com/rlmhq/rlm/tiers"
)

// Code is the body of a Python function.
type Code struct {
	Source string
	// What names the program in errors, Name in tracebacks.
	What, Name string
	// Values are the function's parameters.
	Values map[string]any
	// Wanted is the variable whose value is the result if the body returns none;
	// empty is none.
	Wanted string
}

// body runs a function's body. It is taken as it is, by its syntax tree: to indent
// its text would change what its strings hold.
//
//go:embed body.py
var body string

// given is the variable by which the body finds its input.
const given = "_rlm_given"

// Python runs code where the router puts it, and returns what it returns. All code
// of a run shares one session, and nothing else: each body finds what it is given.
// The error is a [*ProgramError] if the code did not do its work.
func (r *Run) Python(ctx context.Context, c Code) (any, error) {
	if err := r.openPython(ctx); err != nil {
		return nil, err
	}
	err := r.python.Assign(
		ctx, given,
		map[string]any{"source": c.Source, "name": c.Name, "values": c.Values, "wanted": c.Wanted},
	)

	if err != nil {
		return nil, err
	}
	ran, err := r.python.Run(ctx, repl.Block{Language: tiers.Python, Source: body + c.writeForAnalysers()})
	invalid := err == nil && neverRan(&ran)
	if invalid { // say what is wrong with the code itself, by its own lines
		ran, err = r.python.Run(ctx, repl.Block{Language: tiers.Python, Source: body})
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

// writeForAnalysers is a function with the code in it, for the analysers' eyes alone: it stands
// behind the end of the snippet. The indent of one space changes what strings hold,
// which is why this is not what runs.
func (c *Code) writeForAnalysers() string {
	text := strings.ReplaceAll(strings.TrimRight(c.Source, "\n"), "\n", "\n ")
	return "\n\ndef _rlm_seen(" + strings.Join(
		slices.Sorted(maps.Keys(c.Values)), ", ",
	) + "):\n " + text + "\n pass\n"
}

// neverRan reports whether a snippet ended because it is no Python: then there is
// no frame of it in the traceback.
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
		return errors.New("there is nothing to run code in: set Config.Open")
	}

	r.python, err = repl.OpenSession(ctx, repl.SessionConfig{
		Open: r.cfg.Open, Limits: r.cfg.Limits, Deterministic: r.cfg.Deterministic,
	})

	return err
}

// result is what a body gave, or how it ended instead.
func (c *Code) result(ran *ledger.Snippet) (any, error) {
	ended := &ProgramError{What: c.What}
	switch {
	case ran.Final != nil:
		value, err := decode(ran.Final.Value)
		if err != nil {
			return nil, &ProgramError{
				What: c.What, Type: "ValueError",
				Message: "what it returns is not JSON: " + err.Error(),
			}
		}
		return value, nil
	case ran.Limit != "":
		ended.Type, ended.Message = "a limit", "the limit "+string(ran.Limit)+" was exceeded"
	case ran.Exception != nil:
		ended.Type, ended.Message, ended.Traceback = ran.Exception.Type, ran.Exception.Message, ran.Exception.Traceback
	default:
		ended.Type, ended.Message = string(ran.Status), "it gave no result"
	}

	return nil, ended
}

// decode decodes one JSON value, numbers as they stand.
func decode(raw []byte) (any, error) {
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.UseNumber()
	var value any
	if err := decoder.Decode(&value); err != nil {
		return nil, fmt.Errorf("cannot decode a value: %w", err)
	}
	return value, nil
}
