package tiers

import "context"

// Exporter is a Sandbox whose namespace can move to a sandbox of another tier.
type Exporter interface {
	// Export returns the whole namespace. The sandbox is unchanged. It must not be called while
	// Run is running.
	Export(ctx context.Context) (State, error)
	// Import loads a state into a sandbox that has not run a snippet yet, and reports the
	// values that it could not load. An unknown format is a [*RejectedError].
	Import(ctx context.Context, state State) (Report, error)
}

// State is a namespace on its way to another tier. Hostile code wrote its bytes, so only a
// sandbox may decode them.
type State struct {
	// Language is the language of the session.
	Language Language
	// Format names the encoding of Data: "pickle" or "replay" in the tiers of this project. A
	// sandbox imports only its own format.
	Format string
	// From is the tier that exported the state.
	From string
	// Snippet is the ordinal of the last snippet in the state.
	Snippet int
	// Data is the namespace.
	Data []byte
	// Exact is the namespace in a form that only its own tier can read, including everything that
	// Data cannot hold; it may be empty. A sandbox that cannot use Exact imports Data.
	Exact []byte
	// Left lists the values that could not be exported.
	Left []Left
}

// Report describes the outcome of a move.
type Report struct {
	// Moved counts the variables that moved.
	Moved int
	// Left lists the values that were left behind.
	Left []Left
	// Exact reports that the sandbox imported the state's Exact, so nothing was left behind.
	Exact bool
	// Inexact is the reason why the sandbox did not import the state's Exact; empty if the state
	// had none.
	Inexact string
}

// Left is a variable, or a part of one, that could not be moved.
type Left struct {
	// Name is the name of the variable.
	Name string `json:"name"`
	// Type is the type of the value that could not be moved.
	Type string `json:"type"`
	// Reason explains in one sentence, to the model, why the value could not be moved.
	Reason string `json:"reason"`
}
