package runs

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"

	"github.com/rlmhq/rlm/internal/text/lazyregexp"
	"github.com/rlmhq/rlm/internal/text/texts"
)

// textCall is a call of a client's tool that a model wrote as text.
type textCall struct {
	Name      string `json:"name"`
	Arguments string `json:"arguments"` // JSON
}

// textCalls reads calls that replies contain as text, because the model's server does not support
// the model's format for calls.
type textCalls struct {
	// types maps a tool and a parameter to the type that the tool declares, or to "".
	types map[string]map[string]string
}

// readTextCalls converts a reply with calls of tools to a value that satisfies the contract of
// functions. It returns nil unless the reply consists only of calls of these tools, with at most
// some words before them.
func readTextCalls(reply string, tools []json.RawMessage) json.RawMessage {
	t := textCalls{map[string]map[string]string{}}
	for _, tool := range tools {
		t.learn(tool)
	}
	if len(reply) > maxTextCalls {
		return nil
	}
	text := strings.TrimSpace(reply)
	if !texts.IsToolCall(text) { // some marks are used for both calls and thoughts
		text = strings.TrimSpace(texts.DropThoughts(text))
	}
	calls, words := t.read(text)
	if len(calls) == 0 {
		return nil
	}
	value, err := json.Marshal(struct {
		Calls  []textCall `json:"calls"`
		Answer string     `json:"answer"`
	}{calls, words})
	if err != nil {
		return nil
	}
	return value
}

// learn records the types of a tool's parameters.
func (t *textCalls) learn(tool json.RawMessage) {
	var declared struct {
		Name       string `json:"name"`
		Parameters struct {
			Properties map[string]json.RawMessage `json:"properties"`
		} `json:"parameters"`
	}
	_ = json.Unmarshal(tool, &declared) // a tool that cannot be decoded declares no types
	t.types[declared.Name] = map[string]string{}
	for name, schema := range declared.Parameters.Properties {
		var property struct {
			Type string `json:"type"`
		}
		_ = json.Unmarshal(schema, &property)
		t.types[declared.Name][name] = property.Type
	}
}

// read returns the calls of a reply, or nil if there are none, and the words before them.
func (t *textCalls) read(text string) (calls []textCall, words string) {
	found := texts.FindToolCalls(text)
	if found == nil {
		return t.readValue([]byte(unfence(text)), true, 0), ""
	}

	words = strings.TrimSpace(text[:found[0][0]])
	if isQuoted(text[:found[0][0]]) {
		return nil, ""
	}
	return t.readMarked(text, found, 0), words
}

var (
	// inMarks matches text that ends with the beginning of a line that is quoted, indented or a
	// list item, or with an opening quotation mark, bracket or tag.
	inMarks = lazyregexp.New("(?:^|\n)(?: {0,3}>[^\n]*| {4,}| *\t[ \t]*| *(?:[-*+]|\\d+[.)])[ \t]+)$|" +
		`[“‘«‹„<>(]\s*$`)
	// reports matches a last line that quotes something, and declines a last line that says what
	// not to call.
	reports = lazyregexp.New(`(?i)\b(?:says?|said|saying|reads|wrote|written|contain(?:s|ed|ing)|quot(?:es?|ed)|` +
		`examples?|injected)\b[^.!?\n]*\s*$`)
	declines = lazyregexp.New(`(?i)(?:\bnot|n['’]t|\bnever) (?:call|run|obey|follow|execute)\b[^.!?\n]*\s*$`)
	// intends matches a last line in which the model says what it does next.
	intends = lazyregexp.New(`(?i)(?:\blet(?: me|['’]s)|\bI(?:['’]ll| will| need| should|['’]m going| am going))\b` +
		`[^\n]*\s*$`)
)

