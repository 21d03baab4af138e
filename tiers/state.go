package tiers

import "context"

// Exporter is a Sandbox whose namespace can move to a sandbox of another tier.
type Exporter interface {
	// Export returns the whole namespace. The sandbox is unchanged. It must not
	// be called while Run runs.
	Export(ctx context.Context) (State, error)
	// Import brings a state into a sandbox that has run no snippet yet, and
	// reports what of it could not come along. A state of a format that the
	// sandbox does not know is a [*RejectedError].
	Import(ctx context.Context, state State) (Report, error)
}

// State is a namespace on its way to another tier. Its bytes were written by
// hostile code: only a sandbox may decode them.
type State struct {
	// Language of the session.
	Language Language
	// Format says how Data is encoded; only equals understand one another.
	Format string
	// From is the tier that the state comes from.
	From string
	// Snippet is the ordinal of the last snippet that the state holds.
	Snippet int
	// Data is the namespace.
	Data []byte
	// Left is what could not be exported.
	Left []Left
}

// The formats of a State.
const (
	// FormatPickle is a stream of package pykernel's guest, see
	// guest/state.py: the values by pickle, functions and classes by value.
	FormatPickle = "pickle"
	// FormatReplay is a JSON array of the session's snippets, in order: running
	// them again gives the same namespace. One that called the host is an object
	// of its source and the calls with their answers, every other a string.
	FormatReplay = "replay"
)

// Report says how a move went.
type Report struct {
	// Moved counts the variables that came along.
	Moved int
	// Left is what did not.
	Left []Left
}

// Left is a variable, or a part of one, that could not move.
type Left struct {
	// Name is the variable's.
	Name string `json:"name"`
	// Type is the type of the value that could not move.
	Type string `json:"type"`
	// Reason is one sentence for the model.
	Reason string `json:"reason"`
}
