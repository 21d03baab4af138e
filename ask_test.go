package rlm_test

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/rlmhq/rlm"
	"github.com/rlmhq/rlm/repl"
	"github.com/rlmhq/rlm/repl/llm"
	"github.com/rlmhq/rlm/repl/llm/scripted"
	"github.com/rlmhq/rlm/repl/run"
	"github.com/rlmhq/rlm/tiers"
)

// scriptedModels resolves every name to a model that answers by rules.
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

func TestSnippetsOfASessionStartSubLoops(t *testing.T) {
	models := answerBy(
		t,
		reply(scripted.When{Purpose: "sub", System: "You are a clerk."}, "```repl\n"+
			"FINAL(f'{context} costs {price(context)}, {\"stock\" in globals()}')\n```"),
		reply(scripted.When{Purpose: "sub"}, "```repl\nFINAL(str(len(context) + stock()))\n```"),
	)
	session := open(t, rlm.SessionConfig{
		Functions: []rlm.Function{
			rlm.Func("price", "", func(context.Context, struct {
				Name string `json:"name"`
			},
			) (int, error) {
				return 3, nil
			}),
		},
		Ask: run.Config{Models: models, Model: "test/m", Agents: map[string]repl.Agent{
			"clerk": {System: "You are a clerk.", Tools: []string{"price"}},
		}},
	})
	later := rlm.Func("stock", "", func(context.Context, struct{}) (int, error) { return 40, nil })
	if err := session.AddFunctions(t.Context(), later); err != nil {
		t.Fatal(err)
	}

	prints(t, session, "print(sub_agent_call('what?', 'clerk', 'jam'))", "jam costs 3, False\n")
	prints(t, session, "print(await sub_agent_call('how long?', 'recursive_reasoner', 'ab'))", "42\n")
	prints(t, session, "print(rlm_query('how long?', 'abc'))", "43\n")
	prints(t, session, `try:
    sub_agent_call('q', 'nobody')
except Exception as e:
    print(str(e).partition('there are: ')[2])`, "clerk, recursive_reasoner\n")
}

