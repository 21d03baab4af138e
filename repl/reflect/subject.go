package reflect

import "github.com/rlmhq/rlm/repl/internal/agenttrace"

// Subject is the trace of an agent's work, from which a model learns. [ParseTrace] makes
// one.
type Subject struct {
	// Question is the agent's task, GroundTruth the expected answer, and Feedback the
	// environment's reaction to the agent's answer. Nil means unknown.
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

// ParseTrace reads the trace of an agent's work: its output, its conversation, or its
// steps as browser-use, LangChain or tau-bench write them. The data has at most
// 32 MiB; bytes that are not UTF-8 become U+FFFD. The error for a value of a
// wrong type names its path, such as "messages[3].content". Unknown members are ignored.
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

// traces returns the subject as the dict traces of the snippets, with empty lists in
// place of missing ones.
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

// agent returns the first step of the agent, empty if there is none.
func (s *Subject) agent() agenttrace.AgentStep {
	if len(s.steps) == 0 {
		return agenttrace.AgentStep{}
	}
	return s.steps[0]
}
