package ledger

// Metadata is the first line of a trajectory, in the form that the visualizer of
// the RLM paper's authors reads.
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

// Iteration is a further line: one turn.
type Iteration struct {
	Type          string      `json:"type"` // "iteration"
	Iteration     int         `json:"iteration"`
	Timestamp     string      `json:"timestamp"`
	Prompt        any         `json:"prompt"`
	Response      string      `json:"response"`
	CodeBlocks    []CodeBlock `json:"code_blocks"`
	FinalAnswer   any         `json:"final_answer"`
	IterationTime float64     `json:"iteration_time"` // seconds
}

// CodeBlock is one piece of code of a turn.
type CodeBlock struct {
	Code   string     `json:"code"`
	Result CodeResult `json:"result"`
}

// CodeResult is what became of it.
type CodeResult struct {
	Stdout        string            `json:"stdout"`
	Stderr        string            `json:"stderr"`
	Locals        map[string]string `json:"locals"` // variables and their kinds
	ExecutionTime float64           `json:"execution_time"`
	RLMCalls      []CallRecord      `json:"rlm_calls"`
	FinalAnswer   any               `json:"final_answer"`
}

// CallRecord is one sub-call.
type CallRecord struct {
	RootModel     string         `json:"root_model"`
	Prompt        string         `json:"prompt"`
	Response      string         `json:"response"`
	UsageSummary  map[string]any `json:"usage_summary"`
	ExecutionTime float64        `json:"execution_time"`
}

// Files of a trace's folder.
const (
	TrajectoryFile = "trajectory.jsonl"
	EventsFile     = "events.jsonl"
)
