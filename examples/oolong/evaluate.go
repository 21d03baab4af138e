package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"

	"github.com/rlmhq/rlm"
	"github.com/rlmhq/rlm/repl/ledger"
	"github.com/rlmhq/rlm/repl/llm"
	"github.com/rlmhq/rlm/repl/run"
)

// Evaluation asks the same tasks in three ways.
type Evaluation struct {
	Engine *rlm.Engine
	Models ledger.Models
	Model  string
	Root   string // the model that runs the loops; Model if empty
	Sizes  []int  // numbers of records
	Tasks  int    // number of tasks per size
	Seed   uint64
	// Progress receives a line for each answer.
	Progress io.Writer
}

// way answers a task and returns the answer and its cost.
type way struct {
	name string
	ask  func(e *Evaluation, ctx context.Context, t *Task) (string, ledger.Spending, error)
}

// These are the instructions that distinguish the two loops.
const (
	withoutCover = "Do not pass cover=True to map_llm."
	withCover    = "Give each record that the question is about its label with map_llm(…, cover=True), and " +
		"compute the answer from these labels in code."
)

var ways = []way{
	{"base", (*Evaluation).askDirectly},
	{"RLM", func(e *Evaluation, ctx context.Context, t *Task) (string, ledger.Spending, error) {
		return e.askLoop(ctx, t, withoutCover)
	}},
	{"RLM with cover", func(e *Evaluation, ctx context.Context, t *Task) (string, ledger.Spending, error) {
		return e.askLoop(ctx, t, withCover)
	}},
}

// answerLine matches the end of a direct reply.
var answerLine = regexp.MustCompile(`(?im)^\W*answer\W*:\W*(.*?)\W*$`)

// askDirectly gives the model the whole text. The reply may contain the model's reasoning.
func (e *Evaluation) askDirectly(ctx context.Context, t *Task) (string, ledger.Spending, error) {
	model, err := e.Models.Resolve(e.Model)
	if err != nil {
		return "", ledger.Spending{}, err
	}
	prompt := t.Question + " Think aloud if you like. End with one line that has the answer:\nAnswer: …\n\n" +
		"Context:\n" + t.Text
	response, err := model.Provider.Complete(ctx, llm.Request{
		Model: model.ID, Messages: []llm.Message{{Role: llm.RoleUser, Content: prompt}},
		Metadata: llm.Metadata{Purpose: "base"},
	}, nil)
	if err != nil {
		return "", ledger.Spending{Calls: 1}, err
	}

	spent := ledger.Spending{
		Calls: 1, InputTokens: response.Usage.InputTokens, OutputTokens: response.Usage.OutputTokens,
	}
	lines := answerLine.FindAllStringSubmatch(response.Text, -1)
	if lines == nil {
		return "", spent, errors.New("the reply has no line with the answer")
	}
	return lines[len(lines)-1][1], spent, nil
}

// askLoop gives the task to a loop with additional instructions.
func (e *Evaluation) askLoop(ctx context.Context, t *Task, system string) (string, ledger.Spending, error) {
	root := e.Root
	if root == "" {
		root = e.Model
	}
	outcome, err := e.Engine.Ask(ctx, rlm.Task{
		Contexts: []rlm.Context{rlm.Text("messages.txt", t.Text)},
		Config: run.Config{
			Question: t.Question, System: system, Schema: t.Contract,
			Models: e.Models, Model: root, SubModel: e.Model,
			Bypass: -1, // this measures the loop
		},
	})
	if err == nil && outcome.Reason != "" {
		err = fmt.Errorf("%s: %s", outcome.Status, outcome.Reason)
	}
	if outcome.Answer == nil {
		return "", outcome.Spent, err
	}
	return outcome.Text(), outcome.Spent, err
}

// tally sums up the tasks of one size and way.
type tally struct {
	score         float64
	failed        int
	calls, tokens int64
}

// Run asks all tasks and returns the table. A task without an answer scores 0.
func (e *Evaluation) Run(ctx context.Context) (table string, err error) {
	model, err := e.Models.Resolve(e.Model)
	if err != nil {
		return "", err
	}
	if err := llm.Check(ctx, model.Provider, model.ID); err != nil {
		return "", err
	}

	var b strings.Builder
	b.WriteString("| records | way | score | without an answer | calls | tokens |\n" +
		"| --- | --- | --- | --- | --- | --- |\n")
	for _, size := range e.Sizes {
		sums := make([]tally, len(ways))
		for number := range e.Tasks {
			task := MakeTask(e.Seed, size, number)
			for i, w := range ways {
				if err := e.add(ctx, &sums[i], &task, w); err != nil {
					return "", err
				}
			}
		}

		for i, sum := range sums {
			fmt.Fprintf(&b, "| %d | %s | %.2f | %d | %.1f | %d |\n", size, ways[i].name, sum.score/float64(e.Tasks),
				sum.failed, float64(sum.calls)/float64(e.Tasks), sum.tokens/int64(e.Tasks))
		}
	}
	return b.String(), nil
}

// add asks one task in one way.
func (e *Evaluation) add(ctx context.Context, sum *tally, t *Task, w way) error {
	answer, spent, err := w.ask(e, ctx, t)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	score := t.Score(answer)
	sum.score += score
	sum.calls += spent.Calls
	sum.tokens += spent.InputTokens + spent.OutputTokens
	if answer == "" {
		sum.failed++
	}

	note := ""
	if err != nil {
		note = ": " + err.Error()
	}
	_, err = fmt.Fprintf(e.Progress, "%s %.2f: %q, want %q%s\n", w.name, score, answer, t.Want, note)
	return err
}
