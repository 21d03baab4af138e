package agenttrace

import "strings"

// The members that hold the messages in a request or a response of a model API.
var (
	systemKeys = []string{"system", "instructions", "systemInstruction", "system_instruction"}
	listKeys   = []string{"messages", "input", "contents", "conversations"}
)

// readExchange reads a list of messages, a request, a response, or an object with both. All APIs
// have the same parts under different names.
func readExchange(t *talk, root located) error {
	if _, ok := root.any.(map[string]any); !ok {
		return t.listen(root)
	}

	request, response := root, root
	if inner := root.member("request"); inner.object() == nil {
		request = inner
	}
	if inner := root.member("response"); inner.object() == nil {
		response = inner
	}
	if inner := response.member("body"); inner.object() == nil { // a batch response
		response = inner
	}

	system, err := contentText(request.first(systemKeys...))
	if err != nil {
		return err
	}
	if t.system == "" {
		t.system = system
	}
	said := request.first(listKeys...)
	if text, ok := said.any.(string); ok {
		if err := t.say("user", text); err != nil {
			return err
		}
	} else if err := t.each(said, t.turnOfUser); err != nil {
		return err
	}

	return t.reply(response)
}

// turnOfUser reads a message or an item of a run. A Gemini message without a role is from the user.
func (t *talk) turnOfUser(m located) error {
	if raw := m.member("raw_item"); raw.object() == nil { // an item of the Agents SDK
		return t.message(raw)
	}
	if parts := m.member("parts"); parts.any != nil && m.member("role").any == nil {
		return t.content("user", parts)
	}
	return t.message(m)
}

// reply reads the messages of a response. An object without messages has no reply.
func (t *talk) reply(response located) error {
	for _, choice := range []struct{ list, message string }{
		{"choices", "message"}, {"candidates", "content"}, {"output", ""}, {"new_items", ""},
	} {
		list := response.member(choice.list)
		if _, ok := list.any.([]any); !ok {
			continue
		}
		return t.each(list, func(item located) error {
			if choice.message != "" {
				item = item.member(choice.message)
			}
			if item.any == nil {
				return nil // a blocked choice has no message
			}
			return t.turnOfUser(item)
		})
	}

	if response.member("role").any != nil {
		return t.message(response)
	}
	return nil
}

// contentText returns the text of a prompt, which is a string, parts, or an object with parts.
func contentText(content located) (string, error) {
	if inner := content.first("parts", "content"); inner.any != nil {
		content = inner
	}
	return resultText(content)
}

// messages returns the list of messages in root, or nil.
func messages(root any, keys ...string) any {
	if inner := under(root, "request"); inner != nil {
		root = inner
	}
	return under(root, keys...)
}

func hasRole(item any) bool { return has(item, "role") }

// partOf returns a test for messages that contain a part for which holds returns true.
func partOf(key string, holds func(any) bool) func(any) bool {
	return func(m any) bool {
		list, _ := get(m, key).([]any)
		return some(list, holds) && list != nil
	}
}

// typeIn returns a test for objects of one of the given types.
func typeIn(names ...string) func(any) bool {
	return func(v any) bool {
		name, _ := get(v, "type").(string)
		for _, known := range names {
			if name == known {
				return true
			}
		}
		return false
	}
}

func isConversation(root any) bool { return some(messages(root, "messages"), hasRole) }

func isCompletion(root any) bool {
	for _, path := range [][]string{{}, {"response"}, {"response", "body"}} {
		choices := get(get(root, path...), "choices")
		if someItem(choices, func(choice any) bool { return has(choice, "message") }) {
			return true
		}
	}
	return false
}

// isAnthropic reports whether root is in Anthropic's format: a message of its API, messages with a
// separate system prompt, or parts that only Anthropic writes.
func isAnthropic(root any) bool {
	parts := partOf("content", typeIn("tool_use", "tool_result", "thinking", "redacted_thinking"))
	list := messages(root, "messages")
	if parts(root) || get(root, "type") == "message" && hasRole(root) || parts(get(root, "response")) {
		return true
	}
	prompted := has(root, "system") || has(get(root, "request"), "system")
	return some(list, hasRole) && (prompted || some(list, parts))
}

// isResponses reports whether root has items of OpenAI's Responses.
func isResponses(root any) bool {
	items := typeIn(
		"function_call", "function_call_output", "reasoning", "web_search_call", "file_search_call",
		"computer_call", "code_interpreter_call", "mcp_call", "custom_tool_call",
	)
	content := partOf("content", typeIn("input_text", "output_text", "input_image"))
	is := func(item any) bool {
		return items(item) && !has(item, "role") || content(item) || has(item, "raw_item")
	}

	if get(root, "object") == "response" || get(root, "response", "object") == "response" {
		return true
	}
	return some(messages(root, "input"), is) || some(under(root, "output", "new_items"), is)
}

func isGemini(root any) bool {
	bare := partOf("parts", func(part any) bool {
		return !has(part, "type") &&
			hasAny(part, "text", "functionCall", "functionResponse", "inlineData")
	})
	return hasAny(root, "candidates") || some(messages(root, "contents"), bare) ||
		has(get(root, "response"), "candidates")
}

func isGenAI(root any) bool {
	return some(messages(root, "messages"), func(m any) bool {
		return hasRole(m) && partOf("parts", func(part any) bool { return has(part, "type") })(m)
	})
}

func isGeminiCLI(root any) bool {
	return has(root, "sessionId") && some(get(root, "messages"), typeIn("gemini"))
}

func isShareGPT(root any) bool {
	return some(messages(root, "conversations"), func(turn any) bool {
		return has(turn, "from", "value")
	})
}

// isLangChainMessage reports whether a message names its role in type, as only LangChain does.
func isLangChainMessage(m any) bool {
	if has(m, "lc") && has(m, "kwargs") {
		return true
	}
	speaks := typeIn("human", "ai", "system", "tool", "function", "chat", "AIMessageChunk")
	return speaks(m) && !has(m, "role") && hasAny(m, "content", "data")
}

func isLangChainMessages(root any) bool {
	return some(messages(root, "messages"), isLangChainMessage)
}

// langGraphStates are the paths to the messages in a state or a checkpoint.
var langGraphStates = [][]string{
	{"values", "messages"},
	{"channel_values", "messages"},
	{"checkpoint", "channel_values", "messages"},
}

func isLangGraph(root any) bool {
	for _, path := range langGraphStates {
		if get(root, path...) != nil {
			return true
		}
	}
	return every(root, isUpdate)
}

// isUpdate reports whether item is an update of a stream: {NODE: {"messages": [...]}}.
func isUpdate(item any) bool {
	object, _ := item.(map[string]any)
	for name, node := range object {
		if name != "request" && name != "response" && has(node, "messages") {
			return true
		}
	}
	return false
}

// readLangGraph reads the messages of a state or of all updates.
func readLangGraph(t *talk, root located) error {
	for _, path := range langGraphStates {
		if get(root.any, path...) == nil {
			continue
		}
		at := root
		for _, key := range path {
			at = at.member(key)
		}
		return t.listen(at)
	}

	return t.each(root, func(update located) error {
		for _, name := range update.keys() {
			said := update.member(name).member("messages")
			if said.object() == nil { // one message
				said = located{any: []any{said.any}, path: said.path}
			}
			if err := t.each(said, t.message); err != nil {
				return err
			}
		}
		return nil
	})
}

// replaceQuestion sets the task, unless text is empty.
func (t *talk) replaceQuestion(text string) {
	if strings.Trim(text, blanks) != "" {
		t.question = text
	}
}
