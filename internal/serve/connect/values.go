package connect

import (
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/rlmhq/rlm/internal/jsonrpc"
	"github.com/rlmhq/rlm/internal/protocol"
	"github.com/rlmhq/rlm/internal/serve/results"
	"github.com/rlmhq/rlm/internal/wirevalue"
	"github.com/rlmhq/rlm/tiers"
)

// maxInline bounds an artefact that is part of a result, in bytes.
const maxInline = 8 << 20

type runParams struct {
	ofOne
	Source    string                 `json:"source"`
	Language  tiers.Language         `json:"language,omitempty" jsonschema:"python or go; detected by default"`
	Variables map[string]jsonrpc.Raw `json:"variables,omitempty" jsonschema:"set before the snippet runs"`
	Stream    bool                   `json:"stream,omitempty" jsonschema:"send session/output"`
}

// run runs a snippet.
func (s *server) run(ctx context.Context, e *entry, p runParams) (*results.Result, error) {
	switch p.Language {
	case "":
		p.Language = s.engine.Detect(ctx, p.Source)
	case tiers.Python, tiers.Go:
	default:
		return nil, invalid("the language %.40q is neither python nor go", p.Language)
	}

	for _, name := range slices.Sorted(maps.Keys(p.Variables)) {
		if err := e.session.Set(ctx, name, wirevalue.Value(p.Variables[name])); err != nil {
			return nil, err
		}
	}

	job := tiers.Job{Language: p.Language, Source: p.Source}
	if p.Stream {
		stdout, stderr := s.newOutput(e, "stdout"), s.newOutput(e, "stderr")
		defer stdout.flush()
		defer stderr.flush()
		job.Stdout, job.Stderr = stdout, stderr
	}

	ran, err := e.session.RunJob(ctx, job)
	if err != nil {
		return nil, err
	}

	result := results.Describe(ran)
	for _, one := range ran.Artefacts {
		result.Files = append(result.Files, results.DescribeFile(one.Name, one.Type, one.Data, maxInline))
	}
	return result, nil
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
	Names []string `json:"names"`
}

// remove deletes variables: all of them or, after an error, none behind the one in the error.
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
	switch {
	case err != nil:
		return nil, err
	case result.Exception != nil:
		return nil, invalid("%s: %s", result.Exception.Type, result.Exception.Message)
	}
	return &none{}, nil
}
