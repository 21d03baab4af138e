package otel

// The names of attributes. Those that begin with gen_ai are of OpenTelemetry's
// semantic conventions for generative AI, version 1.38, which may still change: no
// other file has them.
const (
	genOperation    = "gen_ai.operation.name"
	genProvider     = "gen_ai.provider.name"
	genModel        = "gen_ai.request.model"
	genFinish       = "gen_ai.response.finish_reasons"
	genInputTokens  = "gen_ai.usage.input_tokens"
	genOutputTokens = "gen_ai.usage.output_tokens"
	genInput        = "gen_ai.input.messages"  // JSON
	genOutput       = "gen_ai.output.messages" // JSON

	operationChat  = "chat"
	operationAgent = "invoke_agent"
)

// Texts that viewers show as what went in and what came out, by the conventions of
// OpenInference.
const (
	inputValue  = "input.value"
	outputValue = "output.value"
)

// What a snippet did, on the span of its iteration. A second snippet of one iteration
// has them with ".1" at the end, a third with ".2".
const (
	snippetCode   = "code"
	snippetStdout = "stdout"
	snippetStderr = "stderr"
	snippetTier   = "tier"
	snippetStatus = "status"
)

// What a whole run or one of its loops did.
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
