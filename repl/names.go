package repl

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/rlmhq/rlm/tiers"
)

// Query is one sub-call, as a snippet asked for it, whatever the dialect.
type Query struct {
	// Prompt is the task.
	Prompt tiers.Value
	// Context is what it is about, nil if the snippet gave none.
	Context tiers.Value
	// Schema is the contract that the answer must meet, nil for text. It is what
	// [schema.Parse] takes.
	Schema json.RawMessage
	// Model is the model's name, empty for the run's choice.
	Model string
	// Slot is the place in a fan-out, from 0.
	Slot int
	// Mode is the mode of ask_llm, for the record of the call.
	Mode string
}

// Answerer does what the protocol's functions ask for: a loop.
//
// An answer is JSON: a string for a query without a schema, else a value that
// meets it. The methods are called concurrently.
type Answerer interface {
	// Leaf asks a model once.
	Leaf(ctx context.Context, q Query) (json.RawMessage, error)
	// Sub gives the task to a loop of its own, one level deeper.
	Sub(ctx context.Context, q Query) (json.RawMessage, error)
	// Ask asks a helper with the prompt of a mode: "analysis", "deep_dive".
	Ask(ctx context.Context, q Query, mode string) (json.RawMessage, error)
	// Agent asks a registered agent.
	Agent(ctx context.Context, id string, q Query) (json.RawMessage, error)
	// Predict fills the output fields of a signature from inputs.
	Predict(ctx context.Context, p Prediction) (json.RawMessage, error)
	// Many answers leaf or sub queries at once, order kept. A failed slot has an
	// error; the error of Many itself means that none was begun.
	Many(ctx context.Context, queries []Query, sub bool) ([]Slot[json.RawMessage], error)
	// Foresee refuses queries which together would pass the budget, with what
	// they were going to cost.
	Foresee(ctx context.Context, queries []Query) error
	// Knows reports whether a model of that name may be asked.
	Knows(model string) bool
}

// Prediction is a call of predict.
type Prediction struct {
	// Signature is such as "question, passage -> answer: str, score: float".
	Signature string
	// Instructions say more, empty if the snippet gave none.
	Instructions string
	// Inputs are the input fields' values.
	Inputs map[string]tiers.Value
}

// functions are the names of the protocol that the host answers, with what the
// prompt says of them. An alias has no text.
var functions = []struct {
	name, signature, doc string
	call                 func(p protocol, ctx context.Context, call tiers.Call) (tiers.Value, error)
}{
	{"llm_query", "llm_query(prompt, model=None, schema=None)", "asks a language model once and returns its answer: a str, or a real Python value if schema is given. It sees the prompt only, so put the text it needs into it.", protocol.llmQuery},
	{"llm_query_batched", "llm_query_batched(prompts, model=None, schema=None)", "asks many prompts at the same time and returns a list in their order; much faster than a loop. A slot that failed is a string that begins with `Error: `.", protocol.llmBatch},
	{"llm_batch", "llm_batch(prompts, model=None, schema=None)", "", protocol.llmBatch},
	{"batch_llm_query", "batch_llm_query(prompts, model=None, schema=None)", "", protocol.llmBatch},
	{"llm_query_parallel", "llm_query_parallel(prompts, model=None, schema=None)", "", protocol.llmBatch},
	{"llm_query_map", "llm_query_map(prompts, model=None, schema=None)", "", protocol.llmBatch},
	{"rlm_query", "rlm_query(prompt, context=None, schema=None, model=None)", "gives a task to a sub-agent that has a REPL of its own with `context` in it. Use it for a part that needs several steps.", protocol.rlmQuery},
	{"rlm_query_batched", "rlm_query_batched(prompts, contexts=None, schema=None, model=None)", "the same for many tasks at once.", protocol.rlmBatch},
	{"run_parallel_sub_calls", `run_parallel_sub_calls([{"prompt": ..., "context": ..., "schema": ...}, ...])`, "many sub-agents at once, each with its own context and schema; a failed slot is a falsy error object.", protocol.parallel},
	{"recursive_llm", "recursive_llm(sub_query, sub_context)", "", protocol.rlmQuery},
	{"ask_llm", `ask_llm(question, context="", mode="analysis")`, "", protocol.askLLM},
	{"sub_agent_call", "sub_agent_call(prompt, agent_id, data=None)", "", protocol.agent},
	{"predict", `predict("question, passage -> answer: str, score: float", instructions=None, **inputs)`, "a typed model call by signature; the result has the output fields as attributes.", protocol.predict},
	{"map_llm", "map_llm(prompt, items, schema=None, model=None)", "one model call for each item, at once; returns the answers in order. Its number of calls and cost are checked before it starts.", protocol.mapLLM},
	{"filter_llm", "filter_llm(prompt, items, model=None)", "the items for which a model answers true.", protocol.filterLLM},
	{"reduce_llm", "reduce_llm(prompt, items, schema=None, model=None, fan_in=8)", "combines items into one answer, fan_in at a time, as a tree.", protocol.reduceLLM},
	{"tally", "tally(items, labels=None, prompt=None, model=None)", "exact counts: of the values in items, or of the label that a model gives each item. Never count by hand.", protocol.tally},
}

