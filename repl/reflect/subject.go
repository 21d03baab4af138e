package reflect

import "github.com/rlmhq/rlm/repl/internal/agenttrace"

// MaxTraceBytes is how many bytes a trace may have.
const MaxTraceBytes = agenttrace.MaxBytes

// Subject is the record of an agent's work, from which a model is to learn.
// [ParseTrace] makes one.
type Subject struct {
	// Question is the agent's task, GroundTruth the expected answer, and Feedback what
	// the environment said of the agent's answer. Nil is not known.
	Question              string
	GroundTruth, Feedback *string
	// Skillbook holds the strategies that the agent had, as text.
	Skillbook string

	trace *agenttrace.Trace // the steps, which snippets find as trace; nil for none
	steps []agenttrace.AgentStep
}

// TraceFormats lists the formats of [ParseTrace]. The first, "auto", recognises the
// others by their members.
func TraceFormats() []string { return agenttrace.Formats() }

// ParseTrace reads the record of an agent's work: what the agent said, its conversation,
// or its steps as browser-use, LangChain or tau-bench write them. A source of up to
// MaxTraceBytes bytes is read; bytes that are not UTF-8 become U+FFFD. The error of a
// value of a wrong type has its path, such as "messages[3].content"; members that are
// not known are passed over.
func ParseTrace(data []byte, format string) (Subject, error) {
	parsed, err := agenttrace.Parse(data, format)
	if err != nil {
		return Subject{}, err
	}

	task := parsed.Traces

	return Subject{
		Question: task.Question, GroundTruth: task.GroundTruth, Feedback: task.Feedback,
		trace: parsed.Trace, steps: task.Steps,
	}, nil
}

// traces is the subject as the dict that snippets find under the name traces. It has
// empty lists in place of missing ones.
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

// agent is the first step of the agent, empty if there is none.
func (s *Subject) agent() agenttrace.AgentStep {
	if len(s.steps) == 0 {
		return agenttrace.AgentStep{}
	}
	return s.steps[0]
}
