package answers

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync/atomic"
	"unicode/utf8"

	"github.com/rlmhq/rlm/internal/text/texts"
	"github.com/rlmhq/rlm/repl"
	"github.com/rlmhq/rlm/repl/internal/calls"
	"github.com/rlmhq/rlm/repl/internal/fanout"
	"github.com/rlmhq/rlm/repl/internal/inputs"
	"github.com/rlmhq/rlm/repl/ledger"
	"github.com/rlmhq/rlm/repl/llm"
	"github.com/rlmhq/rlm/schema"
	"github.com/rlmhq/rlm/tiers"
)

// Answers is the [Answerer] of one loop. It answers the loop's snippets with model calls and, if
// the loop allows them, with further loops.
type Answers struct {
	Caller *calls.Caller
	Inputs inputs.List
	// Node and Depth name the loop in the tree.
	Node  string
	Depth int
	// Turn is the loop's current turn, for the record.
	Turn *atomic.Int64
	// Model is asked unless a snippet names another model in Models.
	Model  string
	Models []string
	Agents map[string]repl.Agent
	// Loop answers a query with a loop one level deeper. It is nil at the maximum depth, where
	// queries go directly to the model.
	Loop func(ctx context.Context, q Query, contract *schema.Contract) (json.RawMessage, error)
	// CallsAtOnce bounds the calls in flight of one fan-out.
	CallsAtOnce int
	// Loops limits the sub-loops of this loop that run concurrently. Each loop has its own gate. A
	// tree of gates cannot deadlock, because the holder of a place only waits for places deeper
	// in the tree.
	Loops calls.Gate
	// Retries bounds the further attempts after an answer that violates its contract or an
	// incomplete reply.
	Retries int
	// MaxTokens and Temperature apply to the calls. Zero and nil leave the choice to the Caller
	// and the server.
	MaxTokens   int
	Temperature *float64
	// OtherMode is the system prompt of ask_llm in an unknown mode.
	OtherMode string
	// Refused returns the answer to an untyped query that does not fit the budget. If Refused is
	// nil, the first such query returns a notice and later ones raise.
	Refused func(*ledger.BudgetError) string
	// ErrorTexts makes a failing single query without a schema return the string of a failed slot
	// instead of raising.
	ErrorTexts bool
	// Lacks counts the records without which code continues; nil disables this.
	Lacks *Lacks

	warned   atomic.Bool
	failures failures
}

var _ Answerer = (*Answers)(nil)

// Knows reports whether a model may be asked.
func (a *Answers) Knows(model string) bool { return slices.Contains(a.Models, model) }

// modes are the system prompts of ask_llm.
var modes = map[string]string{
	"analysis": "You survey data for a colleague who will sort and count what you find. " +
		"Describe what is there, with the names and figures that matter, in short plain " +
		"sentences. Do not speculate about causes.",
	"deep_dive": "You investigate one matter for a colleague. Quote the evidence for each " +
		"claim, trace what happened step by step to its root cause, and say what the " +
		"evidence does not settle.",
}

// ModePrompt returns the system prompt of ask_llm in a mode, empty for an unknown mode.
func ModePrompt(mode string) string { return modes[mode] }

