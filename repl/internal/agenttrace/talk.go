package agenttrace

import (
	"fmt"
	"strings"
)

// textLen bounds the texts in the steps of a conversation, in characters.
const textLen = 1000

// everything is the bound for texts that are never cut.
const everything = MaxBytes

// talk makes steps of what was said and called.
type talk struct {
	steps []Step
	raw   []string
	limit int // characters of a text in a step

	calls   []int          // the steps of calls, in their order
	oldest  int            // which of calls may be the first without a result
	waiting map[string]int // the steps of calls without a result, by their ids
	settled map[int]bool   // steps of calls that have one
}

// talkOf makes a trace of a list of messages.
func talkOf(messages located, limit int, system string) (*Trace, error) {
	if messages.any == nil {
		return nil, messages.wrong("a list")
	}
	list, err := messages.list()
	if err != nil {
		return nil, err
	}

	t := talk{limit: limit, waiting: map[string]int{}, settled: map[int]bool{}}
	for _, m := range list {
		if err := t.message(m); err != nil {
			return nil, err
		}
	}

	return newTrace(t.steps, strings.Join(t.raw, "\n\n"), system), nil
}

// roleActions maps the usual names of speakers to actions.
var roleActions = map[string]string{
	"user": actionUser, "human": actionUser,
	"assistant": actionAgent, "ai": actionAgent, "agent": actionAgent, "model": actionAgent,
	"system": actionSystem, "developer": actionSystem,
	"tool": actionToolAlone, "function": actionToolAlone,
}

// message makes the steps of one message.
func (t *talk) message(m located) error {
	if err := m.object(); err != nil {
		return err
	}
	if many := m.member("tool_messages"); many.any != nil {
		return t.each(many, t.message)
	}
	if m.member("role").any == nil {
		return m.member("role").wrong("text")
	}

	role, err := m.member("role").text()
	if err != nil {
		return err
	}
	if roleActions[role] == actionToolAlone {
		return t.result(
			m, m.first("tool_call_id", "id"), m.member("content"), m.first("error", "is_error"),
		)
	}

	before := len(t.steps) + len(t.raw)
	if err := t.reasoning(m.member("reasoning_content")); err != nil {
		return err
	}
	if err := t.content(role, m.member("content")); err != nil {
		return err
	}
	if err := t.each(m.member("tool_calls"), t.call); err != nil {
		return err
	}

	if old := m.member("function_call"); old.any != nil {
		if err := t.call(old); err != nil {
			return err
		}
	}
	if len(t.steps)+len(t.raw) == before {
		return t.say(role, "") // an empty message stays visible
	}

	return nil
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

// say adds a message of a speaker.
func (t *talk) say(role, text string) error {
	action, ok := roleActions[role]
	if !ok {
		action = role
	}
	return t.add(Step{Action: action, Thought: Shorten(text, t.limit)}, role, text)
}

// add adds a step, and the whole of it to the raw text.
func (t *talk) add(s Step, label, raw string) error {
	if len(t.steps) >= MaxSteps {
		return fmt.Errorf("the trace has more than %d steps", MaxSteps)
	}
	t.steps = append(t.steps, s)
	t.raw = append(t.raw, "["+label+"] "+raw)
	return nil
}

func (t *talk) reasoning(thought located) error {
	text, err := thought.text()
	if err != nil || text == "" {
		return err
	}
	return t.add(
		Step{Action: actionReasoning, Thought: Shorten(text, t.limit)}, actionReasoning, text,
	)
}

// content makes steps of a message's content, the parts in their order. Consecutive texts
// become one step.
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

// partText returns the text of a part, or the name of another kind of part, such as
// "[image_url]".
func partText(part located) (text string, ok bool, err error) {
	if s, isText := part.any.(string); isText {
		return s, true, nil
	}
	if err := part.object(); err != nil {
		return "", false, part.wrong("text or an object")
	}

	kind, err := part.member("type").text()
	if err != nil {
		return "", false, err
	}
	switch {
	case kind == "tool_use" || kind == "tool_result" || kind == "thinking":
		return "", false, nil
	case part.member("text").any != nil:
		text, err = part.member("text").text()
		return text, true, err
	}

	return "[" + kind + "]", true, nil
}

// part makes a step of a part in Anthropic's form.
func (t *talk) part(part located) error {
	switch part.member("type").any {
	case "tool_use":
		return t.call(part)
	case "tool_result":
		return t.result(
			part, part.member("tool_use_id"), part.member("content"), part.member("is_error"),
		)
	}
	return t.reasoning(part.member("thinking"))
}

// call adds a tool call: {"function": {"name", "arguments"}} of OpenAI,
// {"name", "input"} of Anthropic, {"name", "arguments"} of tau-bench.
func (t *talk) call(c located) error {
	if err := c.object(); err != nil {
		return err
	}
	inner := c
	if f := c.member("function"); f.any != nil {
		inner = f
	}

	name, err := inner.member("name").text()
	if err != nil {
		return err
	}
	arguments, err := inner.first("arguments", "input").show()
	if err != nil {
		return err
	}

	id, err := c.first("id", "call_id").show()
	if err != nil {
		return err
	}
	action := actionToolCall + name
	step := Step{Action: action, Thought: Shorten(arguments, t.limit)}
	if c.member("requestor").any == "user" {
		step.Metadata = map[string]any{"requestor": "user"}
	}
	if err := t.add(step, action, arguments); err != nil {
		return err
	}

	t.calls = append(t.calls, len(t.steps)-1)
	if id != "" {
		t.waiting[id] = len(t.steps) - 1
	}
	return nil
}

// result adds a tool's result to its call: the one with its id or, without an id, the
// oldest open one. Without such a call it becomes a separate step.
func (t *talk) result(r, id, content, failed located) error {
	text, err := resultText(content)
	if err != nil {
		return err
	}
	bad, err := failed.truth()
	if err != nil {
		return err
	}
	if bad {
		text = "[ERROR] " + text
	}

	which, err := id.show()
	if err != nil {
		return err
	}
	if at, ok := t.callOf(which); ok {
		delete(t.waiting, which)
		t.settled[at] = true
		t.steps[at].Observation = Shorten(text, t.limit)
		t.raw = append(t.raw, "[tool] "+text)
		return nil
	}

	step := Step{Action: actionToolAlone, Observation: Shorten(text, t.limit)}
	if r.member("requestor").any == "user" {
		step.Metadata = map[string]any{"requestor": "user"}
	}
	return t.add(step, "tool", text)
}

// callOf returns the step of the call that a result with an id belongs to.
func (t *talk) callOf(id string) (at int, ok bool) {
	if id != "" {
		at, ok = t.waiting[id]
		return at, ok
	}
	for ; t.oldest < len(t.calls); t.oldest++ {
		if at = t.calls[t.oldest]; !t.settled[at] {
			return at, true
		}
	}
	return 0, false
}

// resultText returns the text of a result: a text, parts, or any other JSON.
func resultText(content located) (string, error) {
	parts, isList := content.any.([]any)
	if !isList {
		return content.show()
	}
	texts := make([]string, len(parts))
	list, err := content.list()
	if err != nil {
		return "", err
	}

	for i, part := range list {
		text, ok, err := partText(part)
		if err != nil || !ok {
			return content.show() // a list that is no list of parts
		}
		texts[i] = text
	}

	return strings.Join(texts, "\n"), nil
}
