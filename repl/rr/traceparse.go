package rr

import "errors"

// Format is a form in which traces are written.
type Format string

// The formats that ParseTrace knows.
const (
	FormatAuto         Format = "auto"         // it is recognised by its members
	FormatAgent        Format = "agent"        // {"reasoning", "final_answer", "skill_ids"}
	FormatReasoning    Format = "reasoning"    // text, or a JSON string
	FormatBrowserUse   Format = "browser-use"  // what AgentHistoryList.model_dump writes
	FormatLangChain    Format = "langchain"    // intermediate_steps: pairs of action and observation
	FormatConversation Format = "conversation" // messages in OpenAI's or Anthropic's form
	FormatTau          Format = "tau"          // messages of a tau-bench simulation, or the simulation
	FormatTraces       Format = "traces"       // the dict of a question and the agent's steps
)

// Formats are all formats, in the order in which they are listed to users.
func Formats() []Format {
	return []Format{
		FormatAuto, FormatAgent, FormatReasoning, FormatBrowserUse, FormatLangChain, FormatConversation, FormatTau, FormatTraces,
	}
}

// Parsed is a trace that was read.
type Parsed struct {
	// Format is the one that was given or recognised.
	Format Format
	// Trace is the trace as steps.
	Trace *TraceContext
	// Traces is the same as the dict that snippets find under the name traces. Its
	// question, ground truth and feedback are empty where the source has none; where
	// it has no agent steps either, one is made of the rendered trace.
	Traces Traces
}

// Traces is the canonical dict of a task and what an agent did about it.
type Traces struct {
	Question    string      `json:"question"`
	GroundTruth *string     `json:"ground_truth"` // the expected answer, nil if it is not known
	Feedback    *string     `json:"feedback"`     // what the environment said of the answer
	Steps       []AgentStep `json:"steps"`
}

// AgentStep is an agent's part in Traces.
type AgentStep struct {
	Role      string   `json:"role"` // "agent"
	Reasoning string   `json:"reasoning"`
	Answer    string   `json:"answer"`
	SkillIDs  []string `json:"skill_ids"`
}

// AgentOutput is what an agent gave for a task.
type AgentOutput struct {
	Reasoning   string
	FinalAnswer string
	SkillIDs    []string
}

// ParseTrace reads a trace of a format. Bytes that are not UTF-8 become U+FFFD.
// The error of a value of a wrong type has its path, such as
// "messages[3].content". Members that are not known are passed over.
func ParseTrace(data []byte, format Format) (Parsed, error) {
	return Parsed{}, errors.New("not yet")
}
