package reflect

import (
	"fmt"

	"github.com/rlmhq/rlm/internal/text/quantity"
	"github.com/rlmhq/rlm/repl/internal/agenttrace"
)

// Subject is the trace of an agent's work, from which a model learns. [ParseTrace] returns one.
type Subject struct {
	// Question is the agent's task, GroundTruth the expected answer, and Feedback the
	// environment's reaction to the agent's answer. Nil means unknown.
	Question              string
	GroundTruth, Feedback *string
	// Skillbook holds the strategies that the agent used, as text. The JSON of a skillbook of the
	// Agentic Context Engine is rendered in the form in which that engine shows it to an agent.
	Skillbook string

	// Name distinguishes the trace from others joined with it; it may be a file name.
	Name string
	// Found describes how [ParseTrace] read the trace: "claude-code, 42 steps".
	Found string

	trace *agenttrace.Trace // the steps, which snippets find as trace; nil for none
	steps []agenttrace.AgentStep
}

// TraceFormats lists the formats of [ParseTrace]. The first, "auto", detects the others by their
// members.
func TraceFormats() []string { return agenttrace.Formats() }

// ParseTrace reads the trace of an agent's work in one of [TraceFormats]: messages, spans, logs,
// trajectories, or text. A list or JSON Lines may hold several traces. The data has at most 32
// MiB; bytes that are not UTF-8 become U+FFFD. The error for a value of the wrong type names its
// path, such as "messages[3].content"; the error for an unknown form describes the data. Unknown
// members are ignored, but a trace without any text is an error.
func ParseTrace(data []byte, format string) (Subject, error) {
	parsed, err := agenttrace.Parse(data, format)
	if err != nil {
		return Subject{}, err
	}

	task := parsed.Traces
	found := parsed.Format
	if parsed.Count > 1 {
		found += fmt.Sprintf(", %d traces", parsed.Count)
	}
	found += ", " + quantity.Plural(parsed.Trace.Len(), "step", "")
	if parsed.Note != "" {
		found += "; " + parsed.Note
	}

	return Subject{
		Question: task.Question, GroundTruth: task.GroundTruth, Feedback: task.Feedback,
		Found: found, trace: parsed.Trace, steps: task.Steps,
	}, nil
}

// Join returns one subject with the traces of several: their steps in order, and their distinct
// questions, ground truths and feedback, one per line. The metadata of each step names its trace.
// It fails if there are more than 50,000 steps.
func Join(subjects ...Subject) (Subject, error) {
	if len(subjects) == 1 {
		return subjects[0], nil
	}

	var joined Subject
	tasks := make([]agenttrace.Traces, len(subjects))
	var traces []*agenttrace.Trace
	steps := 0
	for i := range subjects {
		s := &subjects[i]
		tasks[i] = s.traces()
		if s.trace != nil {
			traces = append(traces, s.trace.Named(s.Name))
			steps += s.trace.Len()
		}
		if joined.Skillbook == "" {
			joined.Skillbook = s.Skillbook
		}
	}
	if steps > agenttrace.MaxSteps {
		return Subject{}, fmt.Errorf("the traces have %d steps, more than %d: give fewer traces",
			steps, agenttrace.MaxSteps)
	}

	task := agenttrace.Join(tasks...)
	joined.Question, joined.GroundTruth, joined.Feedback = task.Question, task.GroundTruth, task.Feedback
	joined.trace, joined.steps = agenttrace.Combine(traces...), task.Steps

	return joined, nil
}

// traces returns the subject as the dict traces of the snippets, with empty lists instead of
// missing ones.
func (s *Subject) traces() agenttrace.Traces {
	steps := make([]agenttrace.AgentStep, len(s.steps))
	for i, step := range s.steps {
		if step.SkillIDs == nil {
			step.SkillIDs = []string{}
		}
		steps[i] = step
	}

	return agenttrace.Traces{
		Question: s.Question, GroundTruth: s.GroundTruth, Feedback: s.Feedback, Steps: steps,
	}
}

// agent returns the first step of the agent, or an empty one.
func (s *Subject) agent() agenttrace.AgentStep {
	if len(s.steps) == 0 {
		return agenttrace.AgentStep{}
	}
	return s.steps[0]
}
