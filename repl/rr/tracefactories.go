package rr

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/rlmhq/rlm/repl"
)

// FromAgentOutput makes a trace of an agent's output.
func FromAgentOutput(o AgentOutput) *TraceContext { return nil }

// FromReasoningString makes a trace of a text.
func FromReasoningString(reasoning string) *TraceContext { return nil }

// FromBrowserUse makes a trace of browser-use's AgentHistoryList as JSON.
func FromBrowserUse(history json.RawMessage) (*TraceContext, error) { return nil, errors.New("not yet") }

// FromLangChain makes a trace of LangChain's intermediate_steps as JSON.
func FromLangChain(steps json.RawMessage) (*TraceContext, error) { return nil, errors.New("not yet") }

// DefaultTextLen is how many characters FromConversationHistory keeps of a text.
const DefaultTextLen = 1000

// FromConversationHistory makes a trace of messages as JSON.
func FromConversationHistory(messages json.RawMessage, maxTextLen int) (*TraceContext, error) {
	return nil, errors.New("not yet")
}

// FromTauSimulation makes a trace of tau-bench's messages as JSON.
func FromTauSimulation(messages json.RawMessage, systemPrompt string) (*TraceContext, error) {
	return nil, errors.New("not yet")
}

// Combine makes one trace of several: the steps numbered anew, the raw texts one
// after another.
func Combine(traces ...*TraceContext) *TraceContext { return nil }

// BindTrace gives a session the classes TraceStep and TraceContext, and the
// variable trace: t, or None if t is nil.
func BindTrace(ctx context.Context, s *repl.Session, t *TraceContext) error { return errors.New("not yet") }