// Names are the functions of the protocol that the host answers.
func Names() []string {
	names := make([]string, len(functions))
	for i, f := range functions {
		names[i] = f.name
	}
	return names
}

// Protocol returns the protocol's functions as tools, answered by a. Those named
// in hidden are left out of prompts, not of the session.
func Protocol(a Answerer, hidden ...string) []Tool {
	p := protocol{a}
	tools := make([]Tool, len(functions))
	for i, f := range functions {
		doc := f.doc
		if slices.Contains(hidden, f.name) {
			doc = ""
		}
		tools[i] = Tool{Name: f.name, Signature: f.signature, Doc: doc, raw: func(ctx context.Context, call tiers.Call) (tiers.Value, error) {
			return f.call(p, ctx, call)
		}}
	}
	return tools
}

// Withheld is a function of the protocol that a loop does not have: it raises, with
// the reason.
func Withheld(name, reason string) Tool {
	return Tool{Name: name, raw: func(context.Context, tiers.Call) (tiers.Value, error) {
		return nil, fmt.Errorf("%s: %s", name, reason)
	}}
}

// protocol turns host calls into queries.
type protocol struct{ Answerer }

// synonyms are the other names of parameters, of libraries that models know.
var synonyms = map[string]string{
	"query": "prompt", "question": "prompt", "sub_query": "prompt", "task": "prompt",
	"sub_context": "context", "data": "context", "text": "context", "sub_contexts": "contexts",
	"output_type": "schema", "output_schema": "schema", "response_format": "schema", "response_model": "schema",
	"queries": "prompts", "calls": "prompts",
}

// arguments are those of a call by their names, null left out.
type arguments struct {
	call   tiers.Call
	values map[string]tiers.Value
}

// accept names positional arguments and translates synonyms. None is the same as
// no argument.
func accept(call tiers.Call, params ...string) (arguments, error) {
	if len(call.Args) > len(params) {
		return arguments{}, fmt.Errorf("%s takes %d arguments (%s), %d were given", call.Function, len(params), strings.Join(params, ", "), len(call.Args))
	}
	named := make(map[string]tiers.Value, len(call.Named))
	for name, value := range call.Named {
		if other, ok := synonyms[name]; ok && !slices.Contains(params, name) {
			name = other
		}
		if string(value) == "null" {
			continue
		}
		if _, twice := named[name]; twice {
			return arguments{}, fmt.Errorf("%s got %q twice", call.Function, name)
		}
		named[name] = value
	}
	for i, value := range call.Args {
		if string(value) == "null" {
			continue
		}
		if _, twice := named[params[i]]; twice {
			return arguments{}, fmt.Errorf("%s got %q twice", call.Function, params[i])
		}
		named[params[i]] = value
	}
	values, err := Bind(tiers.Call{Function: call.Function, Named: named}, params)
	return arguments{call, values}, err
}

// text is a parameter that is a string.
func (a arguments) text(name string) (string, error) {
	value, ok := a.values[name]
	if !ok {
		return "", nil
	}
	var s string
	if err := json.Unmarshal(value, &s); err != nil {
		return "", fmt.Errorf("%s: %s must be a str, not %s", a.call.Function, name, clip(value))
	}
	return s, nil
}

// list is a parameter that is a list.
func (a arguments) list(name string) ([]tiers.Value, error) {
	var values []tiers.Value
	if value, ok := a.values[name]; ok && json.Unmarshal(value, &values) != nil {
		return nil, fmt.Errorf("%s: %s must be a list, not %s", a.call.Function, name, clip(value))
	}
	return values, nil
}

// maxList bounds the items of one call.
const maxList = 100_000

func clip(value []byte) string {
	return Truncate(strings.ToValidUTF8(string(value), "\uFFFD"), 80)
}

// named reports whether a value is the name of a model that may be asked.
func (p protocol) named(value tiers.Value) bool {
	var name string
	return len(value) < 200 && json.Unmarshal(value, &name) == nil && name != "" && p.Knows(name)
}

