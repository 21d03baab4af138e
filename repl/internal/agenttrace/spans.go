package agenttrace

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// span is a unit of work in a trace of an observability tool.
type span struct {
	id, parent, trace string
	name              string
	kind              string // spanModel, spanTool, or another word
	call              string // the id of the tool call, often empty
	system            located
	input, output     located
	failure, feedback string
	passed            bool  // the span itself reports success
	start, end        int64 // nanoseconds since 1970
}

// The kinds of spans that the walk treats specially.
const (
	spanModel = "model"
	spanTool  = "tool"
)

// spanKinds maps the terms of observability tools to kinds.
var spanKinds = map[string]string{
	"llm": spanModel, "generation": spanModel, "chat": spanModel, "response": spanModel,
	"text_completion": spanModel, "generate_content": spanModel, "chat_model": spanModel,
	"tool": spanTool, "function": spanTool, "execute_tool": spanTool, "retriever": spanTool,
	"retrieval": spanTool,
}

// splitSpans groups spans by trace, in order of their start.
func splitSpans(spans []located, read func(located) (span, error)) ([]located, error) {
	var order []string
	groups := map[string][]any{}
	for _, item := range spans {
		s, err := read(item)
		if err != nil {
			return nil, err
		}
		if groups[s.trace] == nil {
			order = append(order, s.trace)
		}
		groups[s.trace] = append(groups[s.trace], s)
	}

	parts := make([]located, len(order))
	for i, id := range order {
		parts[i] = located{any: groups[id]}
	}
	return parts, nil
}

// readSpans makes one conversation from the spans of a trace. Each model call repeats the messages
// before it, and outer spans repeat the inner ones, so only new messages become steps.
func readSpans(t *talk, root located) error {
	list, _ := root.any.([]any)
	if len(list) == 0 {
		return errors.New("there are no spans in it")
	}
	spans := make([]span, len(list))
	parents, ids := map[string]bool{}, map[string]bool{}
	for i, item := range list {
		spans[i], _ = item.(span)
		parents[spans[i].parent] = true
		ids[spans[i].id] = true
	}
	for i := range spans {
		if !ids[spans[i].parent] {
			spans[i].parent = "" // the parent is in another file
		}
	}

	w := spanWalk{
		talk: t, outer: parents, said: map[string]int{}, keys: map[string]string{},
		named: map[string][]int{},
	}
	t.name, t.once = spans[0].trace, true
	for _, m := range moments(spans) {
		t.now = inSeconds(m.at)
		read := w.begin
		if m.isEnd {
			read = w.finish
		}
		if err := read(m.span); err != nil {
			return err
		}
	}

	return w.finishRoot(spans)
}

// moment is the start or the end of a span.
type moment struct {
	span  *span
	isEnd bool
	at    int64
}

// moments returns the starts and ends of spans in chronological order. Spans that start
// simultaneously keep the order of the source.
func moments(spans []span) []moment {
	var all []moment
	for i := range spans {
		s := &spans[i]
		all = append(all, moment{s, false, s.start}, moment{s, true, max(s.start, s.end)})
	}
	slices.SortStableFunc(all, func(a, b moment) int { return cmp.Compare(a.at, b.at) })
	return all
}

// spanWalk reads spans in chronological order.
type spanWalk struct {
	*talk

	said  map[string]int    // the number of steps from each message
	keys  map[string]string // the identity of a message, by its JSON
	outer map[string]bool   // the spans that contain others

	named  map[string][]int // the steps of calls, by their actions
	sorted int              // how many of the calls are in named
}

// begin reads the input of a span.
func (w *spanWalk) begin(s *span) error {
	if s.kind == spanTool {
		return nil
	}
	if s.kind != spanModel && s.parent != "" {
		return nil // an inner chain passes on messages of other spans
	}

	if s.system.any != nil && w.system == "" {
		system, err := contentText(s.system)
		if err != nil {
			return err
		}
		w.system = system
	}
	return w.sayNew(s.input, "user")
}

// finish reads the output of a span.
func (w *spanWalk) finish(s *span) error {
	switch {
	case s.kind == spanTool:
		return w.toolSpan(s)
	case s.kind == spanModel && s.output.any != nil:
		return w.sayNew(s.output, "assistant")
	case s.failure != "":
		key := "failure " + s.failure // outer spans repeat the failure
		if w.said[key]++; w.said[key] > 1 {
			return nil
		}
		return w.add(Step{Action: s.name, Observation: "[ERROR] " + s.failure}, s.name, s.failure)
	case s.kind == spanModel, s.parent == "", w.outer[s.id]:
		return nil
	}

	return w.workSpan(s, s.name)
}

// toolSpan reads the span of a tool. The messages may contain the same call and result.
func (w *spanWalk) toolSpan(s *span) error {
	at, waits := w.waiting[s.call]
	if s.call == "" {
		at, waits = w.callNamed(s.name)
	}
	if !waits {
		return w.workSpan(s, actionToolCall+s.name)
	}

	text, err := w.outputText(s)
	if err != nil {
		return err
	}
	w.settled[at] = true
	w.steps[at].Observation = text
	w.raw = append(w.raw, "[tool] "+text)
	return nil
}

