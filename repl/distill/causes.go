package distill

import (
	"encoding/json"
	"strconv"
	"strings"

	"github.com/rlmhq/rlm/internal/text/lazyregexp"
	"github.com/rlmhq/rlm/internal/text/texts"
)

// The members of a trace and of its error, in order of precedence.
var (
	idMembers        = []string{"id", "trace_id", "run_id"}
	componentMembers = []string{"component", "agent", "tool", "name"}
	errorMembers     = []string{
		"error", "exception", "failure", "traceback", "reason", "error_message", "statusMessage",
		"status_message", "incomplete_details", "feedback",
	}
	typeMembers    = []string{"type", "error_type", "exception_type", "class", "name", "code"}
	messageMembers = []string{
		"message", "msg", "detail", "error_message", "description", "error", "reason", "stderr",
	}
)

// hasFailed reports whether a trace shows a failure, as stated by the first mark found, and whether
// it has any mark.
func hasFailed(members map[string]json.RawMessage, message string) (failed, marked bool) {
	for _, name := range []string{"success", "passed", "ok"} {
		if ok, err := strconv.ParseBool(string(members[name])); err == nil {
			return !ok, true
		}
	}
	if reward, err := strconv.ParseFloat(string(members["reward"]), 64); err == nil {
		return reward < 1, true
	}
	if marked, err := strconv.ParseBool(string(members["error"])); err == nil && marked {
		return true, true
	}

	if strings.EqualFold(firstMember(members, "level"), "error") {
		return true, true
	}
	status := strings.ToLower(statusOf(members))
	return !successes[status] && (message != "" || status != ""), message != "" || status != ""
}

// successes are words that describe a successful run.
var successes = map[string]bool{
	"ok": true, "success": true, "succeeded": true, "passed": true, "pass": true,
	"completed": true, "done": true, "status_code_ok": true, "unset": true,
	"status_code_unset": true,
}

// statusOf returns the status of a trace. If the status is an object, as in spans, it returns the
// code.
func statusOf(members map[string]json.RawMessage) string {
	if object := asObject(members["status"]); object != nil {
		return firstMember(object, "code", "status_code")
	}
	return firstMember(members, "status", "outcome")
}

// errorOf returns the type and message of a trace's error; both are empty without an error.
func errorOf(members map[string]json.RawMessage) (kind, message string) {
	for _, name := range errorMembers {
		if value := members[name]; string(value) != "true" {
			if kind, message = readError(value, 0); message != "" {
				break
			}
		}
	}
	if object := asObject(members["status"]); message == "" && object != nil {
		message = firstMember(object, "message", "description")
	}
	if kind == "" {
		kind = firstMember(members, "error_type", "exception_type")
	}
	return kind, message
}

// deepestError bounds the nesting of objects around an error message.
const deepestError = 4

// readError reads an error: a string, or an object with a type and a message. The message may
// itself be an object.
func readError(value json.RawMessage, depth int) (kind, message string) {
	object := asObject(value)
	if object == nil || depth == deepestError {
		text := firstMember(map[string]json.RawMessage{"": value}, "")
		if inner := asObject(json.RawMessage(text)); inner != nil && depth < deepestError {
			return readError(json.RawMessage(text), depth+1)
		}
		return splitError(text)
	}

	for _, name := range messageMembers {
		inner, text := readError(object[name], depth+1)
		if text != "" {
			kind, message = inner, text
			break
		}
	}
	if own := firstMember(object, typeMembers...); own != "" && asObject(object["error"]) == nil {
		kind = own
	}
	if message == "" {
		return kind, firstMember(map[string]json.RawMessage{"": value}, "")
	}
	return kind, message
}

var errorPrefix = lazyregexp.New(`^(?:[a-z_][\w]*\.)*` +
	`([A-Z]\w*(?:Error|Exception|Timeout|Warning|Exit|Interrupt|Failure))\b:?\s*`)

// splitError returns the type at the beginning of an error, and its message. In a Python traceback,
// it reads the last line.
func splitError(text string) (kind, message string) {
	text = strings.TrimSpace(text)
	if strings.HasPrefix(text, "Traceback (most recent call last)") {
		text = strings.TrimSpace(text[strings.LastIndexByte(text, '\n')+1:])
	}
	match := errorPrefix.FindStringSubmatch(text)
	if match == nil {
		return "", text
	}
	return match[1], text[len(match[0]):]
}

// joinError joins the type and the message of an error.
func joinError(kind, message string) string {
	switch {
	case kind == "" || strings.Contains(message, kind):
		return message
	case message == "":
		return kind
	}
	return kind + ": " + message
}

// asObject returns a value as an object, or nil if it is not an object.
func asObject(value json.RawMessage) map[string]json.RawMessage {
	var object map[string]json.RawMessage
	if len(value) == 0 || value[0] != '{' || json.Unmarshal(value, &object) != nil {
		return nil
	}
	return object
}

// firstMember returns the first nonempty member, as a string.
func firstMember(members map[string]json.RawMessage, names ...string) string {
	for _, name := range names {
		if value := members[name]; len(value) > 0 && string(value) != "null" &&
			string(value) != "false" {
			text := strings.TrimSpace(texts.Show(value))
			if text != "" && text != "{}" && text != "[]" {
				return text
			}
		}
	}
	return ""
}
