package run_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync"
	"testing"

	"github.com/rlmhq/rlm"
	"github.com/rlmhq/rlm/internal/data/bigtext"
	"github.com/rlmhq/rlm/internal/testing/looptest"
	"github.com/rlmhq/rlm/repl/ledger"
	"github.com/rlmhq/rlm/repl/llm"
	"github.com/rlmhq/rlm/repl/run"
	"github.com/rlmhq/rlm/router"
	"github.com/rlmhq/rlm/tables"
	"github.com/rlmhq/rlm/tiers"
)

var shared *rlm.Engine

func TestMain(m *testing.M) { looptest.Main(m, &shared, rlm.Options{}) }

// models is a registry of one provider: root plays a script, sub answers with a function.
type models struct {
	mu       sync.Mutex
	script   []string
	requests []llm.Request // requests to the root model
	subs     []llm.Request
	sub      func(r llm.Request) (llm.Response, error)
	facts    llm.Facts
	complete func(ctx context.Context, r llm.Request) (llm.Response, error)
	// byPurpose may answer before the script; it is called with mu held.
	byPurpose func(r llm.Request) (llm.Response, bool)
}

func (m *models) Resolve(name string) (llm.Model, error) {
	if name != "root" && name != "sub" && name != "other" {
		return llm.Model{}, &llm.Error{Kind: errors.New("unknown provider"), Model: name}
	}
	return llm.Model{Name: name, ID: name, Provider: provider{m}, Facts: m.facts}, nil
}

type provider struct{ *models }

func (p provider) Complete(
	ctx context.Context, r llm.Request, stream func(string),
) (llm.Response, error) {
	if p.complete != nil {
		return p.complete(ctx, r)
	}
	return llm.Func(p.reply).Complete(ctx, r, stream)
}

func (m *models) reply(r llm.Request) (llm.Response, error) {
	m.mu.Lock()
	if r.Metadata.Purpose == "leaf" {
		m.subs = append(m.subs, r)
		m.mu.Unlock()
		if m.sub == nil {
			return llm.Response{Text: "re: " + last(r)}, nil
		}
		return m.sub(r)
	}
	defer m.mu.Unlock()
	if m.byPurpose != nil {
		if response, ok := m.byPurpose(r); ok {
			return response, nil
		}
	}
	m.requests = append(m.requests, r)
	if len(m.script) == 0 {
		return llm.Response{}, &llm.Error{Kind: errors.New("no reply on file"), Model: r.Model}
	}
	text := m.script[0]
	m.script = m.script[1:]
	return llm.Response{Text: text}, nil
}

func last(r llm.Request) string { return r.Messages[len(r.Messages)-1].Content }

func text(s string) tiers.Input {
	return tiers.Input{Name: "input", Text: bigtext.FromBytes("input.txt", []byte(s))}
}

// config returns a run with a scripted root model.
func config(m *models, inputs ...tiers.Input) run.Config {
	return run.Config{
		Question: "What is it?", Inputs: inputs, Models: m, Model: "root", SubModel: "sub",
		Open:   shared.Opener(router.Policy{Pin: "wasm"}),
		SQL:    tables.SQL,
		Bypass: -1, // these tests have small inputs and test the loop
	}
}

// code returns a reply with one block.
func code(source string) string { return "Let me see.\n```repl\n" + source + "\n```\n" }

func solve(t *testing.T, cfg run.Config) run.Outcome {
	t.Helper()
	outcome, err := run.Run(t.Context(), cfg)
	if err != nil {
		t.Fatalf("the run failed: %v (%+v)", err, outcome)
	}
	return outcome
}

func answered(t *testing.T, cfg run.Config, want string) run.Outcome {
	t.Helper()
	outcome := solve(t, cfg)
	if outcome.Status != ledger.StatusAnswered || outcome.Text() != want {
		t.Fatalf("the run ended as %s with %s (partial %q, reason %q), want %q",
			outcome.Status, outcome.Answer, outcome.Partial, outcome.Reason, want)
	}
	return outcome
}

func TestRunAnswersByCode(t *testing.T) {
	m := &models{
		script: []string{code("print(len(context))\nn = context.count('a')"), code("FINAL(n)")},
	}
	outcome := answered(t, config(m, text("banana")), "3")
	if outcome.Turns != 2 || outcome.Spent.Calls != 2 || string(outcome.Answer) != "3" {
		t.Errorf("it took %+v", outcome)
	}
	first := m.requests[0].Messages
	if len(first) != 2 || !strings.Contains(first[1].Content, "6 characters") ||
		!strings.Contains(first[1].Content, "banana") {
		t.Errorf("the model was told %q", first[1].Content)
	}
	told := last(m.requests[1])
	for _, want := range []string{"[turn 1/30]", "stdout:\n```\n6\n```\n", "New variables: n"} {
		if !strings.Contains(told, want) {
			t.Errorf("the feedback %q lacks %q", told, want)
		}
	}
}

func TestSubCalls(t *testing.T) {
	m := &models{
		script: []string{
			code(
				"a = llm_query('one')\nb = await llm_query('two')\nFINAL([a, b] + llm_query_batched(['x', 'y']))",
			),
		},
	}
	outcome := answered(t, config(m, text("banana")), `["re: one", "re: two", "re: x", "re: y"]`)
	if outcome.Spent.Calls != 5 {
		t.Errorf("spent %+v", outcome.Spent)
	}
	var list []string
	if err := json.Unmarshal(outcome.Answer, &list); err != nil || len(list) != 4 {
		t.Errorf("answer %s", outcome.Answer)
	}
}

var _ ledger.Models = (*models)(nil)
