package answers

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/rlmhq/rlm/internal/snippet/protocol"
	"github.com/rlmhq/rlm/internal/text/texts"
	"github.com/rlmhq/rlm/repl"
	"github.com/rlmhq/rlm/repl/internal/fanout"
	"github.com/rlmhq/rlm/repl/llm"
	"github.com/rlmhq/rlm/tiers"
)

// Query is one sub-call requested by a snippet, in any dialect.
type Query struct {
	// Prompt is the task.
	Prompt tiers.Value
	// Context is the data that the task is about, or nil if the snippet gave none.
	Context tiers.Value
	// Images are pictures that accompany the prompt.
	Images []llm.Image
	// Schema is the contract that the answer must meet, in a form that [schema.Parse] accepts;
	// nil for text.
	Schema json.RawMessage
	// Model is the model's name; empty leaves the choice to the run.
	Model string
	// Slot is the index in a fan-out, from 0.
	Slot int
	// Mode is the mode of ask_llm, for the record of the call.
	Mode string
	// Covered marks one of several attempts for the same records, whose combined result reports
	// failures.
	Covered bool
	// Agent is the name of the agent that answers, empty for none.
	Agent string
}

// Answerer implements the functions of the protocol. Each loop has one.
//
// An answer is JSON: a string for a query without a schema, else a value that
// meets it. The methods are called concurrently.
type Answerer interface {
	// Leaf asks a model once.
	Leaf(ctx context.Context, q Query) (json.RawMessage, error)
	// Sub gives the task to its own loop, one level deeper.
	Sub(ctx context.Context, q Query) (json.RawMessage, error)
	// Ask asks a helper with the prompt of a mode: "analysis", "deep_dive".
	Ask(ctx context.Context, q Query, mode string) (json.RawMessage, error)
	// Agent asks a registered agent.
	Agent(ctx context.Context, id string, q Query) (json.RawMessage, error)
	// Predict fills the output fields of a signature from inputs.
	Predict(ctx context.Context, p Prediction) (json.RawMessage, error)
	// Many answers leaf or sub queries concurrently, in order. A failed slot holds an error; an
	// error of Many itself means that no query was started.
	Many(ctx context.Context, queries []Query, sub bool) ([]fanout.Slot[json.RawMessage], error)
	// Foresee rejects queries that together would exceed the budget; the error names their
	// expected cost.
	Foresee(ctx context.Context, queries []Query) error
	// Knows reports whether a model with that name may be asked.
	Knows(model string) bool
	// Lack reports that code continues without answers for some of its records. The same code may
	// report again under the same key.
	Lack(key string, missing, records int64)
}

// Prediction is a call of predict.
type Prediction struct {
	// Signature is, for example, "question, passage -> answer: str, score: float".
	Signature string
	// Instructions are further instructions, or empty if the snippet gave none.
	Instructions string
	// Inputs are the input fields' values.
	Inputs map[string]tiers.Value
}

// answers maps each function of the protocol to its implementation on the host.
var answers = map[string]func(p dialects, ctx context.Context, call tiers.Call) (tiers.Value, error){
	"llm_query":               dialects.llmQuery,
	"llm_query_batched":       dialects.llmBatch,
	"llm_batch":               dialects.llmBatch,
	"batch_llm_query":         dialects.llmBatch,
	"llm_query_parallel":      dialects.llmBatch,
	"llm_query_map":           dialects.llmBatch,
	"rlm_query":               dialects.rlmQuery,
	"rlm_query_batched":       dialects.rlmBatch,
	"run_parallel_sub_calls":  dialects.parallel,
	"recursive_llm":           dialects.rlmQuery,
	"recursive_reasoner_tool": dialects.rlmQuery,
	"ask_llm":                 dialects.askLLM,
	"sub_agent_call":          dialects.agent,
	"predict":                 dialects.predict,
	"map_llm":                 dialects.mapLLM,
	"filter_llm":              dialects.filterLLM,
	"reduce_llm":              dialects.reduceLLM,
	"tally":                   dialects.tally,
}

// Functions returns the protocol's functions as tools, answered by a. The session also has those
// named in hidden, but prompts do not list them.
func Functions(a Answerer, hidden ...string) []repl.Tool {
	p := dialects{a}
	var tools []repl.Tool
	for _, f := range protocol.Functions() {
		doc := f.Doc
		if slices.Contains(hidden, f.Name) {
			doc = ""
		}

		answer := answers[f.Name]
		tools = append(tools, repl.Tool{
			Name:      f.Name,
			Signature: f.Signature,
			Doc:       doc,
			Raw:       func(ctx context.Context, call tiers.Call) (tiers.Value, error) { return answer(p, ctx, call) },
		})
	}

	return append(tools, repl.Tool{Name: protocol.Lack, Raw: p.lack})
}

