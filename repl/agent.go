package repl

import "encoding/json"

// Agent answers sub_agent_call under its name.
type Agent struct {
	// Doc is a sentence for the prompt.
	Doc string
	// System is its system prompt, Model its model, empty for the loop's.
	System, Model string
	// Tools are the names of the tools that it may call. An agent with tools works in a loop
	// of its own, whose system prompt has System as its instructions. Nil is an agent that
	// answers with one model call.
	Tools []string
	// Schema is the contract of its answers, in any form that [schema.Parse] takes, unless a
	// snippet gives another one. Nil allows any text.
	Schema json.RawMessage
}
