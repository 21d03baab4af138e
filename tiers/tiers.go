// Package tiers is the contract between the router and everything that can run
// a snippet.
//
// A [Tier] is a kind of isolation: CPython in WebAssembly, a container, a
// jailed process. A [Sandbox] is one live instance of it, owned by one session:
// its namespace persists over the snippets it runs. A snippet reaches the world
// through one door, [Host].
//
// # Three endings
//
// Running a snippet ends in one of three ways, and they are never mixed:
//
//   - The snippet ended, well or badly. Run returns a [Result] and a nil error.
//     An exception, a limit that fired and a crash of the snippet's own
//     interpreter are data: the model that wrote the snippet reads them.
//   - The tier cannot run this snippet. Run or Open returns a [*RejectedError]
//     and the router goes on to the next tier.
//   - The tier broke. Run or Open returns any other error, a [*BrokenError]
//     where the tier can say what became of the snippet.
//
// # Optional interfaces
//
// A Tier may also be a [Warmer]; a Sandbox may also be a [Forker], an [Exporter], an
// [Extender] and a [Collector]. They are found by type assertion.
package tiers

import (
	"context"
	"encoding/json"
	"io"
	"time"
)

// Tier opens sandboxes of one kind. A Tier is safe for concurrent use.
type Tier interface {
	// Info describes the tier. It is constant and never blocks.
	Info() Info
	// Probe returns nil if the tier is usable on this machine now, and
	// otherwise why not and what to do about it.
	Probe(ctx context.Context) error
	// Open starts a sandbox for one session. It fails if the tier cannot
	// enforce what cfg asks for. The context bounds the opening alone.
	Open(ctx context.Context, cfg Config) (Sandbox, error)
}

// Sandbox is one live instance of a tier. It has one owner: its methods must
// not be called concurrently.
type Sandbox interface {
	// Run runs one snippet in the sandbox's namespace and waits for it. When
	// ctx ends, the snippet is stopped and Run returns the context's error in
	// a [*BrokenError]; the sandbox stays usable, restored as Result.Lost
	// would tell.
	Run(ctx context.Context, job Job) (Result, error)
	// Close ends the sandbox and frees all it holds. It is idempotent.
	Close() error
}

// Host answers the calls that a snippet makes to the outside. It must be safe
// for concurrent use: calls under one asyncio.gather arrive at once.
//
// An error becomes a Python exception in the snippet, with its text.
type Host interface {
	Call(ctx context.Context, call Call) (Value, error)
}

// HostFunc adapts a function to [Host].
type HostFunc func(ctx context.Context, call Call) (Value, error)

// Call calls f.
func (f HostFunc) Call(ctx context.Context, call Call) (Value, error) { return f(ctx, call) }

// Value is one JSON value, as it crosses the sandbox's wall.
type Value = json.RawMessage

// Call is one host call. Every field comes from the guest and is hostile.
type Call struct {
	// Function is the name called, one of Config.Functions.
	Function string
	// Args and Named are the positional and the keyword arguments. A lazy
	// context handle arrives as a [TextRef].
	Args  []Value
	Named map[string]Value
	// Snippet is the ordinal of the snippet that calls, from 1; Ordinal that
	// of the call within it, from 1.
	Snippet, Ordinal int
}

// TextRef stands for a part of a lazy context in the arguments of a host call:
// the characters [Start, End) of input Input. It is encoded as
// {"__rlm_text__": [input, start, end]}.
type TextRef struct {
	Input      int
	Start, End int64
}

// Function is a host function that the snippet finds as a global name.
type Function struct {
	// Name is a Python identifier.
	Name string
	// Doc becomes the function's docstring.
	Doc string
}

// Input is one context of a session: context_0, context_1, and so on, where
// context is the first. Exactly one of the fields Text, Dir and Value is set.
type Input struct {
	// Name says where the input comes from, for people and prompts.
	Name string
	// Text is a text of any size. The caller keeps it open as long as the
	// sandbox lives.
	Text Text
	// Dir is a directory: a mapping of relative paths to texts.
	Dir Dir
	// Value is a JSON value.
	Value Value
}

// Config says what a sandbox must have. The zero value is a sandbox with the
// default limits, no inputs and no host functions.
type Config struct {
	// Host answers calls. Nil answers each with an error that says so.
	Host Host
	// Functions are the names of Host's functions.
	Functions []Function
	// Inputs are the session's contexts.
	Inputs []Input
	// Limits bound each snippet. A zero field means its default.
	Limits Limits
	// Language is that of the first snippet, empty where nobody knows: a tier of
	// several languages starts what that needs at once, the rest when it is needed.
	Language Language
	// Hosts are what snippets may connect to, each as HOST:PORT with a public name.
	// Tiers with FeatureSockets reach them through a proxy of the host's, and
	// nothing else; the other tiers have no network whatever this says.
	Hosts []string
	// Deterministic makes clocks, randomness and object identities the same in
	// every run of the same snippets.
	Deterministic bool
	// Mounts are files and folders of the host that snippets find, read-only.
	Mounts []Mount
	// Out gives snippets [OutFolder], from which files come back: see [Collector].
	Out bool
	// Labels say for whom the sandbox works, such as tenant and request: see
	// [CheckLabels]. They are for logs and for the containers' labels; snippets do not
	// see them.
	Labels map[string]string
}

