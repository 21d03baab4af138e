package connect

import (
	"context"
	"errors"

	"github.com/rlmhq/rlm"
	"github.com/rlmhq/rlm/internal/snippet/jsonrpc"
	"github.com/rlmhq/rlm/internal/snippet/wirevalue"
	"github.com/rlmhq/rlm/repl"
	"github.com/rlmhq/rlm/tiers"
)

// maxFunctions is the maximum number of functions in one request.
const maxFunctions = 1000

type functionParams struct {
	Name       string      `json:"name"`
	Signature  string      `json:"signature,omitempty" jsonschema:"such as search(query, limit=10)"`
	Doc        string      `json:"doc,omitempty"`
	Parameters jsonrpc.Raw `json:"parameters,omitempty" jsonschema:"JSON Schema; arguments are then checked, and named"`
}

// makeFunctions makes host functions whose calls the client answers.
func (s *server) makeFunctions(list []functionParams) ([]rlm.Function, error) {
	if len(list) > maxFunctions {
		return nil, invalid("%d functions are more than %d", len(list), maxFunctions)
	}

	var all []rlm.Function
	for _, f := range list {
		tool := repl.Tool{Name: f.Name, Signature: f.Signature, Doc: f.Doc}

		if f.Parameters != nil {
			tool.Schema = []byte(f.Parameters)
			tool.Call = func(ctx context.Context, named map[string]tiers.Value) (tiers.Value, error) {
				return s.call(ctx, tiers.Call{Function: f.Name, Named: named})
			}
		} else {
			if tool.Raw = s.call; tool.Signature == "" {
				tool.Signature = f.Name + "(*args, **kwargs)"
			}
		}
		all = append(all, rlm.FuncOf(tool))
	}
	return all, nil
}

type (
	callParams struct {
		Session  string                 `json:"session"`
		Snippet  int                    `json:"snippet,omitempty" jsonschema:"its ordinal in the session"`
		Call     int                    `json:"call,omitempty" jsonschema:"the ordinal of the call in the snippet"`
		Function string                 `json:"function"`
		Args     []jsonrpc.Raw          `json:"args"`
		Named    map[string]jsonrpc.Raw `json:"named"`
	}
	callResult struct {
		Value jsonrpc.Raw `json:"value"`
	}
)

// call passes a host call to the client and returns its answer. The context belongs to a request of
// the session.
func (s *server) call(ctx context.Context, call tiers.Call) (tiers.Value, error) {
	e, ok := ctx.Value(entryKey{}).(*entry)
	if !ok {
		return nil, errors.New("the call belongs to no session")
	}

	p := callParams{
		Session: e.id, Snippet: call.Snippet, Call: call.Ordinal, Function: call.Function,
		Args: []jsonrpc.Raw{}, Named: map[string]jsonrpc.Raw{},
	}
	for _, arg := range call.Args {
		value, err := wirevalue.Escape(arg)
		if err != nil {
			return nil, err
		}
		p.Args = append(p.Args, jsonrpc.Raw(value))
	}
	for name, arg := range call.Named {
		value, err := wirevalue.Escape(arg)
		if err != nil {
			return nil, err
		}
		p.Named[name] = jsonrpc.Raw(value)
	}

	var answer callResult
	if err := s.conn.Call(ctx, "host/call", p, &answer); err != nil {
		return nil, err
	}
	if answer.Value == nil {
		return tiers.Value("null"), nil
	}
	return wirevalue.Plain(wirevalue.Value(answer.Value))
}
