package agenttrace

import (
	"encoding/json"
	"math"
	"strconv"
	"time"
)

// nanos returns a time in nanoseconds since 1970, or 0 if the value is not a time: a number of
// seconds or of a smaller unit, or a string in the format of RFC 3339, with or without a zone.
func (l located) nanos() int64 {
	text := ""
	switch v := l.any.(type) {
	case json.Number:
		text = v.String()
	case string:
		text = v
	}

	for _, layout := range []string{time.RFC3339Nano, "2006-01-02T15:04:05", time.DateTime} {
		if at, err := time.Parse(layout, text); err == nil {
			return at.UnixNano()
		}
	}
	if whole, err := strconv.ParseInt(text, 10, 64); err == nil && whole > inNanos {
		return whole
	}

	number, err := strconv.ParseFloat(text, 64)
	if err != nil || !(number > 0) {
		return 0
	}
	for number < inNanos {
		number *= 1000
	}
	return int64(min(number, math.MaxInt64/2))
}

// inNanos separates the units of present-day times: those in nanoseconds are above it, those in
// microseconds below.
const inNanos = 1e17

// inSeconds returns a time in seconds, or nil for 0.
func inSeconds(nanos int64) *float64 {
	if nanos == 0 {
		return nil
	}
	seconds := float64(nanos/1e6) / 1e3
	return &seconds
}

// when returns a time in seconds since 1970, or nil if the value is not a time.
func (l located) when() *float64 { return inSeconds(l.nanos()) }

// isClaudeCode reports whether the lines are messages of Claude Code, which wrap those of
// Anthropic.
func isClaudeCode(root any) bool {
	speaks := typeIn("user", "assistant")
	return someItem(root, func(line any) bool {
		return speaks(line) && has(line, "message") && hasAny(line, "uuid", "sessionId", "session_id")
	})
}

// someItem is like some, but only for lists.
func someItem(root any, holds func(any) bool) bool {
	list, ok := root.([]any)
	return ok && some(list, holds)
}

func readClaudeCode(t *talk, root located) error {
	return t.each(root, func(line located) error {
		if line.member("isMeta").any == true {
			return nil // internal messages of the program
		}

		t.now = line.member("timestamp").when()
		switch line.member("type").any {
		case "user", "assistant":
			if message := line.member("message"); message.any != nil {
				return t.message(message)
			}
		case "system":
			return t.content("system", line.member("content"))
		case "result": // the SDK's last message
			text, err := line.member("result").text()
			if err != nil {
				return err
			}
			if text != "" {
				t.answer = text
			}
			if line.member("is_error").any == true {
				t.fail(plain(line.member("subtype").any) + " " + text)
			} else {
				t.pass()
			}
			return line.member("subtype").set(&t.feedback)
		}

		return nil
	})
}

func isOpenClaw(root any) bool {
	header := typeIn("session")
	message := typeIn("message")
	return someItem(root, func(line any) bool {
		return header(line) && has(line, "id") && hasAny(line, "cwd", "version") ||
			message(line) && hasRole(get(line, "message"))
	})
}

func readOpenClaw(t *talk, root located) error {
	return t.each(root, func(line located) error {
		t.now = line.member("timestamp").when()
		message := line.member("message")
		switch {
		case line.member("type").any == "custom_message":
			return t.content("user", line.member("content"))
		case line.member("summary").any != nil: // a compaction or a branch
			text, err := line.member("summary").text()
			if err != nil {
				return err
			}
			return t.say("system", text)
		case message.any == nil:
			return nil
		case message.member("role").any == "bashExecution": // run by the user
			text, err := message.member("command").text()
			if err != nil {
				return err
			}
			output, err := message.member("output").show()
			if err != nil {
				return err
			}
			step := Step{Action: actionToolCall + "bash", Thought: text, Observation: output}
			step.Metadata = map[string]any{"requestor": "user"}
			return t.add(step, step.Action, step.content())
		}

		switch message.member("stopReason").any {
		case "error", "aborted":
			t.fail(plain(message.member("errorMessage").any, message.member("stopReason").any))
		default: // the task continued
			t.verdict = Verdict{}
		}
		return t.message(message)
	})
}

func isCodex(root any) bool {
	lines := typeIn("session_meta", "response_item", "event_msg", "turn_context")
	return someItem(root, func(line any) bool { return lines(line) && has(line, "payload") })
}

// readCodex reads the items of a session. The events repeat the items, except for the user's own
// text, which a description of the environment precedes in the items.
func readCodex(t *talk, root located) error {
	typed := ""
	err := t.each(root, func(line located) error {
		t.now = line.member("timestamp").when()
		payload := line.member("payload")
		switch line.member("type").any {
		case "session_meta":
			prompt, err := contentText(payload.first("base_instructions", "instructions"))
			t.system = prompt
			return err
		case "response_item":
			return t.message(payload)
		case "event_msg":
			switch payload.member("type").any {
			case "error", "turn_aborted":
				t.fail(plain(payload.first("message", "reason").any, failed))
			case "task_started": // the task continued
				t.verdict = Verdict{}
			}
			text, isText := payload.member("message").any.(string)
			if isText && typed == "" && payload.member("type").any == "user_message" {
				typed = text
			}
		}

		return nil
	})
	t.replaceQuestion(typed)
	return err
}
