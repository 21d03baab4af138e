package agenttrace

import (
	"fmt"
	"strings"
)

// textLen bounds each string in the steps of a conversation that a snippet makes, in characters.
const textLen = 1000

// everything is the bound for strings that are never truncated.
const everything = MaxBytes

// talk turns messages and calls into steps, and keeps the source's statements about the task.
type talk struct {
	steps []Step
	raw   []string
	rule  string // the separator of the raw texts
	limit int    // characters of a string in a step

	calls   []int          // the steps of calls, in order
	oldest  int            // the first index in calls that may lack a result
	waiting map[string]int // the steps of calls without a result, by id
	settled map[int]bool   // the steps of calls with a result

	form             string      // the name of its form
	root             located     // the source of the trace
	name, system     string      // the name of the trace, and the agent's prompt; often empty
	question, answer string      // the user's first text, the agent's last text
	truth, feedback  *string     // nil if the source has none
	agents           []AgentStep // nil if the source has none
	now              *float64    // the time of the next steps
	verdict          Verdict
	decoded          int  // bytes of JSON decoded from strings
	once             bool // a second result of a call is a repetition
}

func newTalk(limit int) *talk {
	return &talk{rule: "\n\n", limit: limit, waiting: map[string]int{}, settled: map[int]bool{}}
}

// trace returns the trace of all steps up to now.
func (t *talk) trace() *Trace {
	return newTrace(t.steps, strings.Join(t.raw, t.rule), t.system)
}

// talkOf makes a trace from a list of messages.
func talkOf(messages located, limit int, system string) (*Trace, error) {
	t := newTalk(limit)
	t.system = system
	if err := t.listen(messages); err != nil {
		return nil, err
	}
	return t.trace(), nil
}

// listen adds the steps of a list of messages.
func (t *talk) listen(messages located) error {
	if messages.any == nil {
		return messages.wrong("a list")
	}
	return t.each(messages, t.message)
}

// roleActions maps common names of speakers to actions.
var roleActions = map[string]string{
	"user": actionUser, "human": actionUser,
	"assistant": actionAgent, "ai": actionAgent, "agent": actionAgent, "model": actionAgent,
	"gpt": actionAgent, "gemini": actionAgent, "AIMessageChunk": actionAgent,
	"system": actionSystem, "developer": actionSystem,
	"tool": actionToolAlone, "function": actionToolAlone, "toolResult": actionToolAlone,
	"observation": actionToolAlone, "tool_response": actionToolAlone,
}

// The names that libraries give to the parts of a message, a call and a result.
var (
	roleKeys     = []string{"role", "from", "source", "type"}
	contentKeys  = []string{"content", "parts", "contents", "message", "value"}
	thoughtKeys  = []string{"reasoning_content", "reasoning", "thinking"}
	nameKeys     = []string{"name", "toolName", "tool_name", "function_name"}
	argumentKeys = []string{"arguments", "input", "args", "action", "code"}
	callIDKeys   = []string{"call_id", "tool_call_id", "toolCallId", "id"}
	resultIDKeys = []string{
		"tool_call_id", "tool_use_id", "call_id", "toolCallId", "source_call_id", "id",
	}
	resultKeys = []string{"content", "output", "result", "response", "value", "outputs"}
	failedKeys = []string{"error", "is_error", "isError"}
)

// message adds the steps of one message, or of one item of OpenAI's Responses.
func (t *talk) message(m located) error {
	if err := m.object(); err != nil {
		return err
	}
	if many := m.member("tool_messages"); many.any != nil {
		return t.each(many, t.message)
	}
	m = unwrapMessage(m)
	if m.first(roleKeys...).any == nil {
		return m.member("role").wrong("text")
	}

	role, err := m.first(roleKeys...).text()
	if err != nil {
		return err
	}
	if roleActions[role] == actionToolAlone {
		if content := m.first(contentKeys...); holdsResult(content.any) {
			return t.content(role, content)
		}
		return t.result(m)
	}
	if m.member("role").any == nil {
		if kind := partKind(m); kind != "text" && roleActions[role] == "" {
			return t.item(m, role, kind)
		}
	}

	before := len(t.steps) + len(t.raw)
	if err := t.reasoning(m.first(thoughtKeys...)); err != nil {
		return err
	}
	if err := t.content(role, m.first(contentKeys...)); err != nil {
		return err
	}
	if err := t.each(m.first("tool_calls", "toolCalls"), t.call); err != nil {
		return err
	}

	if old := m.member("function_call"); old.any != nil {
		if err := t.call(old); err != nil {
			return err
		}
	}
	if len(t.steps)+len(t.raw) == before {
		return t.say(role, "") // an empty message remains visible
	}

	return nil
}

