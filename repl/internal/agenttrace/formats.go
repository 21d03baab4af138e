package agenttrace

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/rlmhq/rlm/internal/text/texts"
)

// formatAuto detects the form of a trace by its members.
const formatAuto = "auto"

// The forms that can also be read from plain text.
const (
	formatAgent     = "agent"
	formatReasoning = "reasoning"
)

// form is a format of a trace.
type form struct {
	name   string
	source string // the program that writes the form, and a description, for users
	// is reports whether JSON has this form. The first matching form wins.
	is func(root any) bool
	// split returns the traces in a root. Nil means that the root is one trace.
	split func(root located) ([]located, error)
	read  func(t *talk, root located) error
}

// forms are all forms, in order of recognition: the more specific ones come first.
var forms = []form{
	{
		name: "claude-code", is: isClaudeCode, read: readClaudeCode,
		source: "JSON Lines of a session of Claude Code, or of its SDK",
	},
	{
		name: "openclaw", is: isOpenClaw, read: readOpenClaw,
		source: "JSON Lines of a session of OpenClaw or pi",
	},
	{
		name: "codex", is: isCodex, read: readCodex,
		source: "JSON Lines of a session of Codex",
	},
	{
		name: "rlm", is: isRecord, split: splitRecord, read: readRecord,
		source: "a folder that `--trace` of this program wrote, or its `trajectory.jsonl`",
	},
	{
		name: "otlp", is: isOTLP, split: splitOTLP, read: readSpans,
		source: "OTLP JSON, with GenAI, OpenInference or OpenLLMetry attributes",
	},
	{
		name: "langsmith", is: isLangSmith, split: splitLangSmith, read: readSpans,
		source: "runs of LangSmith, with `child_runs` or as a list",
	},
	{
		name: "langfuse", is: isLangfuse, split: splitLangfuse, read: readSpans,
		source: "a trace of Langfuse with its `observations`, or a list of them",
	},
	{
		name: "agents-spans", is: isAgentsSpans, split: splitAgentsSpans, read: readSpans,
		source: "exported spans of OpenAI's Agents SDK",
	},
	{
		name: "atif", is: isATIF, read: readATIF,
		source: "a trajectory in Harbor's Agent Trajectory Interchange Format",
	},
	{
		name: "swe-agent", is: isSWEAgent, read: readSWEAgent,
		source: "a `.traj` file of SWE-agent",
	},
	{
		name: "mini-swe-agent", is: isMiniSWEAgent, read: readMiniSWEAgent,
		source: "a `.traj.json` file of mini-swe-agent",
	},
	{
		name: "tau-v1", is: isTauV1, read: readTauV1,
		source: "a result of tau-bench 1: `traj`, `reward`, `info`",
	},
	{
		name: "tau", is: isTau, split: splitTau, read: readTau,
		source: "messages of a simulation of tau-bench 2, the simulation, or `simulations`",
	},
	{
		name: "browser-use", is: isBrowserUse, read: readBrowserUse,
		source: "browser-use's `AgentHistoryList`, or its list `history`",
	},
	{
		name: "langchain", is: isLangChain, read: readLangChain,
		source: "LangChain's `intermediate_steps`: pairs of action and observation",
	},
	{
		name: "langgraph", is: isLangGraph, read: readLangGraph,
		source: "a state, a checkpoint or the updates of LangGraph",
	},
	{
		name: "langchain-messages", is: isLangChainMessages, read: readExchange,
		source: "messages of LangChain, plain or serialized",
	},
	{
		name: "gemini-cli", is: isGeminiCLI, read: readExchange,
		source: "a session of Gemini CLI",
	},
	{
		name: "gemini", is: isGemini, read: readExchange,
		source: "`contents` of Gemini with `parts`, a response with `candidates`, or both",
	},
	{
		name: "genai", is: isGenAI, read: readExchange,
		source: "messages with `parts` as in OpenTelemetry's GenAI conventions",
	},
	{
		name: "sharegpt", is: isShareGPT, read: readExchange,
		source: "`conversations` of ShareGPT: turns with `from` and `value`",
	},
	{
		name: "responses", is: isResponses, read: readExchange,
		source: "items of OpenAI's Responses or Agents SDK, a request, a response, or both",
	},
	{
		name: "anthropic", is: isAnthropic, read: readExchange,
		source: "messages of Anthropic, a request with `system`, a response, or both",
	},
	{
		name: "completion", is: isCompletion, read: readExchange,
		source: "a chat completion of OpenAI with `choices`, with or without its request",
	},
	{
		name: "conversation", is: isConversation, read: readExchange,
		source: "messages in OpenAI's chat form, in a list or as the member `messages`",
	},
	{
		name: "traces", is: isTraces, read: readTraces,
		source: "the dict `traces` of the snippets",
	},
	{
		name: formatAgent, is: isAgent, read: readAgent,
		source: "an object with `reasoning` and `final_answer`, or text with lines like `[user] ...`",
	},
	{
		name: formatReasoning, is: isReasoning, read: readReasoning,
		source: "text, or one JSON string",
	},
}

