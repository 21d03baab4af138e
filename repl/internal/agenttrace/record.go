package agenttrace

import (
	"slices"
	"strings"
)

// isRecord reports whether lines are a record of this program: turns, events or both.
func isRecord(root any) bool {
	meta := typeIn("metadata")
	turn := typeIn("iteration")
	return someItem(root, func(line any) bool {
		return meta(line) && has(line, "root_model") ||
			turn(line) && hasAny(line, "code_blocks", "prompt")
	})
}

// splitRecord returns the loops of a record: each begins with its metadata. The events belong to
// all loops and go to the first. A loop that failed before any reply has only a failure, which is
// in the events.
func splitRecord(root located) ([]located, error) {
	list, err := root.list()
	if err != nil {
		return nil, err
	}

	var events []any
	loops := [][]any{nil}
	for _, line := range list {
		switch {
		case line.member("kind").any != nil:
			events = append(events, line)
			continue
		case line.member("type").any == "metadata":
			loops = append(loops, nil)
		}
		loops[len(loops)-1] = append(loops[len(loops)-1], line)
	}
	loops = slices.DeleteFunc(loops, func(lines []any) bool {
		return !slices.ContainsFunc(lines, func(line any) bool {
			turn, _ := line.(located)
			return hasText(turn.any, "prompt") || hasText(turn.any, "response") ||
				hasText(turn.any, "code_blocks")
		})
	})
	if len(loops) == 0 {
		loops = [][]any{nil}
	}

	parts := make([]located, len(loops))
	loops[0] = append(events, loops[0]...)
	for i, lines := range loops {
		parts[i] = located{any: lines, path: root.path}
	}
	return parts, nil
}

// hasText reports whether a member is a nonempty string or list.
func hasText(v any, key string) bool {
	switch v := get(v, key).(type) {
	case string:
		return v != ""
	case []any:
		return len(v) > 0
	}
	return false
}

// readRecord reads the turns of a loop. The question is in the events, and the start of the loop is
// in its first prompt; later prompts repeat the turns. Failures become steps at the end.
func readRecord(t *talk, root located) error {
	lines, _ := root.any.([]any)
	question, first := "", true
	var failures []Step
	for _, line := range lines {
		line, _ := line.(located)
		t.now = line.first("timestamp", "time").when()
		kind, _ := line.member("kind").any.(string)
		switch {
		case kind == "run_started":
			text, err := line.member("text").text()
			if err != nil {
				return err
			}
			question = text
		case kind != "":
			text, err := line.member("error").text()
			if err != nil {
				return err
			}
			if text != "" && (kind == "run_ended" || kind == "loop_ended") {
				failures = append(failures, Step{Action: kind, Observation: "[ERROR] " + text, Timestamp: t.now})
			}
			if kind == "run_ended" {
				if err := line.member("status").set(&t.feedback); err != nil {
					return err
				}
				status, _ := line.member("status").any.(string)
				t.ended(status, text)
			}
		case line.member("type").any == "iteration":
			if first {
				if err := t.each(line.member("prompt"), t.message); err != nil {
					return err
				}
			}
			first = false
			if err := t.turn(line); err != nil {
				return err
			}
		}
	}

	t.replaceQuestion(question)
	for _, s := range failures {
		if err := t.add(s, s.Action, s.Observation); err != nil {
			return err
		}
	}
	return nil
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

// subCall reads a snippet's question to a model.
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
