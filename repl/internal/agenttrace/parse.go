package agenttrace

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Parsed is the result of reading a source, which may hold several traces.
type Parsed struct {
	// Format is the given or detected format. For traces of several formats it lists their
	// names, separated by commas, in order of appearance.
	Format string
	// Count is the number of traces in the source.
	Count int
	// Note describes the omitted part, which is the last line of a log if it is truncated. It is
	// often empty.
	Note string
	// Trace holds the steps of all traces. If there are several, the metadata of each step names
	// its trace.
	Trace *Trace
	// Traces holds the same content as the dict traces of the snippets. If the source has no agent
	// step, each rendered trace becomes one.
	Traces Traces
}

// Traces is the canonical dict of a task and an agent's work on it.
type Traces struct {
	Question    string      `json:"question"`
	GroundTruth *string     `json:"ground_truth"` // the expected answer, nil if it is not known
	Feedback    *string     `json:"feedback"`     // the environment's feedback on the answer
	Steps       []AgentStep `json:"steps"`
}

// AgentStep is an agent's part in [Traces].
type AgentStep struct {
	Role      string   `json:"role"` // "agent"
	Reasoning string   `json:"reasoning"`
	Answer    string   `json:"answer"`
	SkillIDs  []string `json:"skill_ids"`
}

// Parse reads one or more traces of a format, several as a list or as JSON Lines, within the
// bounds of this package. Bytes that are not UTF-8 become U+FFFD. The error for a value of the
// wrong type names its path, such as "messages[3].content". Unknown members are ignored, but a
// trace whose steps have no text is an error.
func Parse(data []byte, format string) (Parsed, error) {
	talks, names, note, _, err := parseTalks(data, format)
	if err != nil {
		return Parsed{}, err
	}

	p := Parsed{Format: strings.Join(names, ", "), Count: len(talks), Note: note}
	parts := make([]*Trace, len(talks))
	tasks := make([]Traces, len(talks))
	steps := 0
	for i, t := range talks {
		parts[i] = t.trace()
		if steps += len(t.steps); steps > MaxSteps {
			return Parsed{}, fmt.Errorf("the trace has more than %d steps", MaxSteps)
		}
		tasks[i] = t.task(parts[i])
	}

	p.Trace, p.Traces = parts[0], Join(tasks...)
	if len(parts) > 1 {
		for i, part := range parts {
			parts[i] = part.Named(cmp.Or(talks[i].name, strconv.Itoa(i+1)))
		}
		p.Trace = Combine(parts...)
	}

	return p, nil
}

// parseTalks reads all traces of a source, within the bounds. The returned root is empty if the
// source cannot be decoded.
func parseTalks(data []byte, format string) (
	talks []*talk, names []string, note string, root located, err error,
) {
	if !slices.Contains(Formats(), format) {
		err = fmt.Errorf("unknown trace format %q: use one of %s", format, formatNames())
		return nil, nil, "", root, err
	}
	if len(data) > MaxBytes {
		err = fmt.Errorf("cannot read the trace: %w", checkBounds(data))
		return nil, nil, "", root, err
	}

	data = bytes.ToValidUTF8(bytes.TrimPrefix(data, []byte("\uFEFF")), []byte("\uFFFD"))
	text, isPlain := plainText(data)
	if isPlain && (format == formatReasoning || format == formatAgent || format == formatAuto) {
		root.any = text
	} else if root, note, err = decodeTrace(data); err != nil {
		return nil, nil, "", root, err
	}

	talks, names, err = readRoot(root, format)
	return talks, names, note, root, err
}

// readRoot reads the traces of a source, which is a single trace, a form that contains several
// traces, or a list of traces. It returns the name of each form once.
func readRoot(root located, format string) (talks []*talk, names []string, err error) {
	formOf := recognise
	if format != formatAuto {
		f := named(format)
		formOf = func(v any) *form {
			if f.is(v) {
				return f
			}
			return nil
		}
	}

	parts := []located{root}
	isTrace := func(item any) bool { return !isText(item) && formOf(item) != nil }
	switch {
	case formOf(root.any) != nil:
	case every(root.any, isTrace):
		if parts, err = root.list(); err != nil {
			return nil, nil, err
		}
	case format == formatAuto:
		return nil, nil, unknownForm(root)
	default: // its reader reports the mistake
		formOf = func(any) *form { return named(format) }
	}

	for _, part := range parts {
		f := formOf(part.any)
		read, err := f.readAll(part)
		if err != nil {
			return nil, nil, fmt.Errorf("cannot read the trace as %s: %w", f.name, err)
		}
		if talks = append(talks, read...); len(talks) > MaxSteps {
			return nil, nil, fmt.Errorf("there are more than %d traces", MaxSteps)
		}
		if !slices.Contains(names, f.name) {
			names = append(names, f.name)
		}
	}

	return talks, names, nil
}

