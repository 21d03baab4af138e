package turns

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/rlmhq/rlm/internal/text/lazyregexp"
	"github.com/rlmhq/rlm/tiers"
)

// objectStart matches the beginning of a line with an unmarked call, up to its object or function.
var objectStart = lazyregexp.New(`(?m)^[ \t]*(?:Action:[ \t]*([\w.]+)[ \t]*\n[ \t]*Action Input:[ \t]*|Action:[ \t]*|` +
	`functools)?(?:[\[{]|(?:[a-z_]+\.)?[A-Za-z_][\w.]*\(\s*(?:\w+\s*=\s*)?["'])`)

// findObjects returns the unmarked calls in text: JSON objects with code, and calls of the REPL as
// a function. Such a call must end its line.
func findObjects(text string) (found []piece) {
	if len(text) > maxBare {
		return nil
	}

	tries := 0
	for at := 0; at < len(text) && tries < maxTries; tries++ {
		m := objectStart.FindStringSubmatchIndex(text[at:])
		if m == nil {
			break
		}
		begin, tool := at+m[0], ""
		if m[2] >= 0 {
			tool = text[at+m[2] : at+m[3]]
		}
		start := at + m[1] - 1
		for start > begin && text[start] != '{' && text[start] != '[' {
			start = begin
		}

		all, length := readBare(tool, text[start:])
		isWhole := length > 0 && restOfLine(text[start+length:]) == ""
		if lead := lastLine(text[:begin]); !isWhole || condition.MatchString(lead) || report.MatchString(lead) {
			at += m[1]
			continue
		}
		at = start + length
		for _, c := range all {
			p := c.piece(begin, at)
			p.isNameless = c.tool == ""
			found = append(found, p)
		}
	}

	return found
}

// lastLine returns the last nonblank line of text.
func lastLine(text string) string {
	text = strings.TrimRight(text, " \t\n")
	return lineBefore(text, len(text))
}

// readBare reads the unmarked calls at the beginning of text, and returns their length. An object
// must have no other meaning.
func readBare(tool, text string) (all []call, length int) {
	if name, source, length, ok := readFunction(text); ok {
		return []call{{tool: name, source: source}}, length
	}

	if !strings.HasPrefix(text, "{") && !strings.HasPrefix(text, "[") {
		return nil, 0
	}

	var value any
	decoder := json.NewDecoder(strings.NewReader(text))
	if decoder.Decode(&value) != nil || !isCall(tool, value) {
		return nil, 0
	}

	return readValue(tool, value), int(decoder.InputOffset())
}

// beside holds the members that an object may have in addition to a call or code.
var beside = strings.Fields("thought thoughts thinking reasoning explanation plan comment description language lang " +
	"id type call_id tool_call_id index")

// isCall reports whether a value is a call or a list of calls, and nothing else.
func isCall(tool string, value any) bool {
	if list, ok := value.([]any); ok {
		return len(list) > 0 && !slices.ContainsFunc(list, func(item any) bool {
			object, ok := item.(map[string]any)
			return !ok || !isCall(tool, object) || hasCode(object)
		})
	}

	in, ok := value.(map[string]any)
	if !ok {
		return false
	}

	names, arguments, codes, others := 0, 0, 0, 0
	for key, value := range in {
		_, isText := value.(string)
		isCode := isText && slices.Contains(codeKeys, key)
		switch {
		case key == "tool_calls" || key == "function_call" || key == "tool_call":
			return isMessage(in) && isCall("", unwrapFunctions(value))
		case isText && slices.Contains(nameKeys, key):
			names++
		case slices.Contains(argumentKeys, key):
			arguments++
		case isCode || tool != "" && isText && slices.Contains(otherKeys, key):
			codes++
		case slices.Contains(beside, strings.ToLower(key)):
		default:
			others++
		}
	}

	if language, named := in["language"].(string); named {
		if known, runs := languageOf(language); !runs || known != tiers.Python {
			return false
		}
	}

	if len(in) == 1 && others == 1 {
		for name, value := range in {
			_, isObject := value.(map[string]any)
			return isObject && isPythonTool(name)
		}
	}

	return others == 0 && (names == 1 && arguments == 1 && codes == 0 ||
		names == 0 && arguments == 0 && codes == 1 || tool != "" && names+arguments+codes == 1)
}

// hasCode reports whether an object has code without the name of a tool.
func hasCode(in map[string]any) bool {
	return slices.ContainsFunc(codeKeys, func(key string) bool { return in[key] != nil })
}

// isMessage reports whether an object is a message that only calls tools, without text.
func isMessage(in map[string]any) bool {
	for key := range in {
		if !slices.Contains(strings.Fields("role content tool_calls function_call tool_call"), key) {
			return false
		}
	}

	return in["content"] == nil || in["content"] == ""
}

// unwrapFunctions returns the functions of the calls in OpenAI's format.
func unwrapFunctions(value any) any {
	list, ok := value.([]any)
	if !ok {
		return value
	}

	inner := make([]any, len(list))
	for i, item := range list {
		inner[i] = item
		if object, ok := item.(map[string]any); ok && object["function"] != nil {
			inner[i] = object["function"]
		}
	}

	return inner
}
