package reflect

// DefaultPromptTemplate is the first message of a reflection.
var DefaultPromptTemplate = defaultPromptTemplate

// PromptVariables returns the names in braces that a prompt template must contain.
var PromptVariables = promptVariables

// The record of a reflection, which every analysis contains as "rr_trace".
type (
	Record          = runRecord
	IterationRecord = iterationRecord
	SubagentCall    = subagentCall
)

// ParseAnalysis reads the value that a model passed to FINAL.
var ParseAnalysis = parseAnalysis

// WithDefaults completes a configuration.
var WithDefaults = Config.withDefaults