// isQuoted reports whether a model only quotes the call that follows words: because a fence
// surrounds the call, or because the words say so. The quoted text of a tool's result must not
// become a call.
func isQuoted(words string) bool {
	return strings.Contains(words, "```") || strings.Contains(words, "~~~") || inMarks.MatchString(words) ||
		declines.MatchString(words) || reports.MatchString(words) && !intends.MatchString(words)
}

// maxTextNested bounds the nesting depth of calls, and maxTextCalls the size of a reply with calls,
// in bytes.
const (
	maxTextNested = 4
	maxTextCalls  = 4 << 20
)

// recipient matches the name of the tool in the opening mark of a call, as OpenAI's open models
// write it.
var recipient = lazyregexp.New(`\bto=(?:functions\.)?([\w-]+)`)

// readMarked reads calls between marks. There must be no text between or after the calls.
func (t *textCalls) readMarked(text string, found [][]int, depth int) (all []textCall) {
	at := found[0][0]
	for _, one := range found {
		if strings.TrimSpace(text[at:one[0]]) != "" {
			return nil
		}
		at = one[1]

		tool := ""
		if m := recipient.FindStringSubmatch(text[one[0]:one[2]]); m != nil {
			tool = m[1]
		}
		calls := t.readInner(tool, text[one[2]:one[3]], depth)
		if len(calls) == 0 {
			return nil
		}
		all = append(all, calls...)
	}
	if strings.TrimSpace(text[at:]) != "" {
		return nil
	}
	return all
}

var (
	// textHeader matches the name of the tool before the arguments of a call.
	textHeader = lazyregexp.New(`^(?:(?:=|name=)"?([\w-]+)"?>|function<[｜|]tool[▁_]sep[｜|]>([\w-]+)\s*\n` +
		`|(?:functions\.)?([A-Za-z_][\w-]*)(?::\d+)?(?:<\|\w+\|>|<[｜|]tool[▁_]sep[｜|]>|\[ARGS\]|\s*\n?✿ARGS✿:))`)
	// textName matches a name directly before a JSON object or before arguments in tags.
	textName = lazyregexp.New(`^([A-Za-z_][\w-]*)\s*(\{|<(?:longcat_)?arg_key>)`)
	// textParameter matches an argument in a tag.
	textParameter = lazyregexp.New(`(?s)<(?:antml:|｜DSML｜)?parameter(?:=|\s+name=)"?([\w-]+)"?[^>]*>(.*?)` +
		`</(?:antml:|｜DSML｜)?parameter>|<(?:longcat_)?arg_key>([\w-]+)</(?:longcat_)?arg_key>\s*` +
		`<(?:longcat_)?arg_value>(.*?)</(?:longcat_)?arg_value>`)
)

// readInner reads the text between the marks of one or several calls.
func (t *textCalls) readInner(tool, text string, depth int) []textCall {
	inner := texts.FindToolCalls(text)
	if len(inner) > 0 && strings.TrimSpace(text[:inner[0][0]]) == "" {
		if depth == maxTextNested {
			return nil
		}
		return t.readMarked(text, inner, depth+1)
	}

	rest := strings.TrimSpace(text)
	if header := textHeader.FindStringSubmatch(rest); header != nil && tool == "" {
		tool, rest = header[1]+header[2]+header[3], rest[len(header[0]):]
	} else if m := textName.FindStringSubmatch(rest); m != nil && tool == "" {
		tool, rest = m[1], rest[len(m[0])-len(m[2]):]
	}
	if tool == "" {
		return t.readValue([]byte(unfence(rest)), false, depth)
	}
	return t.call(tool, t.arguments(tool, rest))
}

