// Package protocol is the table of the names available to snippets in every session. The host's
// answers, the guest's functions, the prompts and the list of reserved names are all derived from
// it.
package protocol

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/rlmhq/rlm/internal/text/lazyregexp"
	"github.com/rlmhq/rlm/tiers"
)

// Arguments is the way in which the guest prepares the arguments of a function before they leave
// the sandbox.
type Arguments string

// The kinds of arguments.
const (
	// One means a prompt, and a type to which the answer is converted.
	One Arguments = "one"
	// Many means a list of prompts. The answers have the same order.
	Many Arguments = "many"
	// Fields means a signature, and the values of its input fields.
	Fields Arguments = "fields"
	// Combined means that the guest has a Python function of that name, which calls the host
	// itself.
	Combined Arguments = "combined"
)

// Function is a function answered by the host.
type Function struct {
	Name string
	// Signature shows how a snippet calls it.
	Signature string
	// Doc is the description in prompts and help(); it is empty for an alias.
	Doc string
	// AliasOf is the function for which this one is another name, or empty.
	AliasOf   string
	Arguments Arguments
	// IsCommon means that the name is an everyday word: a snippet may rebind it, and the new value
	// then persists.
	IsCommon bool
}

var functions = []Function{
	{
		Name:      "llm_query",
		Signature: "llm_query(prompt, model=None, schema=None, images=None)",
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
		Doc: "many sub-agents at once, each with its own context and schema; a slot that failed begins " +
			"with `Error: `.",
	},
	alias("recursive_llm", "rlm_query", "(sub_query, sub_context)", One),
	alias("recursive_reasoner_tool", "rlm_query", `(prompt, context_data="")`, One),
	{Name: "ask_llm", Signature: `ask_llm(question, context="", mode="analysis")`, Arguments: One},
	{
		Name:      "sub_agent_call",
		Signature: "sub_agent_call(prompt, agent_id, data=None)",
		Arguments: One,
	},
	{
		Name:      "predict",
		Arguments: Fields,
		IsCommon:  true,
		Signature: `predict("question, passage -> answer: str, score: float", instructions=None, **inputs)`,
		Doc: "a typed model call by signature; the result has the output fields as " +
			"attributes.",
	},
	{
		Name:      "map_llm",
		Signature: "map_llm(prompt, items, schema=None, model=None, cover=False)",
		Arguments: Combined,
		IsCommon:  true,
		Doc: "one model call for each item, at once; returns the answers in order. " +
			"Its number of calls and cost are checked before it starts. " +
			"To label or count many records exactly, pass all of them with cover=True and a schema: it asks " +
			"for several records in one call and repeats what fails; `.counts` counts the values, " +
			"`.missing` lists the records without one.",
	},
	{
		Name: "filter_llm", Signature: "filter_llm(prompt, items, model=None)",
		Arguments: Combined, IsCommon: true,
		Doc: "the items for which a model answers true.",
	},
	{
		Name:      "reduce_llm",
		Signature: "reduce_llm(prompt, items, schema=None, model=None, fan_in=8)",
		Doc:       "combines items into one answer, fan_in at a time, as a tree.",
		Arguments: Combined,
		IsCommon:  true,
	},
	{
		Name:      "tally",
		Signature: "tally(items, labels=None, prompt=None, model=None)",
		Arguments: Combined,
		IsCommon:  true,
		Doc: "exact counts: of the values in items, or of the label that a model gives each item. " +
			"Never count by hand.",
	},
}

func alias(name, of, parameters string, arguments Arguments) Function {
	return Function{Name: name, Signature: name + parameters, AliasOf: of, Arguments: arguments}
}

// The names that the guest itself provides: those that it restores after each snippet, and everyday
// words, which a snippet may rebind.
const (
	fixedNames  = "FINAL FINAL_VAR SUBMIT SHOW_VARS"
	commonNames = "parallel_map answer history"
)

// pythonKeywords lists the reserved words of Python.
const pythonKeywords = "False None True and as assert async await break class continue def del " +
	"elif else except " +
	"finally for from global if import in is lambda nonlocal not or pass raise return try while " +
	"with yield"

// pythonSpecial lists the special names that Python itself, or the runtime, reads in a module or in
// its builtins.
const pythonSpecial = "__all__ __annotate__ __annotations__ __annotations_cache__ __build_class__ " +
	"__builtins__ __cached__ __class__ __classcell__ __classdict__ __conditional_annotations__ " +
	"__debug__ __dict__ __dir__ __doc__ __file__ __getattr__ __import__ __loader__ __main__ " +
	"__module__ __name__ __package__ __path__ __qualname__ __slotnames__ __spec__ __static_attributes__ " +
	"__type_params__ __warningregistry__"

var byName = func() map[string]Function {
	m := make(map[string]Function, len(functions))
	for _, f := range functions {
		m[f.Name] = f
	}
	return m
}()

