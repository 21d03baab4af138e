package reflect

import (
	"encoding/json"
	"fmt"
	"iter"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"golang.org/x/text/cases"
)

// The actions of steps that factories make. A tool call is ActionToolCall and the
// tool's name. Other sources of steps may use other names.
const (
	ActionReasoning = "reasoning"
	ActionUser      = "user_message"
	ActionAgent     = "agent_response"
	ActionSystem    = "system_message"
	ActionToolCall  = "tool_call:"
	ActionToolAlone = "tool_result" // a result whose call is not in the trace
)

// TraceStep is one thing that an agent did, or that was said to it. Lengths are in
// characters, as in the class of the same name that snippets see.
type TraceStep struct {
	Index       int    `json:"index"`       // its place in the trace, from 0
	Action      string `json:"action"`      // such as "reasoning", "tool_call:search"
	Thought     string `json:"thought"`     // reasoning, what was said, a tool's arguments
	Observation string `json:"observation"` // a tool's result, an answer
	// Timestamp is in seconds since 1970, nil if it is not known.
	Timestamp *float64 `json:"timestamp"`
	// Metadata is what else the source said, as JSON values; often nil.
	Metadata map[string]any `json:"metadata"`
}

// Content is the thought and the observation, one below the other.
func (s TraceStep) Content() string {
	if s.Thought == "" || s.Observation == "" {
		return s.Thought + s.Observation
	}
	return s.Thought + "\n" + s.Observation
}

// DefaultPreview is the length of a preview that does not say another.
const DefaultPreview = 300

// Preview is the content, cut to maxLen characters; it then says how many were
// left out.
func (s TraceStep) Preview(maxLen int) string { return shorten(s.Content(), maxLen) }

// shorten cuts text to most characters and says how many it left out.
func shorten(text string, most int) string {
	head, left := headOf(text, most)
	if left == 0 {
		return text
	}
	return fmt.Sprintf("%s... (%d more chars)", head, left)
}