// arguments returns the arguments after the name of a tool, or nil if they are unclear.
func (t *textCalls) arguments(tool, text string) json.RawMessage {
	list := textParameter.FindAllStringSubmatch(text, -1)
	if list == nil {
		if text = unfence(text); text == "" {
			text = "{}"
		}
		return json.RawMessage(text)
	}

	if strings.TrimSpace(textParameter.ReplaceAllString(text, "")) != "" {
		return nil
	}
	all := map[string]json.RawMessage{}
	for _, one := range list {
		name, value := one[1]+one[3], strings.Trim(one[2]+one[4], "\n")
		if _, isTwice := all[name]; isTwice {
			return nil
		}
		raw, err := json.Marshal(value)
		if err != nil {
			return nil
		}
		if kind := t.types[tool][name]; kind != "" && kind != "string" && json.Valid([]byte(value)) {
			raw = json.RawMessage(value)
		}
		all[name] = raw
	}
	raw, err := json.Marshal(all)
	if err != nil {
		return nil
	}
	return raw
}

// call returns a call, or nil if there is no such tool or the arguments are not an object.
func (t *textCalls) call(tool string, arguments json.RawMessage) []textCall {
	tool = strings.TrimPrefix(tool, "functions.")
	_, isKnown := t.types[tool]
	var text string
	if json.Unmarshal(arguments, &text) == nil { // JSON in a string
		arguments = json.RawMessage(text)
	}
	var object map[string]json.RawMessage
	if !isKnown || json.Unmarshal(arguments, &object) != nil || object == nil {
		return nil
	}
	var compact bytes.Buffer
	if json.Compact(&compact, arguments) != nil {
		return nil
	}
	return []textCall{{tool, compact.String()}}
}

// These are the names of the members of calls in JSON.
var (
	listKeys     = []string{"tool_calls", "calls"}
	nameKeys     = []string{"name", "tool_name", "tool", "function", "recipient_name", "action"}
	argumentKeys = []string{"arguments", "parameters", "input", "args", "action_input", "tool_input"}
	otherKeys    = []string{"id", "type", "index", "role"}
)

// readValue reads a call in JSON, or a list of calls. If isBare is set, there are no marks, and a
// call must have arguments.
func (t *textCalls) readValue(raw json.RawMessage, isBare bool, depth int) (all []textCall) {
	if depth > maxTextNested { // each level decodes the rest again
		return nil
	}
	var list []json.RawMessage
	if json.Unmarshal(raw, &list) == nil {
		for _, one := range list {
			calls := t.readValue(one, isBare, depth+1)
			if len(calls) == 0 {
				return nil
			}
			all = append(all, calls...)
		}
		return all
	}

	var object map[string]json.RawMessage
	if json.Unmarshal(raw, &object) != nil {
		return nil
	}
	var tool string
	var inner, arguments json.RawMessage
	count := 0
	for key, value := range object {
		isObject := len(value) > 0 && value[0] == '{'
		switch {
		case slices.Contains(listKeys, key), key == "function" && isObject:
			inner = value
		case slices.Contains(nameKeys, key):
			if tool != "" || json.Unmarshal(value, &tool) != nil {
				return nil
			}
		case slices.Contains(argumentKeys, key):
			arguments = value
			count++
		case slices.Contains(otherKeys, key), isEmpty(value):
		default:
			return nil
		}
	}

	switch {
	case inner != nil && tool == "" && count == 0:
		return t.readValue(inner, isBare, depth+1)
	case inner != nil || tool == "" || count > 1 || count == 0 && isBare:
		return nil
	case count == 0:
		arguments = json.RawMessage("{}")
	}
	return t.call(tool, arguments)
}

// isEmpty reports whether the value of a member is empty.
func isEmpty(value json.RawMessage) bool {
	return slices.Contains([]string{"null", `""`, "[]"}, string(value))
}

// unfence returns the content of a text that is a single fenced block, and any other text
// unchanged.
func unfence(text string) string {
	text = strings.TrimSpace(text)
	head, rest, isLines := strings.Cut(text, "\n")
	inner, isFenced := strings.CutSuffix(rest, "```")
	info, begins := strings.CutPrefix(strings.TrimSpace(head), "```")
	if !isLines || !isFenced || !begins || strings.Contains(inner, "```") || strings.ContainsAny(info, " `{") {
		return text
	}
	return strings.TrimSpace(inner)
}
