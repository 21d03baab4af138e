package agenttrace

import (
	"cmp"
	"maps"
	"slices"
	"strings"
)

// isBrowserUse reports whether root is a history or the list of its steps.
func isBrowserUse(root any) bool {
	return some(under(root, "history"), func(item any) bool {
		return has(item, "model_output") || has(item, "state", "result")
	})
}

// readBrowserUse reads a history. The answer is the content of the result that ends the task.
func readBrowserUse(t *talk, root located) error {
	items := root
	if _, ok := root.any.(map[string]any); ok {
		items = root.member("history")
	}
	if items.any == nil {
		return items.wrong("a list")
	}

	wrong := "" // the last error
	return t.each(items, func(item located) error {
		step, err := browserStep(item)
		if err != nil {
			return err
		}
		results, _ := get(item.any, "result").([]any)
		for _, result := range results {
			text, ok := get(result, "extracted_content").(string)
			if ok && get(result, "is_done") == true {
				t.answer = text
				feedback := "success: " + jsonText(get(result, "success"))
				t.feedback = &feedback
				t.judgeBrowser(get(result, "success"), wrong)
			}
			if text, ok := get(result, "error").(string); ok && text != "" {
				wrong = text
			}
		}
		return t.add(step, step.Action, step.content())
	})
}

// judgeBrowser notes whether the agent claims success. If not, wrong, the last error, is the cause
// of the failure.
func (t *talk) judgeBrowser(success any, wrong string) {
	switch success {
	case true:
		t.pass()
	case false:
		t.fail(cmp.Or(wrong, "the agent says that it did not succeed"))
	}
}

// browserBrain maps the members that hold the model's thoughts to labels. Older versions keep
// them in current_state.
var browserBrain = [][2]string{
	{"thinking", "Thinking"},
	{"evaluation_previous_goal", "Evaluation of the previous goal"},
	{"memory", "Memory"},
	{"next_goal", "Next goal"},
}

// noAction is the action of a step for which the model gave none.
const noAction = "no_action"

func browserStep(item located) (Step, error) {
	var none Step
	if err := item.object(); err != nil {
		return none, err
	}
	output := item.member("model_output")
	thoughts, err := browserThoughts(output)
	if err != nil {
		return none, err
	}

	names, calls, err := browserActions(output.member("action"))
	if err != nil {
		return none, err
	}
	results, err := browserResults(item.member("result"))
	if err != nil {
		return none, err
	}

	step := Step{
		Action: noAction, Thought: strings.Join(append(thoughts, calls...), "\n"),
		Observation: strings.Join(results, "\n"),
		Timestamp:   item.member("metadata").member("step_start_time").seconds(),
	}

	if len(names) > 0 {
		step.Action = actionToolCall + strings.Join(names, ",")
	}
	metadata := map[string]any{}
	for _, key := range []string{"url", "title"} {
		text, err := item.member("state").member(key).text()
		if err != nil {
			return none, err
		}
		if text != "" {
			metadata[key] = text
		}
	}

	if len(metadata) > 0 {
		step.Metadata = metadata
	}
	return step, nil
}

func browserThoughts(output located) ([]string, error) {
	if output.any == nil {
		return nil, nil
	}
	if err := output.object(); err != nil {
		return nil, err
	}
	if old := output.member("current_state"); old.any != nil {
		output = old
	}

	var lines []string
	for _, part := range browserBrain {
		text, err := output.member(part[0]).text()
		if err != nil {
			return nil, err
		}
		if text != "" {
			lines = append(lines, part[1]+": "+text)
		}
	}

	return lines, nil
}

// browserActions returns the names of the actions, and each action as NAME(PARAMETERS).
func browserActions(actions located) (names, calls []string, err error) {
	list, err := actions.list()
	if err != nil {
		return nil, nil, err
	}
	for _, action := range list {
		if err := action.object(); err != nil {
			return nil, nil, err
		}
		object, _ := action.any.(map[string]any)
		for _, name := range slices.Sorted(maps.Keys(object)) {
			if object[name] == nil || name == "interacted_element" {
				continue // dumps contain every possible action, most with null
			}
			names = append(names, name)
			calls = append(calls, "Action: "+name+"("+jsonText(object[name])+")")
		}
	}

	return names, calls, nil
}

// browserResults returns a line for each result.
func browserResults(results located) ([]string, error) {
	list, err := results.list()
	if err != nil {
		return nil, err
	}
	var lines []string
	for _, result := range list {
		if err := result.object(); err != nil {
			return nil, err
		}
		for _, part := range []struct{ key, label string }{
			{"error", "[ERROR] "}, {"extracted_content", ""}, {"long_term_memory", "Memory: "},
		} {
			text, err := result.member(part.key).text()
			if err != nil {
				return nil, err
			}
			if text != "" {
				lines = append(lines, part.label+text)
			}
		}

		done, err := result.member("is_done").truth()
		if err != nil {
			return nil, err
		}
		if done {
			lines = append(lines, "[DONE] success: "+jsonText(result.member("success").any))
		}
	}

	return lines, nil
}
