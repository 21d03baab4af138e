package reflect_test

import (
	"encoding/json"
	"errors"
	"strings"
	"sync"
	"testing"

	"github.com/rlmhq/rlm"
	"github.com/rlmhq/rlm/internal/testing/looptest"
	"github.com/rlmhq/rlm/repl/ledger"
	"github.com/rlmhq/rlm/repl/llm"
	"github.com/rlmhq/rlm/repl/reflect"
	"github.com/rlmhq/rlm/router"
)

var shared *rlm.Engine

func TestMain(m *testing.M) { looptest.Main(m, &shared, rlm.Options{}) }

// models is a registry of one provider: the model "main" plays a script, and "sub" repeats its
// prompt. The last reply of a script is repeated.
type models struct {
	mu       sync.Mutex
	script   []string
	requests []llm.Request // requests to main
	asked    []llm.Request // requests by snippets
	facts    llm.Facts
	// finish is the finish reason of main's replies.
	finish string
	refuse func(r llm.Request) error // nil for never
}

var _ ledger.Models = (*models)(nil)

func (m *models) Resolve(name string) (llm.Model, error) {
	if name != "main" && name != "sub" {
		return llm.Model{}, &llm.Error{Kind: errors.New("unknown provider"), Model: name}
	}
	return llm.Model{Name: name, ID: name, Provider: llm.Func(m.reply), Facts: m.facts}, nil
}

func (m *models) reply(r llm.Request) (llm.Response, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if r.Metadata.Purpose == "leaf" {
		m.asked = append(m.asked, r)
		return llm.Response{Text: "re: " + last(r)}, nil
	}
	if m.refuse != nil {
		if err := m.refuse(r); err != nil {
			return llm.Response{}, err
		}
	}
	m.requests = append(m.requests, r)
	if len(m.script) == 0 {
		return llm.Response{}, &llm.Error{Kind: errors.New("no reply on file"), Model: r.Model}
	}
	text := m.script[0]
	if len(m.script) > 1 {
		m.script = m.script[1:]
	}
	return llm.Response{Text: text, Finish: m.finish}, nil
}

func last(r llm.Request) string { return r.Messages[len(r.Messages)-1].Content }

// told returns the feedback on reply n, from 1.
func (m *models) told(t *testing.T, n int) string {
	t.Helper()
	if n >= len(m.requests) {
		t.Fatalf("there was no reply %d to tell anything about: %d requests", n, len(m.requests))
	}
	return last(m.requests[n])
}

// code returns a reply with one block.
func code(source string) string { return "Let me see.\n```python\n" + source + "\n```\n" }

// good is an analysis, as code.
const good = `FINAL({"reasoning": "The agent said 5.", "key_insight": "Count twice.", "correct_approach": "Count."})`

func pointer[T any](v T) *T { return &v }

// subject returns the small trace of an agent that computed a wrong sum.
func subject() reflect.Subject {
	s := subjectOf(agentOutput{
		Question: "What is 2+2?", Reasoning: "1. I add the numbers.\n2. Error: I lost count.",
		Answer: "5", SkillIDs: []string{"math-00001"}, GroundTruth: pointer("4"),
		Feedback: pointer("Wrong."),
	})
	s.Skillbook = "[math-00001] Count on your fingers."

	return s
}

// agentOutput is an agent's output for a task, as its trace.
type agentOutput struct {
	Question    string   `json:"question"`
	Reasoning   string   `json:"reasoning"`
	Answer      string   `json:"final_answer"`
	SkillIDs    []string `json:"skill_ids"`
	GroundTruth *string  `json:"ground_truth"`
	Feedback    *string  `json:"feedback"`
}

func subjectOf(o agentOutput) reflect.Subject {
	data, err := json.Marshal(o)
	if err != nil {
		panic(err)
	}
	subject, err := reflect.ParseTrace(data, "agent")
	if err != nil {
		panic(err)
	}

	return subject
}

// config returns a reflection with a scripted model.
func config(m *models) reflect.Config {
	return reflect.Config{
		Models: m, Model: "main", SubModel: "sub",
		Open: shared.Opener(router.Policy{Pin: "wasm"}),
	}
}

func reflected(t *testing.T, cfg reflect.Config) reflect.Outcome {
	t.Helper()
	outcome, err := reflect.Run(t.Context(), cfg, subject())
	if err != nil {
		t.Fatalf("the reflection failed: %v (%+v)", err, outcome)
	}
	return outcome
}

// after returns models that first look at the trace, then give the replies.
func after(replies ...string) *models {
	return &models{script: append([]string{code("print(trace.summary())")}, replies...)}
}

func answered(t *testing.T, cfg reflect.Config) reflect.Outcome {
	t.Helper()
	outcome := reflected(t, cfg)
	if outcome.Status != ledger.StatusAnswered {
		t.Fatalf("the reflection ended as %s: %s", outcome.Status, outcome.Reason)
	}
	return outcome
}

// prints runs a snippet of a reflection and checks its output.
func prints(t *testing.T, source string, want ...string) {
	t.Helper()
	m := &models{script: []string{code(source), code(good)}}
	answered(t, config(m))
	holds(t, m.told(t, 1), want...)
}

// holds checks that text contains each part, or does not contain it if the part begins with "! ".
func holds(t *testing.T, text string, want ...string) {
	t.Helper()
	for _, part := range want {
		if unwanted, not := strings.CutPrefix(part, "! "); not && strings.Contains(text, unwanted) {
			t.Errorf("%q has %q", text, unwanted)
		} else if !not && !strings.Contains(text, part) {
			t.Errorf("%q lacks %q", text, part)
		}
	}
}
