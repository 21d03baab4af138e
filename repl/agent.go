package repl

// Agent answers sub_agent_call under its name.
type Agent struct {
	// Doc is a sentence for the prompt.
	Doc string
	// System is its system prompt, Model its model, empty for the loop's.
	System, Model string
}
