package otel

import (
	"slices"
	"strings"

	"go.opentelemetry.io/otel/attribute"
)

// The names of attributes. Those that begin with gen_ai are from version 1.38 of OpenTelemetry's
// semantic conventions for generative AI. The conventions may change, so no other file contains
// these names.
const (
	genOperation    = "gen_ai.operation.name"
	genProvider     = "gen_ai.provider.name"
	genModel        = "gen_ai.request.model"
	genAgent        = "gen_ai.agent.name" // the agent of sub_agent_call
	genConversation = "gen_ai.conversation.id"
	genOutputType   = "gen_ai.output.type"
	genInput        = "gen_ai.input.messages"      // JSON
	genOutput       = "gen_ai.output.messages"     // JSON
	genInstructions = "gen_ai.system_instructions" // JSON

	genMaxTokens   = "gen_ai.request.max_tokens"
	genTemperature = "gen_ai.request.temperature"
	genTopP        = "gen_ai.request.top_p"
	genSeed        = "gen_ai.request.seed"

	genFinish        = "gen_ai.response.finish_reasons"
	genResponseID    = "gen_ai.response.id"
	genResponseModel = "gen_ai.response.model"

	genInputTokens  = "gen_ai.usage.input_tokens"
	genOutputTokens = "gen_ai.usage.output_tokens"
	genCacheRead    = "gen_ai.usage.cache_read.input_tokens"
	genCacheWrite   = "gen_ai.usage.cache_creation.input_tokens"
	genReasoning    = "gen_ai.usage.reasoning.output_tokens"
	genCost         = "gen_ai.usage.cost" // outside the conventions: Langfuse reads it
	genSystem       = "gen_ai.system"     // the old name of the provider, which Opik reads

	operationChat  = "chat"
	operationAgent = "invoke_agent"
)

// The names of OpenTelemetry's general conventions.
const (
	serverAddress = "server.address"
	serverPort    = "server.port"
	errorType     = "error.type"
)

// The names of the conversation's ID in Langfuse and Phoenix, and in Opik.
const (
	sessionID = "session.id"
	threadID  = "thread_id"
)

// providerNames maps providers whose names differ in the conventions.
var providerNames = map[string]string{
	"azure": "azure.ai.openai", "bedrock": "aws.bedrock", "gemini": "gcp.gemini",
	"mistral": "mistral_ai", "vertex": "gcp.vertex_ai", "xai": "x_ai",
}

// The attributes that viewers show as input and output, as defined by OpenInference.
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
	subagentCallCount = "subagent_call_count" // only if there were sub-calls
	subagentCalls     = "subagent_calls"      // JSON, a list
	iterationNumber   = "iteration"
	terminated        = "terminated" // whether the iteration gave the answer
	label             = "rlm.label." // prefix of the labels of the run's task
	loopNode          = "rlm.node"   // the loop's place in the tree, "0" for the root
	loopStatus        = "rlm.status"
	purpose           = "rlm.purpose" // the purpose of a model call
	mode              = "rlm.mode"    // the mode of ask_llm
	costUSD           = "rlm.cost_usd"
	totalInputTokens  = "rlm.total_input_tokens"
	totalOutputTokens = "rlm.total_output_tokens"
	totalUSD          = "rlm.total_cost_usd"
	reason            = "rlm.reason" // the reason why a run that did not fail ended
	errorText         = "error.message"
)

// opikMetadata is the prefix of names that Opik shows as metadata. Opik treats attributes with
// unknown names as parts of the input.
const opikMetadata = "opik.metadata."

// opikNames maps names of attributes to the names of Opik's input and output fields.
var opikNames = map[string]string{
	snippetCode: "input.code", snippetStdout: "output.stdout", snippetStderr: "output.stderr",
}

// opikKnows holds the prefixes of names that Opik understands.
var opikKnows = []string{"gen_ai.", "input.", "output.", "error.", "server.", threadID, "opik."}

// named renames attributes for the destination.
func (o *Observer) named(attributes []attribute.KeyValue) []attribute.KeyValue {
	if o.cfg.To != Opik {
		return attributes
	}
	for i, a := range attributes {
		key := string(a.Key)
		base, number, numbered := strings.Cut(key, ".")
		switch name := opikNames[base]; {
		case name != "" && numbered:
			attributes[i].Key = attribute.Key(name + "." + number)
		case name != "":
			attributes[i].Key = attribute.Key(name)
		case !slices.ContainsFunc(opikKnows, func(known string) bool {
			return strings.HasPrefix(key, known)
		}):
			attributes[i].Key = attribute.Key(opikMetadata + key)
		}
	}
	return attributes
}
