package otel

// The names of attributes. Those that begin with gen_ai come from version 1.38 of
// OpenTelemetry's semantic conventions for generative AI. The conventions may change, so no
// other file contains these names.
const (
	genOperation    = "gen_ai.operation.name"
	genProvider     = "gen_ai.provider.name"
	genModel        = "gen_ai.request.model"
	genAgent        = "gen_ai.agent.name" // the agent of sub_agent_call
	genFinish       = "gen_ai.response.finish_reasons"
	genInputTokens  = "gen_ai.usage.input_tokens"
	genOutputTokens = "gen_ai.usage.output_tokens"
	genInput        = "gen_ai.input.messages"  // JSON
	genOutput       = "gen_ai.output.messages" // JSON

	operationChat  = "chat"
	operationAgent = "invoke_agent"
)

// The texts that viewers show as input and output, by the conventions of OpenInference.
const (
	inputValue  = "input.value"
	outputValue = "output.value"
)

// The attributes of a snippet, on the span of its iteration. The second snippet of an iteration
// appends ".1" to the names, the third ".2".
const (
	snippetCode   = "code"
	snippetStdout = "stdout"
	snippetStderr = "stderr"
	snippetTier   = "tier"
	snippetStatus = "status"
)

// The attributes of a run or one of its loops.
const (
	totalIterations   = "total_iterations"
	subagentCallCount = "subagent_call_count" // only if there were any
	subagentCalls     = "subagent_calls"      // JSON, a list
	iterationNumber   = "iteration"
	terminated        = "terminated" // whether the iteration gave the answer
	label             = "rlm.label." // begins the labels of the run's task
	loopNode          = "rlm.node"   // which loop of the tree, "0" the root
	loopStatus        = "rlm.status"
	purpose           = "rlm.purpose" // what a model call was for
	mode              = "rlm.mode"    // the mode of ask_llm
	costUSD           = "rlm.cost_usd"
	totalInputTokens  = "rlm.total_input_tokens"
	totalOutputTokens = "rlm.total_output_tokens"
	totalUSD          = "rlm.total_cost_usd"
	reason            = "rlm.reason" // why a run ended that did not fail
	errorText         = "error.message"
)