// Functions returns the functions in the order in which prompts list them.
func Functions() []Function { return append([]Function(nil), functions...) }

// Lookup returns the function with a name.
func Lookup(name string) (f Function, ok bool) {
	f, ok = byName[name]
	return f, ok
}

var (
	identifier = lazyregexp.New(`^[A-Za-z_][A-Za-z0-9_]{0,99}$`)
	taken      = lazyregexp.New(
		`^(` + strings.ReplaceAll(pythonKeywords+" "+fixedNames+" "+commonNames, " ", "|") + `|context(_[0-9]+)?)$`)
)

// Fixed returns the names that the guest provides and restores after each snippet, except those of
// the session's functions and contexts.
func Fixed() []string { return strings.Fields(fixedNames) }

// IsCommon reports whether a snippet may rebind the name of a function.
func IsCommon(name string) bool { return name == SQL || byName[name].IsCommon }

// CheckName returns an error if an embedder's function cannot have a name. Functions of this
// package may be offered under their own names.
func CheckName(name string) error {
	switch {
	case !identifier.MatchString(name):
		return fmt.Errorf("cannot offer host function %q: its name is not a plain Python identifier", name)
	case strings.HasPrefix(name, "__") && !isSpecial(name):
		return fmt.Errorf("cannot offer host function %q: a name that begins with two underscores "+
			"must end with two, as Python changes any other in a class", name)
	case strings.HasPrefix(name, "__rlm"), slices.Contains(strings.Fields(pythonSpecial), name):
		return fmt.Errorf("cannot offer host function %q: its name has a meaning in Python or here", name)
	case taken.MatchString(name):
		return fmt.Errorf("cannot offer host function %q: its name is reserved", name)
	}

	return nil
}

// isSpecial reports whether a name has the form of Python's special names: __x__.
func isSpecial(name string) bool {
	inner, begins := strings.CutPrefix(name, "__")
	inner, ends := strings.CutSuffix(inner, "__")
	return begins && ends && strings.Trim(inner, "_") != ""
}

// CheckOffer returns an error if a host cannot offer a function or variable to snippets. A variable
// may be named after an everyday word, which snippets may rebind.
func CheckOffer(f tiers.Function) error {
	isVariable := f.Value != nil
	if isVariable && (slices.Contains(strings.Fields(commonNames), f.Name) || IsCommon(f.Name)) {
		return nil
	}
	return CheckName(f.Name)
}

// Add returns the functions and variables of a session after adding more. A new entry replaces an
// earlier one with the same name.
func Add(functions, more []tiers.Function) []tiers.Function {
	all := slices.Clone(functions)
	places := make(map[string]int, len(all)+len(more))
	for i, f := range all {
		places[f.Name] = i
	}

	for _, f := range more {
		if i, ok := places[f.Name]; ok {
			all[i] = f
			continue
		}
		places[f.Name] = len(all)
		all = append(all, f)
	}
	return all
}

// ErrNoModel is the answer to a model call in a session without a model.
var ErrNoModel = errors.New(
	"no model configured: this session runs code only; rlm ask runs it with a model",
)

// Python returns the source of the guest's module protocol: the table as a dictionary from name to
// docstring and kind of arguments, the list of common names, [FindCode] and [Lack].
func Python() string {
	type entry [2]string
	table := make(map[string]entry, len(functions))
	common := []string{SQL}
	for _, f := range functions {
		doc := f.Signature
		switch {
		case f.AliasOf != "":
			doc = "Alias of " + f.AliasOf + "."
		case f.Doc != "":
			doc += ": " + f.Doc
		}

		table[f.Name] = entry{doc, string(f.Arguments)}
		if f.IsCommon {
			common = append(common, f.Name)
		}
	}

	return "FUNCTIONS = " + toPython(table) + "\nCOMMON = " + toPython(common) +
		"\nFIND_CODE = " + toPython(FindCode) + "\nLACK = " + toPython(Lack) + "\n"
}

// toPython returns JSON, which for strings and lists of strings is also Python.
func toPython(value any) string {
	data, err := json.Marshal(value)
	if err != nil {
		panic(err) // strings only
	}
	return string(data)
}

// FindCode is the guest's function that distinguishes code from prose, for a session's own
// snippets. It takes a list of strings and returns the index of the first that is code, or -1.
const FindCode = "_rlm_find_code"

// Stash is the host function with which a session's own snippets fetch a value that the host keeps
// for them. No tool may have this name.
const Stash = "_rlm_kept"

// SQL is the host function with which snippets query the inputs that are tables. Its name is an
// everyday word.
const SQL = "sql"

// Lack is the host function with which the guest reports that a snippet continues without some
// records of map_llm(cover=True). The arguments are a key of the result, the number of records
// without a value, and the number of all records. No tool may have this name.
const Lack = "_rlm_lack"