// headOf is the first most characters of text, and how many come after them.
func headOf(text string, most int) (head string, left int) {
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

// Repr is the step in a few words, such as "TraceStep(0: reasoning...)".
func (s TraceStep) Repr() string {
	head, _ := headOf(s.Action, 30)
	return fmt.Sprintf("TraceStep(%d: %s...)", s.Index, head)
}

// String is the step on several lines, its texts shortened.
func (s TraceStep) String() string {
	lines := []string{fmt.Sprintf("Step %d [%s]", s.Index, s.Action)}
	if s.Thought != "" {
		lines = append(lines, "  Thought: "+shorten(s.Thought, 200))
	}
	if s.Observation != "" {
		lines = append(lines, "  Observation: "+shorten(s.Observation, 200))
	}
	return strings.Join(lines, "\n")
}

// TraceContext is an agent's trace, made for exploring it. It does not change. A
// snippet sees the same under the same rules: the Python class answers as this one.
type TraceContext struct {
	steps  []TraceStep
	raw    string
	system string
}

// NewTraceContext makes a trace of steps, which it numbers from 0, and of the raw
// text that they were made of.
func NewTraceContext(steps []TraceStep, rawReasoning string) *TraceContext {
	return newTrace(slices.Clone(steps), rawReasoning, "")
}

// newTrace keeps steps and numbers them.
func newTrace(steps []TraceStep, raw, system string) *TraceContext {
	for i := range steps {
		steps[i].Index = i
	}
	return &TraceContext{steps: steps, raw: raw, system: system}
}

// Steps are all steps.
func (t *TraceContext) Steps() []TraceStep { return slices.Clone(t.steps) }

// RawReasoning is the text that the trace was made of.
func (t *TraceContext) RawReasoning() string { return t.raw }

// SystemPrompt is the agent's system prompt, empty if it is not known.
func (t *TraceContext) SystemPrompt() string { return t.system }

// Len is the number of steps.
func (t *TraceContext) Len() int { return len(t.steps) }

// All goes through the steps.
func (t *TraceContext) All() iter.Seq2[int, TraceStep] { return slices.All(t.steps) }

// Step returns a step; ok is false if there is none of that number.
func (t *TraceContext) Step(index int) (step TraceStep, ok bool) {
	if index < 0 || index >= len(t.steps) {
		return TraceStep{}, false
	}
	return t.steps[index], true
}

// where returns the steps for which a test of their action, thought or
// observation holds.
func (t *TraceContext) where(holds func(text string) bool) []TraceStep {
	found := []TraceStep{}
	for i := range t.steps {
		s := &t.steps[i]
		if holds(s.Action) || holds(s.Thought) || holds(s.Observation) {
			found = append(found, *s)
		}
	}
	return found
}

// folded is text without the difference of case, as Python's str.casefold has it.
func folded(text string) string { return cases.Fold().String(text) }

// FindSteps returns the steps whose action, thought or observation has pattern in
// it, as plain text.
func (t *TraceContext) FindSteps(pattern string, caseSensitive bool) []TraceStep {
	if caseSensitive {
		return t.where(func(text string) bool { return strings.Contains(text, pattern) })
	}
	pattern = folded(pattern)
	return t.where(func(text string) bool { return strings.Contains(folded(text), pattern) })
}

// FindStepsRegex returns the steps whose action, thought or observation matches a
// regular expression of package regexp, which takes time linear in the text.
// Python's method has Python's expressions; its flags are (?i) and the like here.
func (t *TraceContext) FindStepsRegex(pattern string) ([]TraceStep, error) {
	expression, err := compileSearch(pattern)
	if err != nil {
		return nil, err
	}
	return t.where(expression.MatchString), nil
}

func compileSearch(pattern string) (*regexp.Regexp, error) {
	expression, err := regexp.Compile(pattern)
	if err != nil {
		return nil, fmt.Errorf("cannot search the trace: %w", err)
	}
	return expression, nil
}

// errorSigns are the words by which a step tells of an error.
var errorSigns = []string{"error", "exception", "failed", "traceback"}

// Errors returns the steps that tell of an error: that have error, exception,
// failed or traceback in them, in any case.
func (t *TraceContext) Errors() []TraceStep {
	return t.where(func(text string) bool {
		text = folded(text)
		return slices.ContainsFunc(errorSigns, func(sign string) bool { return strings.Contains(text, sign) })
	})
}

// Actions returns the steps whose action has actionType in it, in any case:
// "tool_call" finds every call, "tool_call:search" those of one tool.
func (t *TraceContext) Actions(actionType string) []TraceStep {
	found := []TraceStep{}
	actionType = folded(actionType)
	for i := range t.steps {
		if strings.Contains(folded(t.steps[i].Action), actionType) {
			found = append(found, t.steps[i])
		}
	}
	return found
}

// Summary is the trace in a sentence.
func (t *TraceContext) Summary() string {
	if len(t.steps) == 0 {
		return "Empty trace (no steps)"
	}
	first, _ := headOf(t.steps[0].Action, 30)
	last, _ := headOf(t.steps[len(t.steps)-1].Action, 30)
	return fmt.Sprintf("Trace of %d steps, from %s to %s; %d tell of errors", len(t.steps), first, last, len(t.Errors()))
}

// speakers are who acts in a step, for the actions that factories make.
var speakers = map[string]string{
	ActionReasoning: "Agent (reasoning)", ActionUser: "User", ActionAgent: "Agent", ActionSystem: "System", ActionToolAlone: "Tool",
}

// Markdown renders the trace as a conversation: a paragraph a step, tool calls as
// NAME(ARGUMENTS) with their results below them.
func (t *TraceContext) Markdown() string {
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

func (s *TraceStep) markdown() string {
	var lines []string
	name, isCall := strings.CutPrefix(s.Action, ActionToolCall)
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
	case isCall || s.Action == ActionToolAlone:
		lines = append(lines, "**Tool:** "+s.Observation)
	default:
		lines = append(lines, "**Observation:** "+s.Observation)
	}
	return strings.Join(lines, "\n")
}

// SearchRaw returns the places of the steps that match a regular expression, in
// any case. It is matched against action, thought and observation, each.
func (t *TraceContext) SearchRaw(pattern string) ([]int, error) {
	steps, err := t.FindStepsRegex("(?i)" + pattern)
	if err != nil {
		return nil, err
	}
	found := make([]int, len(steps))
	for i := range steps {
		found[i] = steps[i].Index
	}
	return found, nil
}

// SearchRawText returns what a regular expression matches in the raw text, in any
// case and without empty matches.
func (t *TraceContext) SearchRawText(pattern string) ([]string, error) {
	expression, err := compileSearch("(?i)" + pattern)
	if err != nil {
		return nil, err
	}
	found := slices.DeleteFunc(expression.FindAllString(t.raw, -1), func(text string) bool { return text == "" })
	return append([]string{}, found...), nil
}

// keptTrace is the JSON by which the host hands a trace to a session.
type keptTrace struct {
	Steps        []TraceStep `json:"steps"`
	RawReasoning string      `json:"raw_reasoning"`
	SystemPrompt string      `json:"system_prompt"`
}

// MarshalJSON writes the steps, the raw text and the system prompt.
func (t *TraceContext) MarshalJSON() ([]byte, error) {
	steps := t.steps
	if steps == nil {
		steps = []TraceStep{}
	}
	return json.Marshal(keptTrace{steps, t.raw, t.system})
}
