package rlm_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/rlmhq/rlm"
	"github.com/rlmhq/rlm/repl"
	"github.com/rlmhq/rlm/repl/ledger"
	"github.com/rlmhq/rlm/repl/llm"
	"github.com/rlmhq/rlm/repl/reflect"
	"github.com/rlmhq/rlm/router"
)

// reflectors are two models: one that reflects, and one with an unreachable server.
type reflectors struct{}

func (reflectors) Resolve(name string) (llm.Model, error) {
	model := llm.Model{
		Name: name,
		ID:   name,
		Provider: llm.Func(func(r llm.Request) (llm.Response, error) {
			if len(r.Messages) == 1 {
				return llm.Response{Text: "```python\nprint(len(trace))\n```"}, nil
			}
			return llm.Response{
				Text: "```python\nFINAL({'reasoning': traces['question']})\n```",
			}, nil
		}),
	}
	switch name {
	case "here":
		return model, nil
	case "away":
		model.Provider = away{model.Provider}
		return model, nil
	}
	return llm.Model{}, &llm.Error{Kind: errors.New("unknown provider"), Model: name}
}

type away struct{ llm.Provider }

// Check is called by llm.Check.
func (away) Check(context.Context, string) error { return errors.New("connection refused") }

func TestReflectTellsWhatCannotBegin(t *testing.T) {
	engine, err := sharedEngine()
	if err != nil {
		t.Fatal(err)
	}
	for want, change := range map[string]func(*reflect.Task){
		"set Models":         func(task *reflect.Task) { task.Config.Models = nil },
		"no model":           func(task *reflect.Task) { task.Config.Model = "" },
		"unknown/model":      func(task *reflect.Task) { task.Config.SubModel = "unknown/model" },
		"connection refused": func(task *reflect.Task) { task.Config.SubModel = "away" },
		"prompt template":    func(task *reflect.Task) { task.Config.PromptTemplate = "{x}" },
		"negative":           func(task *reflect.Task) { task.Config.MaxIterations = -1 },
	} {
		t.Run(want, func(t *testing.T) {
			task := reflect.Task{Config: reflect.Config{Models: reflectors{}, Model: "here"}}
			change(&task)
			outcome, err := reflect.RunOn(t.Context(), engine, task)
			var setup *rlm.SetupError
			if !errors.As(err, &setup) || !strings.Contains(err.Error(), want) ||
				outcome.Status != ledger.StatusFailed {
				t.Errorf("%s: %+v, %v", want, outcome, err)
			}
		})
	}
	subject, err := reflect.ParseTrace([]byte(`{"question": "q", "reasoning": "r"}`), "agent")
	if err != nil {
		t.Fatal(err)
	}
	outcome, err := reflect.RunOn(t.Context(), engine, reflect.Task{
		Config: reflect.Config{
			Models: reflectors{},
			Model:  "here",
		},
		Subject: subject,
		Task:    repl.Task{Policy: router.Policy{Pin: "wasm"}},
	})
	if err != nil || outcome.Status != ledger.StatusAnswered || outcome.Output.Reasoning != "q" {
		t.Errorf("%+v, %v", outcome, err)
	}
}
