package agenttrace

import (
	"fmt"
	"strings"
)

func isATIF(root any) bool {
	version, _ := get(root, "schema_version").(string)
	return strings.HasPrefix(version, "ATIF") || some(get(root, "steps"), func(step any) bool {
		return has(step, "step_id", "source")
	})
}

// readATIF reads a trajectory, followed by those of its sub-agents.
func readATIF(t *talk, root located) error {
	err := t.each(root.member("steps"), func(step located) error {
		t.now = step.member("timestamp").when()
		if err := t.message(step); err != nil {
			return err
		}
		return t.each(step.member("observation").member("results"), t.result)
	})
	if err != nil {
		return err
	}

	question, answer := t.question, t.answer
	if err := t.each(root.member("subagent_trajectories"), func(sub located) error {
		return readATIF(t, sub)
	}); err != nil {
		return err
	}
	t.question, t.answer = question, answer
	return nil
}

func isSWEAgent(root any) bool {
	return some(get(root, "trajectory"), func(turn any) bool {
		return has(turn, "action", "observation")
	})
}

// readSWEAgent reads the turns of a trajectory. The history holds the prompts and the task.
func readSWEAgent(t *talk, root located) error {
	if root.member("trajectory").any == nil {
		return root.member("trajectory").wrong("a list")
	}
	if err := t.each(root.member("history"), t.prompt); err != nil {
		return err
	}

	err := t.each(root.member("trajectory"), func(turn located) error {
		for _, key := range []string{"thought", "response"} {
			before := len(t.steps)
			if err := t.reasoning(turn.member(key)); err != nil {
				return err
			}
			if len(t.steps) > before {
				break
			}
		}

		command, err := turn.member("action").text()
		if err != nil {
			return err
		}
		output, err := turn.member("observation").show()
		if err != nil {
			return err
		}
		command = strings.Trim(command, blanks)
		name, _, _ := strings.Cut(command, " ")
		name, _, _ = strings.Cut(name, "\n")
		step := Step{Action: actionToolCall + name, Thought: command, Observation: output}
		if name == "" {
			step.Action = noAction
		}
		return t.add(step, step.Action, step.content())
	})
	if err != nil {
		return err
	}

	return t.ending(root.member("info"))
}

// prompt reads the system prompt and the task in a history. It skips demonstrations.
func (t *talk) prompt(m located) error {
	if m.member("is_demo").any == true {
		return nil
	}
	text, err := contentText(m.member("content"))
	if err != nil {
		return err
	}

	switch m.member("role").any {
	case "system":
		if t.system == "" {
			t.system = text
		}
	case "user":
		if t.question == "" {
			return t.say("user", text)
		}
	}

	return nil
}

// ending reads the outcome of a coding agent's run.
func (t *talk) ending(info located) error {
	submission, err := info.member("submission").show()
	if err != nil {
		return err
	}
	if submission != "" {
		t.answer = submission
	}
	if status, ok := info.member("exit_status").any.(string); ok {
		t.submitted(status)
	}
	return info.member("exit_status").set(&t.feedback)
}

func isMiniSWEAgent(root any) bool {
	format, _ := get(root, "trajectory_format").(string)
	return strings.HasPrefix(format, "mini-swe-agent") ||
		has(root, "messages") && hasAny(get(root, "info"), "mini_version", "exit_status")
}

func readMiniSWEAgent(t *talk, root located) error {
	if err := t.listen(root.member("messages")); err != nil {
		return err
	}
	return t.ending(root.member("info"))
}

func isTauV1(root any) bool { return has(root, "traj") && hasAny(root, "reward", "info") }

func readTauV1(t *talk, root located) error {
	if err := t.listen(root.member("traj")); err != nil {
		return err
	}
	task := root.member("info").member("task")
	instruction, err := task.member("instruction").text()
	if err != nil {
		return err
	}
	t.replaceQuestion(instruction)

	for _, key := range []string{"outputs", "actions"} {
		if list, _ := task.member(key).any.([]any); len(list) > 0 && t.truth == nil {
			if err := task.member(key).set(&t.truth); err != nil {
				return err
			}
		}
	}

	return t.reward(root.member("reward"), "")
}

// reward reads the reward of a benchmark, for which less than 1 is a failure, and the reason why
// the run ended.
func (t *talk) reward(reward located, ending string) error {
	if reward.any == nil {
		return nil
	}
	text, err := reward.show()
	text = "reward: " + text
	t.feedback = &text

	if number := reward.seconds(); number != nil && *number < 1 {
		if ending != "" {
			text += ", ended by " + ending
		}
		t.fail(text)
	} else if number != nil {
		t.pass()
	}
	return err
}

// isTau reports whether messages have members that only tau-bench writes.
func isTau(root any) bool {
	return has(root, "simulations") || some(under(root, "messages"), func(m any) bool {
		return hasAny(m, "tool_messages", "requestor") ||
			someItem(get(m, "tool_calls"), func(call any) bool { return has(call, "requestor") })
	})
}

// splitTau returns the simulations of results.
func splitTau(root located) ([]located, error) {
	many := root.member("simulations")
	if many.any == nil {
		return []located{root}, nil
	}
	list, err := many.list()
	if err == nil && len(list) > MaxSteps {
		err = fmt.Errorf("there are more than %d simulations", MaxSteps)
	}
	return list, err
}

// readTau reads the messages of a simulation.
func readTau(t *talk, root located) error {
	if err := t.listen(listIn(root, "messages")); err != nil {
		return err
	}
	ending, _ := root.member("termination_reason").any.(string)
	return t.reward(root.member("reward_info").member("reward"), ending)
}

// listIn returns a list, or the list under a name in an object.
func listIn(root located, name string) located {
	if _, ok := root.any.(map[string]any); ok {
		return root.member(name)
	}
	return root
}
