package agenttrace

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// The formats that Parse knows.
const (
	formatAuto         = "auto"         // it is recognised by its members
	formatAgent        = "agent"        // {"reasoning", "final_answer", "skill_ids"}
	formatReasoning    = "reasoning"    // text, or a JSON string
	formatBrowserUse   = "browser-use"  // what AgentHistoryList.model_dump gives
	formatLangChain    = "langchain"    // intermediate_steps: pairs of action and observation
	formatConversation = "conversation" // messages in OpenAI's or Anthropic's form
	formatTau          = "tau"          // messages of a tau-bench simulation, the simulation, or many
	formatTraces       = "traces"       // the dict of a question and the agent's steps
)

// Formats returns all formats, in the order for users.
func Formats() []string {
	return []string{
		formatAuto, formatAgent, formatReasoning, formatBrowserUse, formatLangChain,
		formatConversation, formatTau, formatTraces,
	}
}

// Parsed is a trace that was read.
type Parsed struct {
	// Format is the one that was given or recognised.
	Format string
	// Trace is the trace as steps.
	Trace *Trace
	// Traces is the same as the dict traces of the snippets. Its question, ground truth
	// and feedback are empty if the source has none. If the source has no agent step
	// either, the rendered trace becomes one.
	Traces Traces
}

// Traces is the canonical dict of a task and an agent's work on it.
type Traces struct {
	Question    string      `json:"question"`
	GroundTruth *string     `json:"ground_truth"` // the expected answer, nil if it is not known
	Feedback    *string     `json:"feedback"`     // what the environment said of the answer
	Steps       []AgentStep `json:"steps"`
}

// AgentStep is an agent's part in [Traces].
type AgentStep struct {
	Role      string   `json:"role"` // "agent"
	Reasoning string   `json:"reasoning"`
	Answer    string   `json:"answer"`
	SkillIDs  []string `json:"skill_ids"`
}

// Parse reads a trace of a format, within the bounds of this package. Bytes that are not
// UTF-8 become U+FFFD. The error for a value of a wrong type names its path, such as
// "messages[3].content". Unknown members are ignored.
func Parse(data []byte, format string) (Parsed, error) {
	if !slices.Contains(Formats(), format) {
		return Parsed{}, fmt.Errorf(
			"unknown trace format %q: use one of %s", format, formatNames(),
		)
	}

	if len(data) > MaxBytes {
		return Parsed{}, checkBounds(data)
	}
	data = bytes.ToValidUTF8(bytes.TrimPrefix(data, []byte("\uFEFF")), []byte("\uFFFD"))
	if format == formatReasoning || format == formatAuto {
		if text, ok := plainText(data); ok {
			return parseText(text, format)
		}
	}

	root, err := decodeTrace(data)
	if err != nil {
		return Parsed{}, err
	}
	if format == formatAuto {
		if format = recognise(root); format == formatAuto {
			return Parsed{}, errors.New(
				"cannot detect the format of the trace: name one of " + formatNames(),
			)
		}
	}

	parsed, err := parseAs(root, format)
	if err != nil {
		return Parsed{}, fmt.Errorf("cannot read the trace as %s: %w", format, err)
	}
	return parsed.complete(root), nil
}

func formatNames() string {
	return strings.Join(Formats()[1:], ", ")
}

// longMark is longer than any marker of a speaker.
const longMark = 64

// plainText returns data that is text and not JSON: it does not begin like an object, a
// string or a list. The marker of a speaker, which looks like a list, is text.
func plainText(data []byte) (string, bool) {
	trimmed := bytes.Trim(data, blanks)
	if len(trimmed) == 0 {
		return "", true
	}
	at := speakerMark.FindIndex(trimmed[:min(len(trimmed), longMark)])
	if len(at) == 2 && at[0] == 0 {
		return string(data), true
	}
	return string(data), !bytes.ContainsRune([]byte(`{["`), rune(trimmed[0]))
}

// parseText reads a trace that is text.
func parseText(text string, format string) (Parsed, error) {
	if strings.Trim(text, blanks) == "" {
		return Parsed{}, errors.New("cannot read the trace: it is empty")
	}
	if len(text) > MaxText {
		return Parsed{}, fmt.Errorf(
			"cannot read the trace: the text has %d bytes, more than %d", len(text), MaxText,
		)
	}

	if format == formatAuto && speakerMark.MatchString(text) {
		return parseAgent(output{Reasoning: text}), nil
	}
	return Parsed{
		Format: formatReasoning, Trace: fromReasoning(text),
		Traces: tracesOf(output{Reasoning: text}),
	}, nil
}

// parseAgent returns an agent's output as a trace.
func parseAgent(o output) Parsed {
	return Parsed{Format: formatAgent, Trace: fromAgent(o), Traces: tracesOf(o)}
}

func tracesOf(o output) Traces {
	if o.SkillIDs == nil {
		o.SkillIDs = []string{}
	}
	return Traces{
		Steps: []AgentStep{
			{Role: "agent", Reasoning: o.Reasoning, Answer: o.FinalAnswer, SkillIDs: o.SkillIDs},
		},
	}
}