func TestAnInterruptedSnippetLeavesTheSession(t *testing.T) {
	session := open(t, rlm.SessionConfig{})
	prints(t, session, "x = 41", "")
	for name, source := range map[string]string{
		"in a loop": "y = 1\nprint('busy')\nwhile True: pass",
		// A second interrupt arrives while the runtime writes the traceback.
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

// TestAConversationGoesOn checks that each of three questions finds the variables and messages of
// the earlier ones, even in another process.
func TestAConversationGoesOn(t *testing.T) {
	said := func(n int) scripted.When { return scripted.When{Said: &n, Purpose: "root"} }
	turn := func(question, source string) scripted.Rule {
		when := said(0)
		when.Last = "^Question: " + question
		return reply(when, "```repl\n"+source+"\n```")
	}
	models := answerBy(
		t,
		turn("first", "assert 'history' not in globals() or history == []\n"+
			"x = len(context)\nanswer['content'] = x\nanswer['ready'] = True"),
		turn("second\n(.|\n)*variables already: x(.|\n)*`history_0`: \"first\" was answered with \"5\"",
			"print(query, answer, _answer, x)\nx += len(context_1)\nfirst = history_0[0]['content']\n"+
				"assert history == history_0 and 'x = len(context)' in history_0[1]['content']"),
		reply(said(1), "```repl\nFINAL([x, first, history[-1]['content']])\n```"),
		turn("third\n(.|\n)*history_0` to `history_1", "FINAL([x, history_1[0]['content'], len(history_1), query])"),
	)
	config := func(histories [][]llm.Message, contexts ...rlm.Context) rlm.SessionConfig {
		return rlm.SessionConfig{
			Contexts: contexts, Keep: true, Histories: histories,
			Ask: run.Config{Models: models, Model: "test/m"},
		}
	}
	var histories [][]llm.Message
	ask := func(s *rlm.Session, question, want string) {
		t.Helper()
		outcome, err := s.Ask(t.Context(), question)
		if err != nil || outcome.Text() != want {
			t.Fatalf("%s: %s %v (%s), want %s", question, outcome.Text(), err, outcome.Reason, want)
		}
		histories = append(histories, outcome.Messages)
	}

	five, three := rlm.Text("t", "five."), rlm.Text("u", "two")
	from := open(t, config(nil, five))
	ask(from, "first", "5")
	if err := from.AddContext(t.Context(), three); err != nil {
		t.Fatal(err)
	}
	ask(from, "second", `[8, "first", "5"]`)
	var snapshot bytes.Buffer
	if err := from.Snapshot(t.Context(), &snapshot); err != nil {
		t.Fatal(err)
	}

	to := open(t, config(histories, five, three))
	if report, err := to.Restore(t.Context(), &snapshot); err != nil || len(report.Left) > 0 {
		t.Fatal(report, err)
	}
	for _, s := range []*rlm.Session{from, to} {
		ask(s, "third", `[8, "second", 5, "third"]`)
	}
}

// smallModels have a window of 5000 tokens. Their server reports the window, or only refuses
// prompts that exceed it.
type smallModels struct {
	scriptedModels

	window int64
}

// Resolve implements repl.Models.
func (s smallModels) Resolve(name string) (llm.Model, error) {
	model, err := s.scriptedModels.Resolve(name)
	model.Facts.Window = s.window
	return model, err
}

// TestALongQuestionIsAnInputOfTheCopy checks that a question that exceeds the model's window
// becomes an input.
func TestALongQuestionIsAnInputOfTheCopy(t *testing.T) {
	question := strings.Repeat("long ", 5_000)
	tooLong := &llm.Error{Kind: llm.ErrContextLength}
	for _, window := range []int64{5_000, 0} {
		models := smallModels{answerBy(
			t,
			scripted.Rule{When: scripted.When{Last: "^Question: "}, Error: tooLong},
			reply(scripted.When{}, "```repl\nFINAL([x, len(context_1), context])\n```"),
		), window}
		ask := run.Config{Models: models, Model: "test/m"}
		for _, keep := range []bool{false, true} {
			session := open(t, rlm.SessionConfig{Contexts: []rlm.Context{rlm.Text("t", "t")}, Ask: ask, Keep: keep})
			if result, err := session.Run(t.Context(), "x = 41"); err != nil || result.Status != tiers.StatusOK {
				t.Fatal(result, err)
			}

			outcome, err := session.Ask(t.Context(), question)
			switch {
			case keep && (err == nil || !strings.Contains(err.Error(), "add the text as a context")):
				t.Errorf("%d: a conversation: %s, %v", window, outcome.Text(), err)
			case !keep && (err != nil || outcome.Text() != `[41, 25000, "t"]`):
				t.Errorf("%d: a copy: %s, %v", window, outcome.Text(), err)
			}
		}
	}
}

// TestAConversationKeepsTheLastHistories checks a session with more histories than it keeps.
func TestAConversationKeepsTheLastHistories(t *testing.T) {
	long := []llm.Message{{Role: llm.RoleUser, Content: strings.Repeat("é", 60_000)}}
	for range 5 {
		long = append(long, long...)
	}
	session := open(t, rlm.SessionConfig{
		Keep: true, Histories: [][]llm.Message{long, long[:1], long[:31]},
	})
	var out strings.Builder
	result, err := session.RunJob(t.Context(), tiers.Job{Stdout: &out, Source: `
for h in history, history_0, history_1, history_2:
    print(len(h), len(h[0]["content"]), h[0]["content"][:9])`})
	if err != nil || result.Status != tiers.StatusOK {
		t.Fatalf("%+v %v", result, err)
	}
	want := "1 44 (left out\n1 44 (left out\n1 50035 ééééééééé\n31 50035 ééééééééé\n"
	if out.String() != want {
		t.Errorf("%q, want %q", out.String(), want)
	}
}
