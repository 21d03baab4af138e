package agenttrace

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"
)

// The actions of steps that factories make. A tool call is actionToolCall and the tool's name.
// Other steps may have other actions.
const (
	actionReasoning = "reasoning"
	actionUser      = "user_message"
	actionAgent     = "agent_response"
	actionSystem    = "system_message"
	actionToolCall  = "tool_call:"
	actionToolAlone = "tool_result" // a result whose call is not in the trace
)

// Step is one action of an agent, or a message to it. Lengths are in characters, as in
// the Python class TraceStep.
type Step struct {
	Index       int    `json:"index"`       // position in the trace, from 0
	Action      string `json:"action"`      // such as "reasoning", "tool_call:search"
	Thought     string `json:"thought"`     // reasoning, a message, a tool's arguments
	Observation string `json:"observation"` // a tool's result, an answer
	// Timestamp is in seconds since 1970, or nil if unknown.
	Timestamp *float64 `json:"timestamp"`
	// Metadata holds further members of the source, as JSON values; often nil.
	Metadata map[string]any `json:"metadata"`
}

// content returns the thought and, on the next line, the observation.
func (s Step) content() string {
	if s.Thought == "" || s.Observation == "" {
		return s.Thought + s.Observation
	}
	return s.Thought + "\n" + s.Observation
}

// Shorten truncates text to a number of characters and states how many it left out.
func Shorten(text string, most int) string {
	head, left := HeadOf(text, most)
	if left == 0 {
		return text
	}
	return fmt.Sprintf("%s... (%d more chars)", head, left)
}

// HeadOf returns the first characters of text and the number of characters after them.
func HeadOf(text string, most int) (head string, left int) {
	most = max(most, 0)
	if len(text) <= most {
		return text, 0
	}
	for at := range text {
		if most == 0 {
			return text[:at], utf8.RuneCountInString(text[at:])
		}
		most--
	}
	return text, 0
}

// Trace is an agent's trace. It is immutable. The Python class TraceContext returns the same
// results.
type Trace struct {
	steps  []Step
	raw    string
	system string
}

// newTrace stores steps and numbers them.
func newTrace(steps []Step, raw, system string) *Trace {
	for i := range steps {
		steps[i].Index = i
	}
	return &Trace{steps: steps, raw: raw, system: system}
}

// Combine merges several traces. It renumbers the steps and joins the raw texts with a separator
// line. The system prompt is that of the first trace.
func Combine(traces ...*Trace) *Trace {
	var steps []Step
	var raw []string
	system := ""
	for _, t := range traces {
		steps = append(steps, t.steps...)
		if t.raw != "" {
			raw = append(raw, t.raw)
		}
		if system == "" {
			system = t.system
		}
	}

	return newTrace(steps, strings.Join(raw, "\n\n---\n\n"), system)
}

// Named returns a copy of the trace whose steps have a name in their metadata, as "trace". If a
// step already has a name, the copy has the new name, a slash, and the old name.
func (t *Trace) Named(name string) *Trace {
	steps := slices.Clone(t.steps)
	for i := range steps {
		metadata := maps.Clone(steps[i].Metadata)
		if metadata == nil {
			metadata = map[string]any{}
		}
		if inner, ok := metadata["trace"].(string); ok {
			metadata["trace"] = name + "/" + inner
		} else {
			metadata["trace"] = name
		}
		steps[i].Metadata = metadata
	}

	return newTrace(steps, t.raw, t.system)
}

// Len returns the number of steps.
func (t *Trace) Len() int { return len(t.steps) }

// speakers maps the action of a step to its speaker.
var speakers = map[string]string{
	actionReasoning: "Agent (reasoning)", actionUser: "User", actionAgent: "Agent",
	actionSystem: "System", actionToolAlone: "Tool",
}

// Markdown renders the trace as a conversation: one paragraph per step, with tool calls as
// NAME(ARGUMENTS) and their results below.
func (t *Trace) Markdown() string {
	var parts []string
	if t.system != "" {
		parts = append(parts, "## System prompt", t.system)
	}
	parts = append(parts, "## Trace")
	for i := range t.steps {
		parts = append(parts, t.steps[i].markdown())
	}
	return strings.Join(parts, "\n\n")
}

func (s *Step) markdown() string {
	var lines []string
	name, isCall := strings.CutPrefix(s.Action, actionToolCall)
	speaker, known := speakers[s.Action]
	if !known {
		speaker = "Agent (" + s.Action + ")"
	}

	switch {
	case isCall:
		lines = append(lines, "**Agent** calls "+name+"("+s.Thought+")")
	case s.Thought != "" || s.Observation == "":
		lines = append(lines, "**"+speaker+":** "+s.Thought)
	}

	switch {
	case s.Observation == "":
	case isCall || s.Action == actionToolAlone:
		lines = append(lines, "**Tool:** "+s.Observation)
	default:
		lines = append(lines, "**Observation:** "+s.Observation)
	}

	return strings.Join(lines, "\n")
}

// keptTrace is the JSON form in which the host passes a trace to a session.
type keptTrace struct {
	Steps        []Step `json:"steps"`
	RawReasoning string `json:"raw_reasoning"`
	SystemPrompt string `json:"system_prompt"`
}

// MarshalJSON writes the steps, the raw text and the system prompt.
func (t *Trace) MarshalJSON() ([]byte, error) {
	steps := t.steps
	if steps == nil {
		steps = []Step{}
	}
	return json.Marshal(keptTrace{steps, t.raw, t.system})
}