// Job is one snippet to run.
type Job struct {
	// Language of Source. Empty means [Python].
	Language Language
	// Source is the snippet's text, unmodified.
	Source string
	// Rejectable makes the tier end the snippet with a [*RejectedError] when it
	// turns out at run time to need what the tier lacks and another may have: a
	// module, a thread. The sandbox is then in the state before the snippet.
	// Without it the snippet meets an exception.
	Rejectable bool
	// Stdout and Stderr, where set, receive what the snippet writes as it
	// writes it, within the output limit. A write error is not reported to the
	// snippet.
	Stdout, Stderr io.Writer
}

// Language names a programming language.
type Language string

// The languages that the tiers know.
const (
	Python Language = "python"
	Go     Language = "go"
)

// Status says how a snippet ended.
type Status string

// The ways in which a snippet ends.
const (
	// StatusOK: the snippet ran to its end, or called FINAL.
	StatusOK Status = "ok"
	// StatusRaised: an exception left the snippet.
	StatusRaised Status = "raised"
	// StatusExited: the snippet called sys.exit or exit.
	StatusExited Status = "exited"
	// StatusLimit: a limit stopped the snippet.
	StatusLimit Status = "limit"
	// StatusCrashed: the snippet brought its own interpreter down.
	StatusCrashed Status = "crashed"
)

// Result is what became of a snippet.
type Result struct {
	Status Status
	// Stdout and Stderr are what the snippet wrote, up to Limits.Output bytes
	// together. They hold arbitrary bytes, usually UTF-8.
	Stdout, Stderr string
	// Dropped is how many bytes were written beyond the limit and not kept.
	Dropped int64
	// Final is the value of the session's FINAL, if the snippet called it.
	Final *Final
	// Exception is set when Status is StatusRaised, StatusExited or
	// StatusCrashed, and when a limit stopped the snippet by an exception.
	Exception *Exception
	// Limit names the limit that fired: with StatusLimit the one that stopped
	// the snippet, otherwise one that it exceeded and yet went on.
	Limit Limit
	// Usage is what the snippet used.
	Usage Usage
	// Enforced says which limits were kept, and by what.
	Enforced []Enforcement
	// Denied are connections that were refused, see Config.Hosts.
	Denied []Denial
	// Lost says what a restore took from the session, nil if nothing.
	Lost *Loss
	// Variables are those that snippets made and that exist now, in the order of
	// their making, at most a few hundred. Nil means that the tier did not say: it
	// does not know, or the snippet was stopped.
	Variables []Variable
}

// Variable is a variable of a session.
type Variable struct {
	// Name is the variable's, Kind its type and for a collection its length, such
	// as "list (1,204)". Both come from the guest.
	Name, Kind string
}

// Denial is a connection that a snippet asked for and did not get.
type Denial struct {
	// Target is what it asked for, and Reason why not, with what is allowed.
	Target, Reason string
}

// Final is the answer that a snippet gave by FINAL and its dialects.
type Final struct {
	// Value is the answer as JSON. What JSON cannot say is its str().
	Value Value
	// Name is the variable it came from, for FINAL_VAR.
	Name string
}

// Exception is an exception that left a snippet.
type Exception struct {
	// Type is the class's name, Message its str(), Traceback what CPython
	// prints, with the snippet's own lines.
	Type, Message, Traceback string
	// ExitCode is what sys.exit asked for, with StatusExited.
	ExitCode int
}

// Loss says what part of a session's state did not survive.
type Loss struct {
	// Snippets are the ordinals whose effects on the namespace are gone, the
	// stopped one included.
	Snippets []int
	// Reason is one sentence for the model.
	Reason string
}

// Usage is what one snippet used.
type Usage struct {
	// Wall is the time from start to end. HostWait is the part of it spent
	// waiting for host calls, Idle the part spent sleeping; Active is the
	// rest, in which the snippet computed.
	Wall, Active, HostWait, Idle time.Duration
	// Fuel counts the loop iterations of the guest's machine code
	// where the tier meters them: exact and repeatable.
	Fuel uint64
	// PeakMemory is the most memory the guest had, in bytes.
	PeakMemory int64
	// HostCalls counts calls to Host.
	HostCalls int
	// OutputBytes counts what the snippet wrote, kept or not.
	OutputBytes int64
}

// Warmer is a Tier that can do its slow preparations ahead of the first Open.
type Warmer interface {
	Warm(ctx context.Context) error
}

// Forker is a Sandbox whose live namespace can be copied into a new one.
type Forker interface {
	// Fork returns an independent sandbox with the same namespace and
	// configuration. It must not be called while Run runs.
	Fork(ctx context.Context) (Sandbox, error)
}

// Extender is a Sandbox whose session can get further inputs and functions.
type Extender interface {
	// Extend adds inputs after those of Config, and functions of its Host. The next
	// snippet finds them. It must not be called while Run runs.
	Extend(ctx context.Context, inputs []Input, functions []Function) error
}
