package correct_test

import (
	"encoding/json"
	"sync"
	"testing"

	"github.com/rlmhq/rlm"
	"github.com/rlmhq/rlm/internal/testing/looptest"
	"github.com/rlmhq/rlm/repl/llm"
	"github.com/rlmhq/rlm/repl/workflow/internal/correct"
	"github.com/rlmhq/rlm/repl/workflow/internal/flow"
	"github.com/rlmhq/rlm/router"
)

var shared *rlm.Engine

func TestMain(m *testing.M) { looptest.Main(m, &shared, rlm.Options{}) }

// script is a registry in which every model gives the replies in order and repeats the last. It
// stores the requests.
type script struct {
	mu       sync.Mutex
	replies  []string
	requests []llm.Request
}

func (s *script) Resolve(name string) (llm.Model, error) {
	return llm.Model{
		Name:  name,
		ID:    name,
		Facts: llm.Facts{Window: 100_000, Price: &llm.Price{}},
		Provider: llm.Func(func(r llm.Request) (llm.Response, error) {
			s.mu.Lock()
			defer s.mu.Unlock()
			reply := s.replies[min(len(s.requests), len(s.replies)-1)]
			s.requests = append(s.requests, r)
			return llm.Response{Text: reply}, nil
		}),
	}, nil
}

// prompt returns the last message of request i.
func (s *script) prompt(i int) string {
	m := s.requests[i].Messages
	return m[len(m)-1].Content
}

// config returns a configuration with an engine, and models that give these replies.
func config(t *testing.T, replies ...string) (flow.Config, *script) {
	t.Helper()
	models := &script{replies: replies}
	return flow.Config{
		Models: models, Model: "test/model", AllowedModels: []string{"test/judge"},
		Open: shared.Opener(router.Policy{}),
	}, models
}

// run runs a file over an input. The files of these tests are valid.
func run(t *testing.T, source string, cfg flow.Config, input string) (flow.Outcome, error) {
	t.Helper()
	file, err := flow.Parse("w.yaml", []byte(source), append(correct.Actions(), echo)...)
	if err != nil {
		t.Fatal(err)
	}
	var state map[string]any
	if err := json.Unmarshal([]byte(input), &state); err != nil {
		t.Fatal(err)
	}
	return file.Run(t.Context(), cfg, state)
}

// asJSON returns a value as JSON.
func asJSON(t *testing.T, v any) string {
	t.Helper()
	data, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}
