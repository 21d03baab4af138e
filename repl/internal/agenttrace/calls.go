package agenttrace

import "strings"

// call adds a tool call: {"function": {"name", "arguments"}} of OpenAI, {"name", "input"} of
// Anthropic, {"name", "arguments"} of tau-bench, or with other known names. A call that appears
// twice in a message is added once.
func (t *talk) call(c located) error {
	if err := c.object(); err != nil {
		return err
	}
	inner := c
	if f := c.member("function"); f.any != nil {
		inner = f
	}

	name, err := inner.first(nameKeys...).text()
	if err != nil {
		return err
	}
	if kind, _ := c.member("type").any.(string); name == "" {
		name = strings.TrimSuffix(kind, "_call")
	}
	arguments, err := inner.first(argumentKeys...).show()
	if err != nil {
		return err
	}
	id, err := c.first(callIDKeys...).show()
	if err != nil {
		return err
	}

	action := actionToolCall + name
	step := Step{Action: action, Thought: Shorten(arguments, t.limit)}
	if c.member("requestor").any == "user" {
		step.Metadata = map[string]any{"requestor": "user"}
	}
	if at, ok := t.waiting[id]; ok && t.steps[at].Action == action &&
		t.steps[at].Thought == step.Thought {
		return nil
	}
	if err := t.add(step, action, arguments); err != nil {
		return err
	}

	if step.Metadata == nil {
		t.answer = "" // the text before a call is not the answer
	}
	t.calls = append(t.calls, len(t.steps)-1)
	if id != "" {
		t.waiting[id] = len(t.steps) - 1
	}
	if c.first("output", "result").any != nil { // LangChain stores a call with its result
		return t.resultOf(c, id, c.first("output", "result"))
	}

	return nil
}

// result adds a tool's result to its call: the call with its id or, without an id, the oldest
// open one. Without such a call it becomes a separate step.
func (t *talk) result(r located) error {
	id, err := r.first(resultIDKeys...).show()
	if err != nil {
		return err
	}
	return t.resultOf(r, id, r.first(resultKeys...))
}

func (t *talk) resultOf(r located, id string, content located) error {
	text, err := resultText(content)
	if err != nil {
		return err
	}
	reason, err := failure(r)
	if err != nil {
		return err
	}
	if reason != "" {
		if text == "" {
			text = reason
		}
		text = "[ERROR] " + text
	}

	if at, ok := t.callOf(id); ok {
		delete(t.waiting, id)
		if t.once && t.settled[at] {
			return nil
		}
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

// failed is the reason for a failure without a message.
const failed = "failed"

// failure returns the reason that a result gives for a failed call, or "" if the call succeeded.
func failure(r located) (string, error) {
	if r.member("status").any == "error" {
		return failed, nil
	}
	mark := r.first(failedKeys...)
	if text, ok := mark.any.(string); ok {
		return text, mark.checkLength(text)
	}

	bad, err := mark.truth()
	if err != nil {
		return "", mark.wrong("a boolean or text")
	}
	if bad {
		return failed, nil
	}
	return "", nil
}

// callOf returns the step of the call with the id of a result.
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
