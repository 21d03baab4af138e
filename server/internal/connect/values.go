package connect

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/rlmhq/rlm/internal/plan/results"
	"github.com/rlmhq/rlm/internal/snippet/jsonrpc"
	"github.com/rlmhq/rlm/internal/snippet/protocol"
	"github.com/rlmhq/rlm/internal/snippet/wirevalue"
	"github.com/rlmhq/rlm/server/internal/snippets"
	"github.com/rlmhq/rlm/tiers"
)

type runParams struct {
	ofOne
	Source    string         `json:"source"`
	Language  tiers.Language `json:"language,omitempty" jsonschema:"python or go; detected by default"`
	Variables variables      `json:"variables,omitempty" jsonschema:"set before the snippet runs"`
	Stream    bool           `json:"stream,omitempty" jsonschema:"send session/output"`
}

// run runs a snippet.
func (s *server) run(ctx context.Context, e *entry, p runParams) (*results.Result, error) {
	snippet := snippets.Snippet{Source: p.Source, Language: p.Language, Variables: p.Variables}
	if p.Stream {
		stdout, stderr := s.newOutput(e, "stdout"), s.newOutput(e, "stderr")
		defer stdout.flush()
		defer stderr.flush()
		snippet.Stdout, snippet.Stderr = stdout, stderr
	}

	result, err := snippet.Run(ctx, s.engine, e.session)
	switch {
	case errors.Is(err, snippets.ErrLanguage):
		err = invalid("%v", err)
	case err == nil:
		result.Lost, e.lost = results.JoinLosses(e.lost, result.Lost), nil
		result.OmitKnown(&e.enforced)
	}
	return result, err
}

type setParams struct {
	ofOne
	Name  string      `json:"name"`
	Value jsonrpc.Raw `json:"value"`
}

func (s *server) set(ctx context.Context, e *entry, p setParams) (*none, error) {
	return &none{}, e.session.Set(ctx, p.Name, wirevalue.Value(p.Value))
}

type (
	getParams struct {
		ofOne
		Name string `json:"name"`
	}
	getResult struct {
		Value jsonrpc.Raw `json:"value"`
	}
)

func (s *server) get(ctx context.Context, e *entry, p getParams) (*getResult, error) {
	var value wirevalue.Value
	if err := e.session.Get(ctx, p.Name, &value); err != nil {
		return nil, err
	}
	return &getResult{jsonrpc.Raw(value)}, nil
}

type deleteParams struct {
	ofOne
	Names list[string] `json:"names"`
}

// remove deletes variables in order, up to the first that is missing. The result of the next
// snippet reports any earlier loss of the session.
func (s *server) remove(ctx context.Context, e *entry, p deleteParams) (*none, error) {
	for _, name := range p.Names {
		if err := protocol.CheckName(name); err != nil {
			return nil, invalid("%.100q cannot be deleted: it is reserved, or no identifier", name)
		}
	}
	if len(p.Names) == 0 {
		return &none{}, nil
	}

	source := "del " + strings.Join(p.Names, ", ")
	result, err := e.session.RunJob(ctx, tiers.Job{Language: tiers.Python, Source: source})
	if err != nil {
		return nil, err
	}
	e.lost = results.JoinLosses(e.lost, results.DescribeLoss(result.Lost))
	switch {
	case result.Exception != nil && result.Exception.Type == "NameError":
		return nil, invalid("%s: %s", result.Exception.Type, result.Exception.Message)
	case result.Status != tiers.StatusOK:
		return nil, fmt.Errorf("cannot delete the variables: that ended with %s", result.Status)
	}
	return &none{}, nil
}
