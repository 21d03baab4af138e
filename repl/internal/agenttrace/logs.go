package agenttrace

import (
	"encoding/json"
	"math"
	"strconv"
	"strings"
	"time"
)

// nanos returns a point in time in nanoseconds since 1970, 0 if it is none: a number of
// seconds or of a smaller unit, or a text of RFC 3339, with or without a zone.
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

// inNanos is below the nanoseconds and above the microseconds of our time.
const inNanos = 1e17

// inSeconds returns a point in time in seconds, nil for 0.
func inSeconds(nanos int64) *float64 {
	if nanos == 0 {
		return nil
	}
	seconds := float64(nanos/1e6) / 1e3
	return &seconds
}

// when returns a point in time in seconds since 1970, nil if it is none.
func (l located) when() *float64 { return inSeconds(l.nanos()) }

// isClaudeCode reports whether lines have messages of Claude Code around those of Anthropic.
func isClaudeCode(root any) bool {
	speaks := typeIn("user", "assistant")
	return someItem(root, func(line any) bool {
		return speaks(line) && has(line, "message") && hasAny(line, "uuid", "sessionId", "session_id")
	})
}

// someItem is some for lists only.
func someItem(root any, holds func(any) bool) bool {
	list, ok := root.([]any)
	return ok && some(list, holds)
}

func readClaudeCode(t *talk, root located) error {
	return t.each(root, func(line located) error {
		if line.member("isMeta").any == true {
			return nil // what the program says to itself
		}

		t.now = line.member("timestamp").when()
		switch line.member("type").any {
		case "user", "assistant":
			if message := line.member("message"); message.any != nil {
				return t.message(message)
			}
		case "system":
			return t.content("system", line.member("content"))
		case "result": // of the SDK
			text, err := line.member("result").text()
			if err != nil {
				return err
			}
			if text != "" {
				t.answer = text
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
		case message.member("role").any == "bashExecution": // by the user
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

		return t.message(message)
	})
}

func isCodex(root any) bool {
	lines := typeIn("session_meta", "response_item", "event_msg", "turn_context")
	return someItem(root, func(line any) bool { return lines(line) && has(line, "payload") })
}

// readCodex reads the items of a session. Its events repeat them, except what the user typed:
// the items have the environment's description before it.
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

// isRecord reports whether lines are a record of this program: its turns, its events or both.
func isRecord(root any) bool {
	meta := typeIn("metadata")
	turn := typeIn("iteration")
	return someItem(root, func(line any) bool {
		return meta(line) && has(line, "root_model") ||
			turn(line) && hasAny(line, "code_blocks", "prompt")
	})
}

// readRecord reads the turns of a loop. The question is in its events, and the beginning of
// its first prompt; later prompts repeat the turns.
func readRecord(t *talk, root located) error {
	question, first := "", true
	err := t.each(root, func(line located) error {
		switch {
		case line.member("kind").any == "run_started":
			var err error
			question, err = line.member("text").text()
			return err
		case line.member("type").any != "iteration":
			return nil
		}

		t.now = line.member("timestamp").when()
		if first {
			first = false
			if err := t.each(line.member("prompt"), t.message); err != nil {
				return err
			}
		}
		return t.turn(line)
	})
	t.replaceQuestion(question)
	return err
}

// turn reads a turn of a record: the reply, and the code with its output.
func (t *talk) turn(line located) error {
	reply, err := line.member("response").text()
	if err != nil {
		return err
	}
	if err := t.say("assistant", reply); err != nil {
		return err
	}

	err = t.each(line.member("code_blocks"), func(block located) error {
		code, err := block.member("code").text()
		if err != nil {
			return err
		}
		var output []string
		for _, key := range []string{"stdout", "stderr"} {
			text, err := block.member("result").member(key).text()
			if err != nil {
				return err
			}
			if text != "" {
				output = append(output, text)
			}
		}

		t.answer = ""
		step := Step{
			Action: actionToolCall + "python", Thought: code, Observation: strings.Join(output, "\n"),
		}
		if err := t.add(step, step.Action, step.content()); err != nil {
			return err
		}
		return t.each(block.member("result").member("rlm_calls"), t.subCall)
	})
	if err != nil {
		return err
	}

	if final := line.member("final_answer"); final.any != nil {
		t.answer, err = final.show()
	}
	return err
}

// subCall reads a question of a snippet to a model.
func (t *talk) subCall(call located) error {
	prompt, err := call.member("prompt").show()
	if err != nil {
		return err
	}
	response, err := call.member("response").show()
	if err != nil {
		return err
	}
	step := Step{Action: actionToolCall + "llm_query", Thought: prompt, Observation: response}
	return t.add(step, step.Action, step.content())
}