// Formats returns the names of all forms, after "auto".
func Formats() []string {
	names := []string{formatAuto}
	for i := range forms {
		names = append(names, forms[i].name)
	}
	return names
}

func formatNames() string { return strings.Join(Formats()[1:], ", ") }

// recognise returns the form of a root, or nil if none fits.
func recognise(root any) *form {
	at := slices.IndexFunc(forms, func(f form) bool { return f.is(root) })
	if at < 0 {
		return nil
	}
	return &forms[at]
}

func named(name string) *form {
	return &forms[slices.IndexFunc(forms, func(f form) bool { return f.name == name })]
}

// get returns the value at the end of a path of keys, or nil.
func get(v any, path ...string) any {
	for _, key := range path {
		object, _ := v.(map[string]any)
		v = object[key]
	}
	return v
}

func has(v any, keys ...string) bool {
	return !slices.ContainsFunc(keys, func(key string) bool { return get(v, key) == nil })
}

func hasAny(v any, keys ...string) bool {
	return slices.ContainsFunc(keys, func(key string) bool { return get(v, key) != nil })
}

// maxScanned bounds the items of a list that are examined to recognise its form.
const maxScanned = 1000

// some reports whether holds returns true for the value itself or for one of its first items.
func some(v any, holds func(any) bool) bool {
	if list, ok := v.([]any); ok {
		return slices.ContainsFunc(list[:min(len(list), maxScanned)], holds)
	}
	return holds(v)
}

// every reports whether a list is not empty and holds returns true for each item.
func every(v any, holds func(any) bool) bool {
	list, _ := v.([]any)
	return len(list) > 0 && !slices.ContainsFunc(list, func(item any) bool { return !holds(item) })
}

// under returns the first existing member of an object. Any other value is returned unchanged.
func under(v any, keys ...string) any {
	if _, ok := v.(map[string]any); !ok {
		return v
	}
	for _, key := range keys {
		if inner := get(v, key); inner != nil {
			return inner
		}
	}
	return nil
}

// The bounds of the output of describe: the number of members, the characters of each name, and
// the characters in total.
const (
	maxSeen     = 6
	maxSeenName = 30

	maxDescription = 160
)

// describe briefly describes a value, for the error about an unknown form.
func describe(v any) string { return texts.Truncate(describeTo(v, 1), maxDescription) }

func describeTo(v any, depth int) string {
	switch v := v.(type) {
	case []any:
		if len(v) == 0 {
			return "an empty list"
		}
		return "a list of " + strconv.Itoa(len(v)) + ", first " + describeTo(v[0], depth)
	case map[string]any:
		return "an object with " + describeMembers(v, depth)
	}

	return located{any: v}.kind()
}

func describeMembers(object map[string]any, depth int) string {
	if len(object) == 0 {
		return "no members"
	}
	var names []string
	for i, key := range slices.Sorted(maps.Keys(object)) {
		if i == maxSeen {
			names = append(names, fmt.Sprintf("%d more", len(object)-maxSeen))
			break
		}
		name := strconv.Quote(texts.Truncate(key, maxSeenName))
		if _, isList := object[key].([]any); isList && depth > 0 {
			name += " (" + describeTo(object[key], depth-1) + ")"
		}
		names = append(names, name)
	}

	return strings.Join(names, ", ")
}