// makeAsk turns a query into an ask. A typed query has a contract.
func (a *Answers) makeAsk(ctx context.Context, q Query) (calls.Ask, error) {
	model := q.Model
	if model == "" {
		model = a.Model
	}
	out := calls.Ask{
		Node: a.Node, Depth: a.Depth, Slot: q.Slot, Purpose: "leaf", Model: model, Sub: true,
		MaxTokens: a.MaxTokens, Temperature: a.Temperature, Agent: q.Agent,
	}
	if a.Turn != nil {
		out.Turn = int(a.Turn.Load())
	}

	limit := a.Caller.MostChars(model)
	prompt, err := a.Inputs.Text(ctx, q.Prompt, limit)
	if err != nil {
		return out, fmt.Errorf("the prompt: %w", err)
	}

	out.Question, out.Mode = prompt, q.Mode
	if q.Context != nil {
		text, err := a.Inputs.Text(ctx, q.Context, limit)
		if err != nil {
			return out, fmt.Errorf("the context: %w", err)
		}
		out.ContextLength = utf8.RuneCountInString(text)
		if text != "" {
			prompt += "\n\nContext:\n" + text
		}
	}

	if strings.TrimSpace(prompt) == "" {
		return out, errors.New("the prompt is empty")
	}

	out.Messages = []llm.Message{{Role: llm.RoleUser, Content: prompt, Images: q.Images}}
	if q.Schema != nil {
		if out.Schema, err = schema.Parse(q.Schema); err != nil {
			return out, err
		}
	}
	return out, nil
}

// Leaf asks a model once.
func (a *Answers) Leaf(ctx context.Context, q Query) (json.RawMessage, error) {
	value, err := a.askOnce(ctx, &q, func(*calls.Ask) {})
	return a.noticeBudget(value, err, q.Schema != nil)
}

// askOnce asks a model once. Change, if set, completes the ask.
func (a *Answers) askOnce(
	ctx context.Context, q *Query, change func(*calls.Ask),
) (value json.RawMessage, err error) {
	defer func() { a.failures.note(ctx, q, err) }()
	ask, err := a.makeAsk(ctx, *q)
	if err != nil {
		return nil, err
	}
	change(&ask)
	return a.complete(ctx, ask)
}

// complete asks one question. The answer is a string, or a value that meets the contract.
func (a *Answers) complete(ctx context.Context, ask calls.Ask) (json.RawMessage, error) {
	if ask.Schema != nil {
		return a.Caller.CompleteTyped(ctx, ask, a.Retries)
	}
	text, err := a.Caller.CompleteText(ctx, ask, a.Retries)
	if err != nil {
		return nil, err
	}
	return texts.Quote(text)
}

// noticeBudget answers the first call beyond the budget with a string that says so. Typed queries
// do not receive it, because their code would mistake the string for a value.
func (a *Answers) noticeBudget(value json.RawMessage, err error, typed bool) (json.RawMessage, error) {
	var budget *ledger.BudgetError
	if !errors.As(err, &budget) {
		return a.showError(value, err, typed)
	}
	if a.Refused != nil && !typed {
		return texts.Quote(a.Refused(budget))
	}
	if again := a.warned.Swap(true); again || typed {
		return a.showError(nil, err, typed)
	}
	notice := formatNotice(budget)
	a.failures.addSign(notice)
	return texts.Quote(notice)
}

// showError returns an error's message as the answer if ErrorTexts is set.
func (a *Answers) showError(value json.RawMessage, err error, typed bool) (json.RawMessage, error) {
	if err == nil || typed || !a.ErrorTexts {
		return value, err
	}
	return encodeFailure(false, err)
}

func formatNotice(err *ledger.BudgetError) string {
	return "(No answer: " + err.Error() +
		". Finish now with FINAL(...) from what you have; further calls will raise.)"
}

// Sub gives a task to a loop one level deeper or, at the maximum depth, to a model.
func (a *Answers) Sub(ctx context.Context, q Query) (json.RawMessage, error) {
	value, err := a.runSub(ctx, q)
	return a.noticeBudget(value, err, q.Schema != nil)
}

func (a *Answers) runSub(ctx context.Context, q Query) (value json.RawMessage, err error) {
	if a.Loop == nil {
		return a.askOnce(ctx, &q, func(*calls.Ask) {})
	}

	defer func() { a.failures.note(ctx, &q, err) }()
	if len(q.Images) > 0 {
		return nil, errors.New("a sub-agent takes no images: ask a model with llm_query(prompt, images=...)")
	}
	var contract *schema.Contract
	if q.Schema != nil {
		if contract, err = schema.Parse(q.Schema); err != nil {
			return nil, err
		}
	}

	if err := a.Loops.Enter(ctx); err != nil {
		return nil, err
	}
	defer a.Loops.Leave()

	// A loop that cannot afford a single call needs no session and no folder.
	if err := a.Caller.Ledger.Check(leastLoop); err != nil {
		return nil, err
	}
	return a.Loop(ctx, q, contract)
}

