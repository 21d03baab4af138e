package server

import (
	"context"
	"net/http"
	"strings"
	"testing"

	"github.com/rlmhq/rlm/repl/llm"
	"github.com/rlmhq/rlm/server/internal/runs"
)

func TestAServerWithoutAModelRunsCodeAndRefusesQuestions(t *testing.T) {
	s := start(t, t.TempDir(), nil, func(o *Options) {
		o.Profiles = []runs.Profile{{Name: runs.DefaultProfile}}
	})
	if err := s.server.Check(t.Context()); err != nil {
		t.Fatal(err)
	}

	s.exec(s.open("", object{}), "", "6*7", "42")
	for path, body := range map[string]object{
		"/v1/runs":             {"question": "Why?"},
		"/v1/chat/completions": chat("Why?"),
		"/v1/responses":        {"model": "rlm/default", "input": "Why?"},
	} {
		got := s.do("POST", path, "", body)
		s.want(got, http.StatusUnprocessableEntity, "rlm serve --model PROVIDER/NAME")
		if !strings.Contains(got.body, `"no_model"`) {
			t.Errorf("%s: got %s", path, got.body)
		}
	}
	if got := s.do("GET", "/v1/models", "", nil); strings.Contains(got.body, "rlm/default") {
		t.Errorf("a profile without a model is listed: %s", got.body)
	}
}

func TestARunWaitsForAServerWithAModel(t *testing.T) {
	dir := t.TempDir()
	model := newHeld(counting(t))
	s := start(t, dir, model, nil)
	body := object{"model": "rlm/default", "background": true, "input": []object{{
		"role":    "user",
		"content": []object{{"type": "input_text", "text": hay}, {"type": "input_text", "text": "wait"}},
	}}}
	id := s.text(s.do("POST", "/v1/responses", "", body), "id")
	<-model.asked
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	s.server.manager.Drain(ended)
	s.stop()

	none := start(t, dir, nil, func(o *Options) { o.Profiles = []runs.Profile{{Name: runs.DefaultProfile}} })
	if err := none.server.Recover(t.Context()); err != nil {
		t.Fatal(err)
	}
	log := none.logs.String()
	if !strings.Contains(log, "a run stays interrupted") || !strings.Contains(log, "--model") {
		t.Errorf("the log is %s", log)
	}
	none.want(none.do("GET", "/v1/responses/"+id, "", nil), 200, `"status":"in_progress"`)
	none.stop()

	next := start(t, dir, counting(t), nil)
	if err := next.server.Recover(t.Context()); err != nil {
		t.Fatal(err)
	}
	next.want(next.do("GET", "/v1/responses/"+id+"?stream=true", "", nil), 200, `"delta":"200"`)
}

// unpriced resolves every name to a model without a price.
type unpriced struct{ llm.Provider }

func (m unpriced) Resolve(name string) (llm.Model, error) {
	return llm.Model{Name: name, ID: name, Provider: m.Provider}, nil
}

func TestAModelWithoutAPriceIsServedUnlessABudgetNeedsOne(t *testing.T) {
	s := start(t, t.TempDir(), nil, func(o *Options) {
		o.Profiles[0].Task.Config.Models = unpriced{counting(t)}
	})
	if err := s.server.Check(t.Context()); err != nil {
		t.Errorf("the default budget refuses it: %v", err)
	}
	s.server.Profiles[0].Task.Config.Budget.USD = 1
	if err := s.server.Check(t.Context()); err == nil || !strings.Contains(err.Error(), "price") {
		t.Errorf("a budget in US dollars accepts it: %v", err)
	}
}
