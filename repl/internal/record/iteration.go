package record

import (
	"github.com/rlmhq/rlm/internal/keep/trajectory"
)

// Iteration is a line for one turn.
type Iteration struct {
	Type          string                 `json:"type"` // "iteration"
	Iteration     int                    `json:"iteration"`
	Timestamp     string                 `json:"timestamp"`
	Prompt        any                    `json:"prompt"`
	Response      string                 `json:"response"`
	CodeBlocks    []trajectory.CodeBlock `json:"code_blocks"`
	FinalAnswer   any                    `json:"final_answer"`
	IterationTime float64                `json:"iteration_time"` // seconds
}
