package agenttrace

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// Verdict is the outcome of a run according to the form of its trace. Members that programs add
// to a trace, such as success, are not part of it.
type Verdict struct {
	// Known reports that the trace shows whether its run failed.
	Known  bool
	Failed bool
	// Failure is the error of a failed run, Component the component that failed. Both may be
	// empty.
	Failure, Component string
}

// pass notes that the run succeeded.
func (t *talk) pass() { t.verdict = Verdict{Known: true} }

// fail notes that the run failed.
func (t *talk) fail(failure string) {
	t.verdict = Verdict{Known: true, Failed: true, Failure: strings.Trim(failure, blanks)}
}

// Run is one of the runs in a source.
type Run struct {
	Format string
	// Name is the name of the run in the source, often empty.
	Name string
	// Object is the run's JSON object, or nil if the run is a list, lines or spans.
	Object json.RawMessage
	Verdict

	trace *Trace
	task  Traces
}

// ParseEach reads the runs of a source, one by one. Known is false for JSON of an unknown form, and
// for objects that are invalid in their form, because a caller may read them in another way. The
// note describes the omitted part.
func ParseEach(data []byte, format string) (runs []Run, note string, known bool, err error) {
	talks, _, note, root, err := parseTalks(data, format)
	if err != nil {
		return nil, "", format != formatAuto || isLog(root, data), err
	}
	runs = make([]Run, len(talks))
	for i, t := range talks {
		trace := t.trace()
		runs[i] = Run{Format: t.form, Name: t.name, Verdict: t.verdict, trace: trace, task: t.task(trace)}
		object := t.root.any
		if len(talks) == 1 && !isObject(object) {
			object = root.any
		}
		if !isObject(object) {
			continue
		}
		if runs[i].Object, err = json.Marshal(object); err != nil {
			return nil, "", true, fmt.Errorf("cannot keep the trace: %w", err)
		}
	}
	return runs, note, true, nil
}

func isObject(v any) bool {
	_, ok := v.(map[string]any)
	return ok
}

// isLog reports whether unreadable lines belong to one run instead of being separate runs. If there
// are too many lines to decode, the first ones decide.
func isLog(root located, data []byte) bool {
	if root.any == nil {
		head := data[:min(len(data), headOfLog)]
		lines := strings.SplitAfter(string(head), "\n")
		var items []any
		for _, line := range lines[:len(lines)-1] {
			if item, err := decodeJSON([]byte(line)); err == nil && checkBounds([]byte(line)) == nil {
				items = append(items, item)
			}
		}
		root.any = items
	}
	_, isList := root.any.([]any)
	return isList && recognise(root.any) != nil
}

// headOfLog is the number of bytes at the start of an oversized source that are examined for its
// form.
const headOfLog = 256 << 10

// Canonical returns the run as one JSON object of at most that many bytes, with the question, the
// answer, the ground truth and feedback, and the steps. It truncates long strings and, if that is
// not enough, omits the first steps.
func (r *Run) Canonical(most int) (json.RawMessage, error) {
	type short struct {
		Action      string `json:"action"`
		Thought     string `json:"thought,omitempty"`
		Observation string `json:"observation,omitempty"`
	}
	shown := struct {
		Question    string  `json:"question"`
		GroundTruth *string `json:"ground_truth,omitempty"`
		Feedback    *string `json:"feedback,omitempty"`
		Error       string  `json:"error,omitempty"`
		Answer      string  `json:"answer"`
		LeftOut     int     `json:"steps_left_out,omitempty"`
		Steps       []short `json:"steps"`
	}{}

	steps := r.trace.steps
	for limit := most; ; limit /= 2 {
		if limit < shortest {
			steps = steps[len(steps)/2:]
			limit = shortest
		}
		cut := func(text *string) *string {
			if text == nil {
				return nil
			}
			cut := Shorten(*text, limit)
			return &cut
		}
		shown.Question, shown.Error = Shorten(r.task.Question, limit), Shorten(r.Failure, limit)
		shown.GroundTruth, shown.Feedback = cut(r.task.GroundTruth), cut(r.task.Feedback)
		if agents := r.task.Steps; len(agents) > 0 {
			shown.Answer = Shorten(agents[len(agents)-1].Answer, limit)
		}
		shown.LeftOut, shown.Steps = len(r.trace.steps)-len(steps), []short{}
		for _, s := range steps {
			shown.Steps = append(shown.Steps, short{
				s.Action, Shorten(s.Thought, limit), Shorten(s.Observation, limit),
			})
		}

		data, err := json.Marshal(shown)
		if err != nil {
			return nil, fmt.Errorf("cannot keep the trace: %w", err)
		}
		if len(data) <= most || len(steps) == 0 {
			return data, nil
		}
	}
}

// shortest is the minimum length to which a string is truncated, in characters.
const shortest = 200

// submitted notes the status with which a coding agent ended: a submission, or the reason why it
// stopped.
func (t *talk) submitted(status string) {
	switch {
	case status == "":
	case strings.EqualFold(status, "submitted"):
		t.pass()
	default:
		t.fail(status)
	}
}

// ended notes the status of a run in a record of this program.
func (t *talk) ended(status, failure string) {
	if slices.Contains([]string{"answered", "synthesised", "passed", "done"}, status) {
		t.pass()
		return
	}
	if failure == "" {
		failure = status
	}
	t.fail(failure)
}

// judgeSpans notes whether the outermost span of a trace failed, and the original failure, which is
// that of the innermost span; outer spans repeat it.
func (w *spanWalk) judgeSpans(spans []span) {
	broken := map[string]bool{} // the parents of failed spans
	for i := range spans {
		if spans[i].failure != "" {
			broken[spans[i].parent] = true
		}
	}
	for i := range spans {
		if s := &spans[i]; s.parent == "" && s.failure != "" {
			w.fail(s.failure)
		} else if s.parent == "" && s.passed && !w.verdict.Known {
			w.pass()
		}
	}
	if !w.verdict.Failed {
		return
	}

	for i := range spans {
		if s := &spans[i]; s.failure != "" && !broken[s.id] {
			w.verdict.Component = s.name
			if w.verdict.Failure == failed {
				w.verdict.Failure = s.failure
			}
			return
		}
	}
}
