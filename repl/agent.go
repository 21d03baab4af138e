package repl

import "encoding/json"

// Agent is an agent that snippets call by name with sub_agent_call.
type Agent struct {
	// Doc is a sentence that describes the agent in prompts.
	Doc string
	// System is the agent's system prompt. Model is its model; empty means the loop's model.
	System, Model string
	// Tools are the names of the tools that the agent may call. An agent with tools works in its
	// own loop, whose system prompt includes System as instructions. With nil, the agent answers
	// with one model call.
	Tools []string
	// Schema is the contract of the agent's answers, in any form that [schema.Parse] accepts. A
	// schema from the snippet overrides it. Nil allows any string.
	Schema json.RawMessage
}