// callNamed returns the step of a tool's oldest call without a result.
func (w *spanWalk) callNamed(tool string) (at int, ok bool) {
	for ; w.sorted < len(w.calls); w.sorted++ {
		action := w.steps[w.calls[w.sorted]].Action
		w.named[action] = append(w.named[action], w.calls[w.sorted])
	}

	action := actionToolCall + tool
	for len(w.named[action]) > 0 {
		at = w.named[action][0]
		w.named[action] = w.named[action][1:]
		if !w.settled[at] {
			return at, true
		}
	}
	return 0, false
}

// workSpan makes a step from a span that is not a model call.
func (w *spanWalk) workSpan(s *span, action string) error {
	given, err := s.input.show()
	if err != nil {
		return err
	}
	text, err := w.outputText(s)
	if err != nil || given == "" && text == "" {
		return err
	}

	step := Step{Action: action, Thought: given, Observation: text}
	return w.add(step, action, step.content())
}

// outputText returns the output of a span, or its failure.
func (w *spanWalk) outputText(s *span) (string, error) {
	output := s.output
	if isSpoken(output.any) { // the tool's message
		output = unwrapMessage(output).first(resultKeys...)
	}
	text, err := resultText(output)
	if err == nil && s.failure != "" {
		text = "[ERROR] " + strings.Trim(s.failure+"\n"+text, blanks)
	}
	return text, err
}

// sayNew reads those messages of an input or an output that are new.
func (w *spanWalk) sayNew(value located, role string) error {
	said, err := w.spoken(value, role, 0)
	if err != nil {
		return err
	}

	times := map[string]int{}
	for _, m := range said {
		key, err := w.messageKey(m)
		if err != nil {
			return err
		}
		if times[key]++; times[key] <= w.said[key] {
			continue
		}
		w.said[key] = times[key]
		if err := w.message(m); err != nil {
			return err
		}
	}

	return nil
}

// messageKey returns the identity of a message, by which repetitions are recognised. It consists of
// the message's steps. A result whose call already has one is a repetition, whatever its form.
func (w *spanWalk) messageKey(m located) (string, error) {
	text := jsonText(m.any)
	if key, ok := w.keys[text]; ok {
		return key, nil
	}

	alone := newTalk(everything)
	if err := alone.message(m); err != nil {
		return "", err
	}
	var key strings.Builder
	for i := range alone.steps {
		s := &alone.steps[i]
		fmt.Fprintf(&key, "%q %q %q\n", s.Action, s.Thought, s.Observation)
	}
	w.keys[text] = key.String()
	return w.keys[text], nil
}

// maxSpoken bounds the nesting of messages in an input or an output.
const maxSpoken = 6

// spokenKeys are the members that hold the messages or the text of an input or an output.
var spokenKeys = []string{
	"messages", "input", "prompts", "choices", "generations", "output", "outputs", "message",
	"content", "text", "answer", "result", "response", "question", "query", "prompt", "task",
}

// spoken returns the messages in an input or an output of any form. A string is a message of the
// given role.
func (w *spanWalk) spoken(value located, role string, depth int) ([]located, error) {
	if text, _ := value.any.(string); text != "" && strings.ContainsAny(text[:1], "{[") {
		if inner, err := w.decode(value); err == nil {
			value = inner
		} else if w.decoded > MaxBytes {
			return nil, err
		}
	}
	if depth > maxSpoken {
		return nil, fmt.Errorf("%s: its messages are nested too deep", value.place())
	}

	switch v := value.any.(type) {
	case nil:
		return nil, nil
	case map[string]any:
		if isSpoken(v) {
			return []located{value}, nil
		}
		if inner := value.first(spokenKeys...); inner.any != nil {
			return w.spoken(inner, role, depth+1)
		}
	case []any:
		items, err := value.list()
		if err != nil || !someItem(v, func(item any) bool { return !isText(item) }) {
			break
		}
		var all []located
		for _, item := range items {
			inner, err := w.spoken(item, role, depth+1)
			if err != nil {
				return nil, err
			}
			all = append(all, inner...)
		}
		return all, nil
	}

	text, err := resultText(value)
	if err != nil || text == "" {
		return nil, err
	}
	return []located{{any: map[string]any{"role": role, "content": text}, path: value.path}}, nil
}

func isText(v any) bool {
	_, ok := v.(string)
	return ok
}

// isSpoken reports whether v is a message or an item that talk can read.
func isSpoken(v any) bool {
	item := located{any: v}
	kind := partKind(item)
	return has(v, "role") || isLangChainMessage(v) || has(v, "from", "value") ||
		(kind == "call" || kind == "result" || kind == "thought") && hasAny(v, "type", "from")
}

// finishRoot takes the task and the answer from the outermost span if the messages have none.
func (w *spanWalk) finishRoot(spans []span) error {
	for i := range spans {
		s := &spans[i]
		if s.parent != "" {
			continue
		}
		answer, err := w.spoken(s.output, "assistant", 0)
		if err != nil {
			return err
		}
		if len(answer) > 0 && s.kind != spanModel && w.answer == "" {
			if err := w.sayNew(answer[len(answer)-1], "assistant"); err != nil {
				return err
			}
		}
		if text := cmp.Or(s.feedback, s.failure); text != "" && w.feedback == nil {
			w.feedback = &text
		}
	}

	w.judgeSpans(spans)
	return nil
}