// Withhold returns, for a function of the protocol that the loop does not offer, one that raises
// with the reason.
func Withhold(name, reason string) repl.Tool {
	return repl.Tool{Name: name, Raw: func(context.Context, tiers.Call) (tiers.Value, error) {
		return nil, fmt.Errorf("%s: %s", name, reason)
	}}
}

// dialects turns host calls into queries.
type dialects struct{ Answerer }

// synonyms maps alternative names of parameters, from well-known libraries, to ours.
var synonyms = map[string]string{
	"query":           "prompt",
	"question":        "prompt",
	"sub_query":       "prompt",
	"task":            "prompt",
	"sub_context":     "context",
	"context_data":    "context",
	"data":            "context",
	"image":           "images",
	"text":            "context",
	"sub_contexts":    "contexts",
	"output_type":     "schema",
	"output_schema":   "schema",
	"response_format": "schema",
	"response_model":  "schema",
	"queries":         "prompts",
	"calls":           "prompts",
}

// arguments are a call's arguments by name, without null.
type arguments struct {
	call   tiers.Call
	values map[string]tiers.Value
}

// accept names positional arguments and translates synonyms. None is treated as a missing argument.
func accept(call tiers.Call, params ...string) (arguments, error) {
	if len(call.Args) > len(params) {
		return arguments{}, fmt.Errorf(
			"%s takes %d arguments (%s), %d were given", call.Function, len(params),
			strings.Join(params, ", "), len(call.Args),
		)
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

	values, err := protocol.Bind(tiers.Call{Function: call.Function, Named: named}, params)
	return arguments{call, values}, err
}

// text returns a parameter that is a string.
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

// list returns a parameter that is a list.
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
	return texts.Truncate(strings.ToValidUTF8(string(value), "\uFFFD"), 80)
}

// named reports whether a value is the name of a model that may be asked.
func (p dialects) named(value tiers.Value) bool {
	var name string
	return len(value) < 200 && json.Unmarshal(value, &name) == nil && name != "" && p.Knows(name)
}

// either resolves the positional argument that is a model in one dialect and a context in another:
// if the value is not the name of a model, it is the context.
func (p dialects) either(call tiers.Call, at int) tiers.Call {
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

// model accepts a model in the position in which another dialect has a schema.
func (p dialects) model(call tiers.Call, at int) tiers.Call {
	if len(call.Args) > at && p.named(call.Args[at]) {
		value := call.Args[at]
		call.Args = slices.Clone(call.Args)
		call.Args[at] = tiers.Value("null")
		call.Named = with(call.Named, "model", value)
	}
	return call
}

// with returns m with one more member. It keeps a member that is already present, so that the call
// is rejected for the duplicate, which the error names.
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

// query makes a query from named arguments.
func (p dialects) query(a arguments) (Query, error) {
	model, err := a.text("model")
	if err != nil {
		return Query{}, err
	}
	if model != "" && !p.Knows(model) {
		return Query{}, fmt.Errorf(
			"%s: unknown model %q; omit the argument model", a.call.Function,
			texts.Truncate(model, 80),
		)
	}

	q := Query{
		Prompt:  a.values["prompt"],
		Context: a.values["context"],
		Schema:  a.values["schema"],
		Model:   model,
	}

	if q.Prompt == nil {
		return Query{}, fmt.Errorf("%s: the prompt is missing", a.call.Function)
	}
	if q.Images, err = readImages(a.values["images"]); err != nil {
		return Query{}, fmt.Errorf("%s: %w", a.call.Function, err)
	}
	return q, nil
}

func (p dialects) one(call tiers.Call, params ...string) (Query, error) {
	a, err := accept(call, params...)
	if err != nil {
		return Query{}, err
	}
	return p.query(a)
}

func (p dialects) llmQuery(ctx context.Context, call tiers.Call) (tiers.Value, error) {
	q, err := p.one(p.model(p.either(call, 1), 2), "prompt", "model", "schema", "context", "images")
	if err != nil {
		return nil, err
	}
	return p.Leaf(ctx, q)
}

func (p dialects) rlmQuery(ctx context.Context, call tiers.Call) (tiers.Value, error) {
	q, err := p.one(p.model(p.model(call, 1), 2), "prompt", "context", "schema", "model")
	if err != nil {
		return nil, err
	}
	return p.Sub(ctx, q)
}

func (p dialects) askLLM(ctx context.Context, call tiers.Call) (tiers.Value, error) {
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

func (p dialects) agent(ctx context.Context, call tiers.Call) (tiers.Value, error) {
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

func (p dialects) predict(ctx context.Context, call tiers.Call) (tiers.Value, error) {
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
		return nil, errors.New(
			"predict takes at most two positional arguments, the signature and the instructions: " +
				"pass the inputs by name",
		)
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
		return nil, errors.New(
			`predict: the signature is missing, such as "question -> answer: str"`,
		)
	}
	return p.Predict(ctx, Prediction{signature, instructions, inputs})
}