// leastLoop is the minimum need of any loop: one short call.
var leastLoop = ledger.Spending{Calls: 1, InputTokens: 1, OutputTokens: 1, USD: 1e-6}

// Ask asks a model with the system prompt of a mode.
func (a *Answers) Ask(ctx context.Context, q Query, mode string) (json.RawMessage, error) {
	system, known := modes[mode]
	if !known {
		system = a.OtherMode
	}
	return a.askWithSystem(ctx, q, system)
}

// askWithSystem asks a model with a system prompt.
func (a *Answers) askWithSystem(ctx context.Context, q Query, system string) (json.RawMessage, error) {
	value, err := a.askOnce(ctx, &q, func(ask *calls.Ask) {
		if system != "" {
			first := llm.Message{Role: llm.RoleSystem, Content: system}
			ask.Messages = slices.Insert(ask.Messages, 0, first)
		}
	})
	return a.noticeBudget(value, err, q.Schema != nil)
}

// Agent asks a registered agent.
func (a *Answers) Agent(ctx context.Context, id string, q Query) (json.RawMessage, error) {
	q.Agent = id
	agent, ok := a.Agents[id]
	switch {
	case !ok && id == Reasoner:
		return a.Sub(ctx, q)
	case !ok:
		return nil, fmt.Errorf("sub_agent_call: there is no agent %q; there are: %s",
			texts.Truncate(id, 80), strings.Join(a.agentNames(), ", "))
	}

	q.Model = agent.Model
	if q.Schema == nil {
		q.Schema = agent.Schema
	}
	switch {
	case agent.Tools == nil:
		return a.askWithSystem(ctx, q, agent.System)
	case a.Loop == nil:
		return nil, fmt.Errorf("sub_agent_call: agent %q works with tools in a loop, and no loop "+
			"may start at depth %d: raise max_depth", id, a.Depth)
	}

	return a.Sub(ctx, q)
}

// Reasoner is the agent that every loop has, unless the configuration gives its name to another
// agent. It answers in the same way as rlm_query: with a loop and all tools of the run.
const Reasoner = "recursive_reasoner"

const reasonerDoc = "solves a task in several steps, with a REPL of its own"

// agentNames returns the names of all agents, in order.
func (a *Answers) agentNames() []string {
	names := append(slices.Collect(maps.Keys(a.Agents)), Reasoner)
	slices.Sort(names)
	return slices.Compact(names)
}

// Predict fills in the outputs of a signature.
func (a *Answers) Predict(ctx context.Context, p Prediction) (json.RawMessage, error) {
	fields, output, err := schema.FromSignature(p.Signature)
	if err != nil {
		return nil, err
	}
	var b strings.Builder
	if p.Instructions != "" {
		b.WriteString(p.Instructions + "\n\n")
	}

	limit := a.Caller.MostChars(a.Model)
	for _, f := range fields {
		value, ok := p.Inputs[f.Name]
		if !ok {
			return nil, fmt.Errorf("predict: the input %q of the signature is missing", f.Name)
		}
		text, err := a.Inputs.Text(ctx, value, limit)
		if err != nil {
			return nil, fmt.Errorf("predict: input %q: %w", f.Name, err)
		}
		fmt.Fprintf(&b, "%s:\n%s\n\n", f.Name, text)
	}

	for name := range p.Inputs {
		if !slices.ContainsFunc(fields, func(f schema.Field) bool { return f.Name == name }) {
			return nil, fmt.Errorf("predict: the signature has no input %q",
				texts.Truncate(name, 80))
		}
	}

	b.WriteString("From the above, give:\n" + output.Describe())
	prompt, err := texts.Quote(b.String())
	if err != nil {
		return nil, err
	}
	value, err := a.askOnce(ctx, &Query{Prompt: prompt}, func(ask *calls.Ask) { ask.Schema = output })
	return a.noticeBudget(value, err, true)
}

