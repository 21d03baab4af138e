// Package protocol is the table of the names that snippets find in every
// session. The host's answers, the guest's functions, the prompts and the list
// of reserved names are all made from it.
package protocol

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"
)

// Arguments says how the guest prepares the arguments of a function before
// they leave the sandbox.
type Arguments string

// The kinds of arguments.
const (
	// One: a prompt, with a type that the answer becomes an instance of.
	One Arguments = "one"
	// Many: a list of prompts, whose answers come back in its order.
	Many Arguments = "many"
	// Fields: a signature, and the values of its input fields.
	Fields Arguments = "fields"
	// Combined: the guest has a Python function of that name, which calls the
	// host itself.
	Combined Arguments = "combined"
)

// Function is a function that the host answers.
type Function struct {
	Name string
	// Signature is how a snippet calls it.
	Signature string
	// Doc is what prompts and help() say of it, empty for an alias.
	Doc string
	// AliasOf is the function that this is another name of, empty if it is none.
	AliasOf   string
	Arguments Arguments
}

var functions = []Function{
	{
		Name:      "llm_query",
		Signature: "llm_query(prompt, model=None, schema=None)",
		Arguments: One,
		Doc: "asks a language model once and returns its answer: a str, or a real Python value " +
			"if schema is given. " +
			"It sees the prompt only, so put the text it needs into it.",
	},
	{
		Name:      "llm_query_batched",
		Signature: "llm_query_batched(prompts, model=None, schema=None)",
		Arguments: Many,
		Doc: "asks many prompts at the same time and returns a list in their order; much faster " +
			"than a loop. " +
			"A slot that failed is a string that begins with `Error: `.",
	},
	alias("llm_batch", "llm_query_batched", "(prompts, model=None, schema=None)", Many),
	alias("batch_llm_query", "llm_query_batched", "(prompts, model=None, schema=None)", Many),
	alias("llm_query_parallel", "llm_query_batched", "(prompts, model=None, schema=None)", Many),
	alias("llm_query_map", "llm_query_batched", "(prompts, model=None, schema=None)", Many),
	{
		Name:      "rlm_query",
		Signature: "rlm_query(prompt, context=None, schema=None, model=None)",
		Arguments: One,
		Doc: "gives a task to a sub-agent that has a REPL of its own with `context` in it. " +
			"Use it for a part that needs several steps.",
	},
	{
		Name:      "rlm_query_batched",
		Signature: "rlm_query_batched(prompts, contexts=None, schema=None, model=None)",
		Doc:       "the same for many tasks at once.", Arguments: Many,
	},
	{
		Name:      "run_parallel_sub_calls",
		Signature: `run_parallel_sub_calls([{"prompt": ..., "context": ..., "schema": ...}, ...])`,
		Arguments: Many,
		Doc: "many sub-agents at once, each with its own context and schema; a failed slot is a " +
			"falsy error object.",
	},
	alias("recursive_llm", "rlm_query", "(sub_query, sub_context)", One),
	{Name: "ask_llm", Signature: `ask_llm(question, context="", mode="analysis")`, Arguments: One},
	{
		Name:      "sub_agent_call",
		Signature: "sub_agent_call(prompt, agent_id, data=None)",
		Arguments: One,
	},
	{
		Name:      "predict",
		Arguments: Fields,
		Signature: `predict("question, passage -> answer: str, score: float", instructions=None, **inputs)`,
		Doc: "a typed model call by signature; the result has the output fields as " +
			"attributes.",
	},
	{
		Name:      "map_llm",
		Signature: "map_llm(prompt, items, schema=None, model=None)",
		Arguments: Combined,
		Doc: "one model call for each item, at once; returns the answers in order. " +
			"Its number of calls and cost are checked before it starts.",
	},
	{
		Name: "filter_llm", Signature: "filter_llm(prompt, items, model=None)", Arguments: Combined,
		Doc: "the items for which a model answers true.",
	},
	{
		Name:      "reduce_llm",
		Signature: "reduce_llm(prompt, items, schema=None, model=None, fan_in=8)",
		Doc:       "combines items into one answer, fan_in at a time, as a tree.",
		Arguments: Combined,
	},
	{
		Name:      "tally",
		Signature: "tally(items, labels=None, prompt=None, model=None)",
		Arguments: Combined,
		Doc: "exact counts: of the values in items, or of the label that a model gives each item. " +
			"Never count by hand.",
	},
}

func alias(name, of, parameters string, arguments Arguments) Function {
	return Function{Name: name, Signature: name + parameters, AliasOf: of, Arguments: arguments}
}

// guestNames are the names that the guest itself provides.
const guestNames = "FINAL FINAL_VAR SUBMIT SHOW_VARS parallel_map answer history"

// pythonKeywords are the reserved words of Python.
const pythonKeywords = "False None True and as assert async await break class continue def del " +
	"elif else except " +
	"finally for from global if import in is lambda nonlocal not or pass raise return try while " +
	"with yield"

var byName = func() map[string]Function {
	m := make(map[string]Function, len(functions))
	for _, f := range functions {
		m[f.Name] = f
	}
	return m
}()

// Functions returns the functions in the order in which prompts list them.
func Functions() []Function { return append([]Function(nil), functions...) }

// Lookup returns the function of that name.
func Lookup(name string) (f Function, ok bool) {
	f, ok = byName[name]
	return f, ok
}

var (
	identifier = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]{0,99}$`)
	taken      = regexp.MustCompile(
		`^(` + strings.ReplaceAll(pythonKeywords+" "+guestNames, " ", "|") + `|context(_[0-9]+)?)$`)
)

// CheckName returns an error if an embedder's function cannot have that name.
// The functions of this package can be offered, and so can be named.
func CheckName(name string) error {
	switch {
	case !identifier.MatchString(name) || strings.HasPrefix(name, "__"):
		return fmt.Errorf(
			"cannot offer host function %q: its name is not a plain Python identifier", name,
		)
	case taken.MatchString(name):
		return fmt.Errorf("cannot offer host function %q: its name is reserved", name)
	}

	return nil
}

// ErrNoModel answers a model call in a session without a model.
var ErrNoModel = errors.New(
	"no model configured: this session runs code only, model calls are not available",
)

// Python returns the source of the guest's module protocol: the table as a
// dictionary, name to docstring and kind of arguments.
func Python() string {
	type entry [2]string
	table := make(map[string]entry, len(functions))
	for _, f := range functions {
		doc := f.Signature
		switch {
		case f.AliasOf != "":
			doc = "Alias of " + f.AliasOf + "."
		case f.Doc != "":
			doc += ": " + f.Doc
		}

		table[f.Name] = entry{doc, string(f.Arguments)}
	}

	// JSON of strings and lists is also Python.
	data, err := json.Marshal(table)
	if err != nil {
		panic(err) // strings only
	}
	return "FUNCTIONS = " + string(data) + "\n"
}

// Stash is the host function by which a session's own snippets fetch a value
// that the host keeps for them. No tool may take its name.
const Stash = "_rlm_kept"