// parseAs reads JSON in a given format.
func parseAs(root located, format string) (p Parsed, err error) {
	p.Format = format
	switch format {
	case formatAgent:
		output, err := agentOutput(root)
		return parseAgent(output), err
	case formatReasoning:
		text, ok := root.any.(string)
		if !ok {
			return p, root.wrong("text")
		}
		return parseText(text, format)
	case formatBrowserUse:
		p.Trace, err = browserUse(root)
	case formatLangChain:
		p.Trace, err = langChain(root)
	case formatConversation:
		p.Trace, err = talkOf(listIn(root, "messages"), textLen, "")
	case formatTau:
		p.Trace, err = tau(root)
	default: // formatTraces: auto has been resolved
		return parseTraces(root)
	}

	return p, err
}

// listIn returns a list, or the list under a name in an object.
func listIn(root located, name string) located {
	if _, ok := root.any.(map[string]any); ok {
		return root.member(name)
	}
	return root
}

// agentOutput reads the output of an agent, which may be its text alone.
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

// tau reads messages, a simulation that has them, or results with many simulations.
func tau(root located) (*Trace, error) {
	many := root.member("simulations")
	if many.any == nil {
		return talkOf(listIn(root, "messages"), everything, "")
	}
	list, err := many.list()
	if err != nil {
		return nil, err
	}

	traces := make([]*Trace, len(list))
	steps := 0
	for i, simulation := range list {
		if traces[i], err = talkOf(listIn(simulation, "messages"), everything, ""); err != nil {
			return nil, err
		}
		if steps += traces[i].Len(); steps > MaxSteps {
			return nil, fmt.Errorf("the trace has more than %d steps", MaxSteps)
		}
	}

	return combine(traces...), nil
}

// parseTraces reads the canonical dict.
func parseTraces(root located) (Parsed, error) {
	p := Parsed{Format: formatTraces, Traces: Traces{Steps: []AgentStep{}}}
	if err := root.object(); err != nil {
		return p, err
	}
	list, err := root.member("steps").list()
	if err != nil {
		return p, err
	}

	traces := make([]*Trace, len(list))
	steps := 0
	for i, step := range list {
		output, err := agentOutput(step)
		if err != nil {
			return p, err
		}
		traces[i] = fromAgent(output)
		if steps += traces[i].Len(); steps > MaxSteps {
			return p, fmt.Errorf("the trace has more than %d steps", MaxSteps)
		}

		made := tracesOf(output).Steps[0]
		if made.Role, err = step.member("role").text(); err != nil {
			return p, err
		}
		if made.Role == "" {
			made.Role = "agent"
		}

		p.Traces.Steps = append(p.Traces.Steps, made)
	}

	p.Trace = combine(traces...)
	for _, key := range []string{"question", "ground_truth", "feedback"} {
		if _, err := root.member(key).show(); err != nil {
			return p, err
		}
	}

	return p, nil
}

// complete adds what the source says about the task, in any format.
func (p Parsed) complete(root located) Parsed {
	optional := func(key string) *string {
		m := root.member(key)
		if m.any == nil {
			return nil
		}
		text, err := m.show()
		if err != nil {
			return nil
		}

		return &text
	}

	if question := optional("question"); question != nil {
		p.Traces.Question = *question
	}
	p.Traces.GroundTruth, p.Traces.Feedback = optional("ground_truth"), optional("feedback")
	if p.Traces.Steps == nil {
		p.Traces.Steps = []AgentStep{
			{Role: "agent", Reasoning: p.Trace.Markdown(), SkillIDs: []string{}},
		}
	}

	return p
}

// recognise returns the format by its distinctive members; formatAuto if none fits.
func recognise(root located) string {
	switch v := root.any.(type) {
	case string:
		if speakerMark.MatchString(v) {
			return formatAgent
		}
		return formatReasoning
	case []any:
		return recogniseList(root)
	case map[string]any:
		for _, sign := range []struct {
			key    string
			format string
		}{
			{"intermediate_steps", formatLangChain},
			{"simulations", formatTau},
			{"history", formatBrowserUse},
			{"steps", formatTraces},
			{"reasoning", formatAgent},
			{"final_answer", formatAgent},
		} {
			if v[sign.key] != nil {
				return sign.format
			}
		}
		if list := root.member("messages"); list.any != nil {
			return recogniseList(list)
		}
	}

	return formatAuto
}

// recogniseList returns the format of a list by its items.
func recogniseList(root located) string {
	items, err := root.list()
	if err != nil || len(items) == 0 {
		return formatAuto
	}
	format := formatAuto
	for _, item := range items {
		object, ok := item.any.(map[string]any)
		switch {
		case !ok || object["action"] != nil && object["observation"] != nil:
			if pair, isList := item.any.([]any); ok || isList && len(pair) == 2 {
				return formatLangChain
			}
			return formatAuto
		case object["model_output"] != nil || object["state"] != nil && object["result"] != nil:
			return formatBrowserUse
		case isTau(item):
			return formatTau
		case object["role"] != nil:
			format = formatConversation
		}
	}

	return format
}

// isTau reports whether a message has members that only tau-bench writes.
func isTau(message located) bool {
	if message.member("tool_messages").any != nil || message.member("requestor").any != nil {
		return true
	}
	calls, err := message.member("tool_calls").list()
	return err == nil && len(calls) > 0 && calls[0].member("requestor").any != nil
}
