package agenttrace

import (
	"slices"
	"strings"
)

// resultText returns the text of a result, which is a string, parts, or any other JSON.
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
			return content.show() // a list, but not of parts
		}
		texts[i] = text
	}

	return strings.Join(texts, "\n"), nil
}

// innerPart returns the object that holds the members of a Gemini part.
func innerPart(part located) located {
	for _, key := range geminiParts {
		if inner := part.member(key); inner.any != nil {
			return inner
		}
	}
	return part
}

var geminiParts = []string{
	"functionCall", "functionResponse", "function_call", "function_response",
}

// partKind returns the kind of a part or an item: "text", "call", "result", "thought", or "" for
// anything else. Libraries spell the names differently: tool_use, tool-call, functionCall.
func partKind(part located) string {
	name, _ := part.first("type", "from").any.(string)
	for _, key := range geminiParts {
		if name == "" && part.member(key).any != nil {
			name = key
		}
	}
	name = strings.ToLower(strings.NewReplacer("_", "", "-", "").Replace(name))

	ends := func(suffixes ...string) bool {
		return slices.ContainsFunc(suffixes, func(s string) bool { return strings.HasSuffix(name, s) })
	}
	switch {
	case part.member("thought").any == true, ends("thinking", "reasoning", "thought"):
		return "thought"
	case ends("tooluse", "call", "toolinvocation"):
		return "call"
	case ends("toolresult", "calloutput", "callresponse", "functionresponse"):
		return "result"
	case name == "" && part.member("text").any != nil, ends("text", "refusal", "message"):
		return "text"
	}

	return ""
}

// partText returns the text of a part, or the name of another kind of part, such as
// "[image_url]". Calls, results and thoughts have no text.
func partText(part located) (text string, ok bool, err error) {
	if s, isText := part.any.(string); isText {
		return s, true, nil
	}
	if err := part.object(); err != nil {
		return "", false, part.wrong("text or an object")
	}

	name, err := part.member("type").text()
	if err != nil {
		return "", false, err
	}
	kind := partKind(part)
	switch {
	case kind == "text":
		text, err = part.first("text", "content", "refusal").text()
		return text, true, err
	case kind != "":
		return "", false, nil
	case part.member("text").any != nil:
		text, err = part.member("text").text()
		return text, true, err
	}

	if keys := part.keys(); name == "" && len(keys) > 0 {
		name = keys[0] // Gemini names the kind of a part by its member
	}
	return "[" + name + "]", true, nil
}
