package agenttrace

import (
	"errors"
	"fmt"
	"strings"
)

// isReasoning reports whether root is a string.
func isReasoning(root any) bool {
	_, ok := root.(string)
	return ok
}

// readReasoning reads a text with numbered steps.
func readReasoning(t *talk, root located) error {
	text, ok := root.any.(string)
	if !ok {
		return root.wrong("text")
	}
	if strings.Trim(text, blanks) == "" {
		return errors.New("it is empty")
	}
	if err := root.checkLength(text); err != nil {
		return err
	}

	t.keep(output{Reasoning: text}, fromReasoning(text))
	return nil
}

// isAgent reports whether root is an agent's output: an object, or a text with speakers.
func isAgent(root any) bool {
	text, _ := root.(string)
	return speakerMark.MatchString(text) || hasAny(root, "reasoning", "final_answer")
}

// readAgent reads an agent's output, which may be only text.
func readAgent(t *talk, root located) error {
	o, err := agentOutput(root)
	if err != nil {
		return err
	}
	t.keep(o, fromAgent(o))
	return nil
}

// keep adopts the steps of an agent's output.
func (t *talk) keep(o output, made *Trace) {
	t.steps = append(t.steps, made.steps...)
	if made.raw != "" {
		t.raw = append(t.raw, made.raw)
	}
	t.agents = append(t.agents, o.step("agent"))
}

// step returns the output as a step of the canonical dict.
func (o output) step(role string) AgentStep {
	if o.SkillIDs == nil {
		o.SkillIDs = []string{}
	}
	return AgentStep{Role: role, Reasoning: o.Reasoning, Answer: o.FinalAnswer, SkillIDs: o.SkillIDs}
}

// agentOutput reads the members of an agent's output.
func agentOutput(root located) (o output, err error) {
	if text, ok := root.any.(string); ok {
		return output{Reasoning: text}, root.checkLength(text)
	}
	if err := root.object(); err != nil {
		return o, err
	}
	if o.Reasoning, err = root.member("reasoning").text(); err != nil {
		return o, err
	}
	if o.FinalAnswer, err = root.first("final_answer", "answer").show(); err != nil {
		return o, err
	}

	o.SkillIDs, err = skillIDs(root.member("skill_ids"))
	return o, err
}

func skillIDs(ids located) ([]string, error) {
	list, err := ids.list()
	if err != nil {
		return nil, err
	}
	all := make([]string, len(list))
	for i, id := range list {
		if all[i], err = id.text(); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// isTraces reports whether root is the canonical dict of a task and an agent's steps.
func isTraces(root any) bool {
	return some(get(root, "steps"), func(step any) bool {
		return hasAny(step, "reasoning", "answer", "final_answer")
	})
}

// readTraces reads the canonical dict.
func readTraces(t *talk, root located) error {
	if err := root.object(); err != nil {
		return err
	}
	list, err := root.member("steps").list()
	if err != nil {
		return err
	}

	t.rule = "\n\n---\n\n"
	for _, step := range list {
		o, err := agentOutput(step)
		if err != nil {
			return err
		}
		role, err := step.member("role").text()
		if err != nil {
			return err
		}
		if role == "" {
			role = "agent"
		}

		t.keep(o, fromAgent(o))
		t.agents[len(t.agents)-1].Role = role
		if len(t.steps) > MaxSteps {
			return fmt.Errorf("the trace has more than %d steps", MaxSteps)
		}
	}

	return nil
}
