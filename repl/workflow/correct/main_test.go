package correct_test

import (
	"encoding/json"
	"os"
	"sync"
	"testing"

	"go.uber.org/goleak"

	engine "github.com/rlmhq/rlm"
	"github.com/rlmhq/rlm/internal/testing/testcache"
	"github.com/rlmhq/rlm/repl/llm"
	"github.com/rlmhq/rlm/repl/workflow"
	"github.com/rlmhq/rlm/repl/workflow/correct"
	"github.com/rlmhq/rlm/router"
)

var shared *engine.Engine

func TestMain(m *testing.M) {
	var err error
	if shared, err = engine.New(engine.Options{CacheDir: testcache.Dir()}); err != nil {
		panic(err)
	}
	code := m.Run()
	if err := shared.Close(); err != nil {
		panic(err)
	}
	if err := goleak.Find(); err != nil && code == 0 {
		println(err.Error())
		code = 1
	}
	os.Exit(code)
}

// script is a registry whose every model gives the replies in their order, the
// last again and again, and remembers what it was asked.
type script struct {
	mu       sync.Mutex
	replies  []string
	requests []llm.Request
}

func (s *script) Resolve(name string) (llm.Model, error) {
	return llm.Model{Name: name, ID: name, Provider: llm.Func(func(r llm.Request) (llm.Response, error) {
		s.mu.Lock()
		defer s.mu.Unlock()
		reply := s.replies[min(len(s.requests), len(s.replies)-1)]
		s.requests = append(s.requests, r)
		return llm.Response{Text: reply}, nil
	})}, nil
}

// prompt is the last message of request i.
func (s *script) prompt(i int) string {
	m := s.requests[i].Messages
	return m[len(m)-1].Content
}

// config is a configuration with an engine, the actions of this package, and models
// that give these replies.
func config(t *testing.T, replies ...string) (workflow.Config, *script) {
	t.Helper()
	actions, err := workflow.NewActions(append(correct.Actions(), echo)...)
	if err != nil {
		t.Fatal(err)
	}
	models := &script{replies: replies}
	return workflow.Config{
		Actions: actions, Models: models, Model: "test/model", Allowed: []string{"test/judge"}, Open: shared.Opener(router.Policy{}),
	}, models
}

// run runs a file over an input. The files of these tests are right.
func run(t *testing.T, source string, cfg workflow.Config, input string) (workflow.Outcome, error) {
	t.Helper()
	file, err := workflow.Parse("w.yaml", []byte(source))
	if err != nil {
		t.Fatal(err)
	}
	var state map[string]any
	if err := json.Unmarshal([]byte(input), &state); err != nil {
		t.Fatal(err)
	}
	return file.Run(t.Context(), cfg, state)
}

// asJSON is a value as JSON.
func asJSON(t *testing.T, v any) string {
	t.Helper()
	data, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}
