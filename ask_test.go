package rlm_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/rlmhq/rlm"
	"github.com/rlmhq/rlm/repl/llm"
	"github.com/rlmhq/rlm/repl/llm/scripted"
	"github.com/rlmhq/rlm/repl/run"
	"github.com/rlmhq/rlm/tiers"
)

// scriptedModels answers by rules under any name.
type scriptedModels struct{ llm.Provider }

// Resolve implements repl.Models.
func (s scriptedModels) Resolve(name string) (llm.Model, error) {
	return llm.Model{Name: name, ID: name, Provider: s.Provider}, nil
}

// answerBy returns models that answer by rules.
func answerBy(t *testing.T, rules ...scripted.Rule) scriptedModels {
	t.Helper()
	script, err := scripted.New(rules...)
	if err != nil {
		t.Fatal(err)
	}
	return scriptedModels{script}
}

func reply(when scripted.When, text string) scripted.Rule {
	return scripted.Rule{When: when, Reply: &text}
}

func TestAModelWorksInACopyOfThePersonsSession(t *testing.T) {
	models := answerBy(
		t,
		reply(scripted.When{Purpose: "root"},
			"```repl\nx += 1\nparts = rlm_query_batched(['a', 'b'])\nFINAL([x, len(context), parts])\n```"),
		reply(scripted.When{Purpose: "sub"}, "```repl\nFINAL(str('x' in globals()))\n```"),
		reply(scripted.When{}, "a leaf"),
	)
	session := open(t, rlm.SessionConfig{
		Contexts: []rlm.Context{rlm.Text("t", "five.")},
		Ask:      run.Config{Models: models, Model: "test/m"},
	})
	runs := func(source, want string) {
		t.Helper()
		var out strings.Builder
		result, err := session.RunJob(t.Context(), tiers.Job{Source: source, Stdout: &out})
		if err != nil || result.Status != tiers.StatusOK ||
			strings.TrimSpace(out.String()) != want {
			t.Errorf("%s: %q, %+v, %v", source, out.String(), result.Exception, err)
		}
	}
	for range 2 { // the first question has not changed the session
		runs("x = 41; x", "41")
		outcome, err := session.Ask(t.Context(), "what is x?")
		if got := string(outcome.Answer); err != nil ||
			strings.ReplaceAll(got, " ", "") != `[42,5,["False","False"]]` {
			t.Fatalf("%s, %+v, %v", got, outcome, err)
		}
		runs("x, _answer[0]", "(41, 42)")
		runs("llm_query('hi')", "'a leaf'")
	}
}

func TestAnInterruptedSnippetLeavesTheSession(t *testing.T) {
	session := open(t, rlm.SessionConfig{})
	prints(t, session, "x = 41", "")
	for name, source := range map[string]string{
		"in a loop": "y = 1\nprint('busy')\nwhile True: pass",
		// It is interrupted again while the runtime writes its traceback.
		"in its traceback": `y = 1
class Slow(Exception):
    def __str__(self):
        while True: pass
try:
    print('busy')
    while True: pass
except KeyboardInterrupt:
    raise Slow from None`,
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			busy := writerFunc(func([]byte) { cancel() })
			var broken *tiers.BrokenError
			if result, err := session.RunJob(ctx,
				tiers.Job{Source: source, Stdout: busy}); !errors.As(err, &broken) ||
				broken.Lost != nil {
				t.Errorf("the endless snippet ends as %s %+v, with %v", result.Status,
					result.Exception, err)
			}
			var out strings.Builder
			if result, err := session.RunJob(t.Context(),
				tiers.Job{Source: "print(x, y)\ny = 0", Stdout: &out}); err != nil ||
				out.String() != "41 1\n" {
				t.Errorf("%q, %+v, %v", out.String(), result.Exception, err)
			}
		})
	}
}

// writerFunc is a writer that calls a function for each write.
type writerFunc func([]byte)

// Write calls the function.
func (f writerFunc) Write(b []byte) (int, error) {
	f(b)
	return len(b), nil
}