// Many answers queries concurrently. It fails if, for lack of budget, none of them got an answer
// and an earlier call already got the notice.
func (a *Answers) Many(
	ctx context.Context, queries []Query, sub bool,
) ([]fanout.Slot[json.RawMessage], error) {
	limit := a.CallsAtOnce
	if sub && a.Loop != nil {
		limit = cap(a.Loops)
	}
	answer := func(ctx context.Context, i int) (json.RawMessage, error) {
		if sub {
			return a.runSub(ctx, queries[i])
		}
		return a.askOnce(ctx, &queries[i], func(*calls.Ask) {})
	}

	slots := fanout.Run(ctx, len(queries), limit, answer)
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	var budget *ledger.BudgetError
	spent, answered := false, false
	for _, s := range slots {
		spent = spent || errors.As(s.Err, &budget)
		answered = answered || s.Err == nil
	}

	if spent && a.warned.Swap(true) && !answered {
		return nil, budget
	}
	return slots, nil
}

// Foresee rejects queries that together exceed the budget. It checks their number before it reads
// their prompts.
func (a *Answers) Foresee(ctx context.Context, queries []Query) error {
	sum := ledger.Spending{Calls: int64(len(queries))}
	err := a.Caller.Ledger.Check(sum)
	if err == nil {
		if sum, err = a.estimateAll(ctx, queries); err != nil {
			return err
		}
		err = a.Caller.Ledger.Check(sum)
	}

	e := ledger.Event{
		Kind:  ledger.EventForesight,
		Node:  a.Node,
		Depth: a.Depth,
		Model: a.Model,
		Used:  &sum,
	}
	if err != nil {
		e.Kind, e.Error = ledger.EventRefusal, err.Error()
		err = fmt.Errorf("this needs about %s; %w: take fewer or larger items", sum, err)
	}
	a.Caller.Tell(e)
	return err
}

// estimateAll returns the expected spending of queries.
func (a *Answers) estimateAll(ctx context.Context, queries []Query) (sum ledger.Spending, err error) {
	for _, q := range queries {
		if ctx.Err() != nil {
			return sum, context.Cause(ctx)
		}
		ask, err := a.makeAsk(ctx, q)
		if err != nil {
			return sum, fmt.Errorf("item %d: %w", q.Slot, err)
		}
		need, err := a.Caller.Estimate(ask)
		if err != nil {
			return sum, err
		}
		sum = calls.Add(sum, need)
	}

	return sum, nil
}

// Functions returns the functions of the protocol, answered by a. Functions that are useless in the
// loop are left out of its prompt.
func (a *Answers) Functions() []repl.Tool {
	var hidden []string
	if a.Loop == nil {
		hidden = append(hidden, "rlm_query", "rlm_query_batched", "run_parallel_sub_calls")
	}
	tools := Functions(a, hidden...)
	if len(a.Agents) > 0 {
		for i := range tools {
			if tools[i].Name == "sub_agent_call" {
				tools[i].Doc = "asks one of the agents " + a.describeAgents()
			}
		}
	}

	return tools
}

func (a *Answers) describeAgents() string {
	var parts []string
	for _, name := range a.agentNames() {
		doc := a.Agents[name].Doc
		if _, configured := a.Agents[name]; !configured {
			doc = reasonerDoc
		}
		line := fmt.Sprintf("%q: %s", name, doc)
		parts = append(parts, strings.TrimSuffix(line, ": "))
	}
	return strings.Join(parts, "; ") + "."
}

var _ tiers.Host = (*repl.Tools)(nil)