// holdsResult reports whether a tool's message contains results as parts of its content.
func holdsResult(content any) bool {
	return someItem(content, func(part any) bool { return partKind(located{any: part}) == "result" })
}

// unwrapMessage returns the message inside a serialized LangChain message. The role is its type,
// or the class in its id.
func unwrapMessage(m located) located {
	inner := m.first("data", "kwargs")
	object, ok := inner.any.(map[string]any)
	if !ok || m.member("role").any != nil {
		return m
	}

	role := m.member("type").any
	if class, ok := m.member("id").any.([]any); ok && len(class) > 0 {
		role = class[len(class)-1]
	}
	name, _ := role.(string)
	if own, ok := object["type"].(string); ok {
		name = own
	}
	name = strings.TrimSuffix(strings.TrimSuffix(name, "Chunk"), "Message")

	unwrapped := map[string]any{"role": strings.ToLower(name)}
	for key, value := range object {
		if key != "type" {
			unwrapped[key] = value
		}
	}
	return located{any: unwrapped, path: inner.path}
}

// item adds the steps of an item without a role: a call, a result or a thought.
func (t *talk) item(m located, role, kind string) error {
	switch kind {
	case "call":
		text, ok := m.member("value").any.(string)
		if !ok {
			return t.call(m)
		}
		inner, err := t.decode(located{any: text, path: m.member("value").path})
		if err != nil || inner.object() != nil {
			return t.say(role, text)
		}
		return t.call(inner) // ShareGPT's format
	case "result":
		return t.result(m)
	case "thought":
		return t.thought(m)
	}

	return t.content(role, m.first(contentKeys...))
}

func (t *talk) each(list located, do func(located) error) error {
	items, err := list.list()
	if err != nil {
		return err
	}
	for _, item := range items {
		if err := do(item); err != nil {
			return err
		}
	}
	return nil
}

// say adds a speaker's message.
func (t *talk) say(role, text string) error {
	action, ok := roleActions[role]
	if !ok {
		action = role
	}

	switch {
	case text == "":
	case action == actionAgent:
		t.answer = text
	case action == actionUser && t.question == "":
		t.question = text
	}

	return t.add(Step{Action: action, Thought: Shorten(text, t.limit)}, role, text)
}

// add adds a step, and appends its full text to the raw text.
func (t *talk) add(s Step, label, raw string) error {
	if len(t.steps) >= MaxSteps {
		return fmt.Errorf("the trace has more than %d steps", MaxSteps)
	}
	if s.Timestamp == nil {
		s.Timestamp = t.now
	}
	t.steps = append(t.steps, s)
	t.raw = append(t.raw, "["+label+"] "+raw)
	return nil
}

// reasoning adds a thought, which is a string or parts with text.
func (t *talk) reasoning(thought located) error {
	text, err := resultText(thought)
	if err != nil || text == "" {
		return err
	}
	return t.add(
		Step{Action: actionReasoning, Thought: Shorten(text, t.limit)}, actionReasoning, text,
	)
}

// thought adds the thought of a part or an item.
func (t *talk) thought(part located) error {
	for _, key := range []string{"thinking", "summary", "content", "reasoning", "text"} {
		before := len(t.steps)
		if err := t.reasoning(part.member(key)); err != nil || len(t.steps) > before {
			return err
		}
	}
	return nil
}

// content adds the steps of a message's content, part by part. Consecutive text parts become one
// step.
func (t *talk) content(role string, content located) error {
	if _, ok := content.any.(string); ok || content.any == nil {
		text, err := content.text()
		if err != nil || text == "" {
			return err
		}
		return t.say(role, text)
	}

	parts, err := content.list()
	if err != nil {
		return content.wrong("text or a list of parts")
	}
	var said []string
	flush := func() error {
		text := strings.Join(said, "\n")
		if said = nil; text == "" {
			return nil
		}
		return t.say(role, text)
	}

	for _, part := range parts {
		text, isText, err := partText(part)
		if err != nil {
			return err
		}
		if isText {
			said = append(said, text)
			continue
		}

		if err := flush(); err != nil {
			return err
		}
		if err := t.part(part); err != nil {
			return err
		}
	}

	return flush()
}

// part adds the step of a call, a result or a thought in a message's content.
func (t *talk) part(part located) error {
	kind := partKind(part)
	part = innerPart(part)

	switch kind {
	case "call":
		return t.call(part)
	case "result":
		return t.result(part)
	}
	return t.thought(part)
}
