package flow_test

import (
	"sync"
	"testing"

	"github.com/rlmhq/rlm"
	"github.com/rlmhq/rlm/internal/testing/looptest"
	"github.com/rlmhq/rlm/repl/llm"
	"github.com/rlmhq/rlm/repl/workflow/internal/flow"
	"github.com/rlmhq/rlm/router"
)

var shared *rlm.Engine

func TestMain(m *testing.M) { looptest.Main(m, &shared, rlm.Options{}) }

// asked is a registry in which a function answers for every model. It stores the requests.
type asked struct {
	mu       sync.Mutex
	requests []llm.Request
	answer   func(r llm.Request) (string, error)
	finish   string // the finish reason of all replies; empty if they are complete
}

func (a *asked) Resolve(name string) (llm.Model, error) {
	return llm.Model{
		Name:  name,
		ID:    name,
		Facts: llm.Facts{Window: 100_000, Price: &llm.Price{}},
		Provider: llm.Func(func(r llm.Request) (llm.Response, error) {
			a.mu.Lock()
			defer a.mu.Unlock()
			a.requests = append(a.requests, r)
			text, err := a.answer(r)
			return llm.Response{Text: text, Finish: a.finish}, err
		}),
	}, nil
}

// says returns models that always give the same answer.
func says(text string) *asked {
	return &asked{answer: func(llm.Request) (string, error) { return text, nil }}
}

// last returns the last message of a request.
func last(r llm.Request) string { return r.Messages[len(r.Messages)-1].Content }

// config returns a configuration with an engine.
func config(models *asked) flow.Config {
	cfg := flow.Config{Open: shared.Opener(router.Policy{})}
	if models != nil {
		cfg.Models, cfg.Model = models, "test/default"
	}
	return cfg
}

func parse(t *testing.T, source string, more ...flow.Action) *flow.File {
	t.Helper()
	file, err := flow.Parse("w.yaml", []byte(source), more...)
	if err != nil {
		t.Fatal(err)
	}
	return file
}