// unknownForm returns the error for an unknown form. It describes the source and lists the known
// forms.
func unknownForm(root located) error {
	seen := root.any
	if list, ok := seen.([]any); ok && len(list) > 1 && recognise(list[0]) != nil {
		for i, item := range list { // describe the item that has no known form
			if recognise(item) == nil {
				return fmt.Errorf(
					"cannot detect the format of item %d of the trace: it is %s; name one of %s",
					i+1, describe(item), formatNames())
			}
		}
	}
	return fmt.Errorf("cannot detect the format of the trace: it is %s; name one of %s",
		describe(seen), formatNames())
}

// readAll reads the traces in a root of this form.
func (f *form) readAll(root located) ([]*talk, error) {
	parts := []located{root}
	if f.split != nil {
		var err error
		if parts, err = f.split(root); err != nil {
			return nil, err
		}
	}

	talks := make([]*talk, 0, len(parts))
	for _, part := range parts {
		t := newTalk(everything)
		t.form, t.root = f.name, part
		if err := f.read(t, part); err != nil {
			return nil, err
		}
		if err := t.addTask(part); err != nil {
			return nil, err
		}
		if err := t.checkTexts(part); err != nil {
			return nil, err
		}
		talks = append(talks, t)
	}

	if len(talks) == 0 {
		return nil, errors.New("there is no trace in it")
	}
	return talks, nil
}

// checkTexts rejects a trace whose steps have no text.
func (t *talk) checkTexts(root located) error {
	for i := range t.steps {
		s := &t.steps[i]
		if strings.Trim(s.content(), blanks) != "" || strings.HasPrefix(s.Action, actionToolCall) {
			return nil
		}
	}
	if len(t.steps) == 0 {
		return fmt.Errorf("it has no steps; it is %s", describe(root.any))
	}
	return fmt.Errorf("none of its %d steps has text; it is %s", len(t.steps), describe(root.any))
}

// taskKeys holds the members that may contain the task of a source without a question.
var taskKeys = []string{"task", "input", "instruction", "prompt", "problem_statement"}

// addTask adds the statements about the task in the source's top-level object, in any form.
func (t *talk) addTask(root located) error {
	for _, part := range []struct {
		key  string
		into **string
	}{{"ground_truth", &t.truth}, {"feedback", &t.feedback}} {
		if err := root.member(part.key).set(part.into); err != nil {
			return err
		}
	}

	question, err := root.member("question").show()
	if err != nil {
		return err
	}
	if text, ok := root.first(taskKeys...).any.(string); ok && question == "" && t.question == "" {
		question = text
	}
	if question != "" {
		t.question = question
	}

	return nil
}

// set stores a value as a string, unless the value is missing.
func (l located) set(into **string) error {
	if l.any == nil {
		return nil
	}
	text, err := l.show()
	*into = &text
	return err
}

// task returns a trace as the canonical dict.
func (t *talk) task(trace *Trace) Traces {
	steps := t.agents
	if steps == nil {
		steps = []AgentStep{{
			Role: "agent", Reasoning: trace.Markdown(), Answer: t.answer, SkillIDs: []string{},
		}}
	}
	return Traces{Question: t.question, GroundTruth: t.truth, Feedback: t.feedback, Steps: steps}
}

// Join returns the dict of several traces: their distinct questions, ground truths and feedback,
// one per line, and the steps of every trace.
func Join(all ...Traces) Traces {
	joined := Traces{Steps: []AgentStep{}}
	var questions, truths, feedbacks []*string
	for i := range all {
		questions = append(questions, &all[i].Question)
		truths = append(truths, all[i].GroundTruth)
		feedbacks = append(feedbacks, all[i].Feedback)
		joined.Steps = append(joined.Steps, all[i].Steps...)
	}

	if question := joinDifferent(questions); question != nil {
		joined.Question = *question
	}
	joined.GroundTruth, joined.Feedback = joinDifferent(truths), joinDifferent(feedbacks)

	return joined
}

// joinDifferent joins the distinct strings. It returns nil if every string is nil.
func joinDifferent(all []*string) *string {
	var different []string
	var joined *string
	seen := map[string]bool{"": true}
	for _, text := range all {
		if text == nil {
			continue
		}
		if joined = new(string); !seen[*text] {
			seen[*text] = true
			different = append(different, *text)
		}
	}

	if joined != nil {
		*joined = strings.Join(different, "\n\n")
	}
	return joined
}

// longMark is longer than any marker of a speaker.
const longMark = 64

// plainText returns data that is text rather than JSON: it does not begin like an object, a string
// or a list. A speaker's marker looks like a list but is treated as text.
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
