package agenttrace

import (
	"strings"

	"github.com/rlmhq/rlm/internal/text/lazyregexp"
)

// output is an agent's output for a task.
type output struct {
	Reasoning   string
	FinalAnswer string
	SkillIDs    []string // IDs of the skills that the agent reports having used
}

// blanks are trimmed from both ends of each part of a text.
const blanks = " \t\r\n"

// speakerMark matches the beginning of a line of a conversation; number, that of a numbered
// step.
var (
	speakerMark = lazyregexp.New(`(?mi)^[ \t]*\[(assistant|user)\]`)
	numberMark  = lazyregexp.New(`(?m)^[ \t]*(?:[Ss]tep[ \t]+)?[0-9]{1,3}[.):][ \t]`)
)

// fromAgent makes a trace from an agent's output: a step for each line of its reasoning
// that begins with [assistant] or [user], or one step if there is no such line. The
// answer is the observation of the last step.
func fromAgent(o output) *Trace {
	var steps []Step
	for _, p := range pieces(speakerMark, o.Reasoning) {
		action := actionReasoning // the text before the first marker
		switch {
		case strings.EqualFold(p.mark, "[user]"):
			action = actionUser
		case p.mark != "":
			action = actionAgent
		}

		steps = append(steps, Step{Action: action, Thought: p.text})
	}

	if len(steps) == 0 {
		steps = []Step{{Action: actionReasoning, Thought: o.Reasoning}}
	}
	if o.FinalAnswer != "" {
		steps[len(steps)-1].Observation = "Answer: " + o.FinalAnswer
	}

	return newTrace(steps, o.Reasoning, "")
}

// fromReasoning makes a trace from reasoning: a step for each line that begins with a number ("1.",
// "2)", "Step 3:"), with the lines after it, or one step if there is no such line.
func fromReasoning(reasoning string) *Trace {
	var steps []Step
	for _, p := range pieces(numberMark, reasoning) {
		steps = append(steps, Step{Action: actionReasoning, Thought: p.text})
	}
	if len(steps) == 0 {
		steps = []Step{{Action: actionReasoning, Thought: strings.Trim(reasoning, blanks)}}
	}
	return newTrace(steps, reasoning, "")
}

// piece is a part of a text and the mark before it.
type piece struct{ mark, text string }

// pieces splits a text before each mark; the first piece may have none. Empty pieces are left out.
// A text without a mark has no pieces. If there are more marks than the bound on steps, the last
// piece contains the rest.
func pieces(mark *lazyregexp.Regexp, text string) []piece {
	var all []piece
	last := piece{}
	from := 0
	add := func(to int) {
		if last.text = strings.Trim(text[from:to], blanks); last.text != "" {
			all = append(all, last)
		}
	}

	found := mark.FindAllStringIndex(text, MaxSteps-1)
	for _, at := range found {
		add(at[0])
		last, from = piece{mark: strings.Trim(text[at[0]:at[1]], blanks)}, at[1]
	}
	if found != nil {
		add(len(text))
	}

	return all
}

// isLangChain reports whether root is a result with intermediate steps, or their list.
func isLangChain(root any) bool {
	if has(root, "intermediate_steps") {
		return true
	}
	return every(root, func(item any) bool {
		pair, _ := item.([]any)
		return len(pair) == 2 && hasAny(pair[0], "tool", "kwargs") || has(item, "action", "observation")
	})
}

// readLangChain reads intermediate steps, and the output of the agent's result.
func readLangChain(t *talk, root located) error {
	pairs := root
	if _, ok := root.any.(map[string]any); ok {
		pairs = root.member("intermediate_steps")
	}
	if pairs.any == nil {
		return pairs.wrong("a list")
	}
	if err := t.each(pairs, t.actionAndObservation); err != nil {
		return err
	}

	output, err := root.member("output").show()
	if err != nil || output == "" {
		return err
	}
	return t.say("assistant", output)
}

// actionAndObservation adds an (action, observation) pair of LangChain.
func (t *talk) actionAndObservation(pair located) error {
	action, observation := pair.member("action"), pair.member("observation")
	if _, isObject := pair.any.(map[string]any); !isObject {
		both, err := pair.list()
		if err != nil || len(both) != 2 {
			return pair.wrong("a pair of action and observation")
		}
		action, observation = both[0], both[1]
	}

	if err := action.object(); err != nil {
		return err
	}
	if inner := action.member("kwargs"); inner.any != nil {
		action = inner
	}

	tool, err := action.member("tool").text()
	if err != nil {
		return err
	}
	thought, err := action.member("log").text()
	if err != nil {
		return err
	}

	input, err := action.member("tool_input").show()
	if err != nil {
		return err
	}
	if thought = strings.Trim(thought, blanks); thought == "" {
		thought = input
	}

	text, err := observation.show()
	if err != nil {
		return err
	}
	step := Step{Action: actionToolCall + tool, Thought: thought, Observation: text}
	if given := action.member("tool_input").any; given != nil {
		step.Metadata = map[string]any{"tool_input": given}
	}

	return t.add(step, step.Action, step.content())
}