// either takes the positional argument that is a model in one dialect and a
// context in another: what names no model is the context.
func (p protocol) either(call tiers.Call, at int) tiers.Call {
	if len(call.Args) <= at || p.named(call.Args[at]) {
		return call
	}
	value := call.Args[at]
	call.Args = slices.Clone(call.Args)
	call.Args[at] = tiers.Value("null")
	if string(value) != "null" {
		call.Named = with(call.Named, "context", value)
	}
	return call
}

// model takes a model from a place where the neighbour's dialect has a schema.
func (p protocol) model(call tiers.Call, at int) tiers.Call {
	if len(call.Args) > at && p.named(call.Args[at]) {
		value := call.Args[at]
		call.Args = slices.Clone(call.Args)
		call.Args[at] = tiers.Value("null")
		call.Named = with(call.Named, "model", value)
	}
	return call
}

// with returns m with a member more. One that is there already is left: the call
// is then refused for having it twice, under its own name.
func with(m map[string]tiers.Value, name string, value tiers.Value) map[string]tiers.Value {
	out := make(map[string]tiers.Value, len(m)+1)
	for k, v := range m {
		out[k] = v
	}
	if _, taken := out[name]; !taken {
		out[name] = value
	}
	return out
}

// query makes a query of named arguments.
func (p protocol) query(a arguments) (Query, error) {
	model, err := a.text("model")
	if err != nil {
		return Query{}, err
	}
	if model != "" && !p.Knows(model) {
		return Query{}, fmt.Errorf("%s: there is no model %q here; leave model out", a.call.Function, Truncate(model, 80))
	}
	q := Query{Prompt: a.values["prompt"], Context: a.values["context"], Schema: a.values["schema"], Model: model}
	if q.Prompt == nil {
		return Query{}, fmt.Errorf("%s: the prompt is missing", a.call.Function)
	}
	return q, nil
}

func (p protocol) one(call tiers.Call, params ...string) (Query, error) {
	a, err := accept(call, params...)
	if err != nil {
		return Query{}, err
	}
	return p.query(a)
}

func (p protocol) llmQuery(ctx context.Context, call tiers.Call) (tiers.Value, error) {
	q, err := p.one(p.model(p.either(call, 1), 2), "prompt", "model", "schema", "context")
	if err != nil {
		return nil, err
	}
	return p.Leaf(ctx, q)
}

func (p protocol) rlmQuery(ctx context.Context, call tiers.Call) (tiers.Value, error) {
	q, err := p.one(p.model(p.model(call, 1), 2), "prompt", "context", "schema", "model")
	if err != nil {
		return nil, err
	}
	return p.Sub(ctx, q)
}

func (p protocol) askLLM(ctx context.Context, call tiers.Call) (tiers.Value, error) {
	a, err := accept(call, "prompt", "context", "mode", "schema", "model")
	if err != nil {
		return nil, err
	}
	mode, err := a.text("mode")
	if err != nil {
		return nil, err
	}
	q, err := p.query(a)
	if err != nil {
		return nil, err
	}
	if mode == "" {
		mode = "analysis"
	}
	q.Mode = mode
	return p.Ask(ctx, q, mode)
}

func (p protocol) agent(ctx context.Context, call tiers.Call) (tiers.Value, error) {
	a, err := accept(call, "prompt", "agent_id", "data", "schema")
	if err != nil {
		return nil, err
	}
	id, err := a.text("agent_id")
	if err != nil {
		return nil, err
	}
	a.values["context"] = a.values["data"]
	q, err := p.query(a)
	if err != nil {
		return nil, err
	}
	return p.Agent(ctx, id, q)
}

func (p protocol) predict(ctx context.Context, call tiers.Call) (tiers.Value, error) {
	var signature, instructions string
	inputs := make(map[string]tiers.Value, len(call.Named))
	for name, value := range call.Named {
		inputs[name] = value
	}
	places := []struct {
		name string
		into *string
	}{{"signature", &signature}, {"instructions", &instructions}}
	if len(call.Args) > len(places) {
		return nil, errors.New("predict takes the signature and the instructions by place; give the inputs by name")
	}
	for i, place := range places {
		value, ok := inputs[place.name]
		delete(inputs, place.name)
		if i < len(call.Args) {
			value, ok = call.Args[i], true
		}
		if ok && json.Unmarshal(value, place.into) != nil {
			return nil, fmt.Errorf("predict: %s must be a str, not %s", place.name, clip(value))
		}
	}
	if signature == "" {
		return nil, errors.New(`predict: the signature is missing, such as "question -> answer: str"`)
	}
	return p.Predict(ctx, Prediction{signature, instructions, inputs})
}
