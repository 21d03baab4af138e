// Package trajectory defines the lines of a run's record, in the form that the visualizer of the
// RLM paper's authors reads. Package record of repl writes them, and `rlm trace` reads them.
package trajectory

// Metadata is the first line of a trajectory.
type Metadata struct {
	Type              string         `json:"type"` // "metadata"
	RootModel         string         `json:"root_model"`
	MaxDepth          int            `json:"max_depth"`
	MaxIterations     int            `json:"max_iterations"`
	Backend           string         `json:"backend"`
	BackendKwargs     map[string]any `json:"backend_kwargs"`
	EnvironmentType   string         `json:"environment_type"`
	EnvironmentKwargs map[string]any `json:"environment_kwargs"`
	OtherBackends     []string       `json:"other_backends"`
}

// CodeBlock is one block of code in a turn.
type CodeBlock struct {
	Code   string     `json:"code"`
	Result CodeResult `json:"result"`
}

// CodeResult is the outcome of a code block.
type CodeResult struct {
	Stdout        string            `json:"stdout"`
	Stderr        string            `json:"stderr"`
	Locals        map[string]string `json:"locals"`         // variables and their kinds
	ExecutionTime float64           `json:"execution_time"` // seconds
	RLMCalls      []CallRecord      `json:"rlm_calls"`
	FinalAnswer   any               `json:"final_answer"`
}

// CallRecord is one sub-call.
type CallRecord struct {
	RootModel     string         `json:"root_model"`
	Prompt        string         `json:"prompt"`
	Response      string         `json:"response"`
	UsageSummary  map[string]any `json:"usage_summary"`
	ExecutionTime float64        `json:"execution_time"` // seconds
	Agent         string         `json:"agent,omitempty"`
}

// These are the files in the folder of a record.
const (
	File       = "trajectory.jsonl" // one loop
	EventsFile = "events.jsonl"     // the events of all loops, in the root's folder
)
