// Package tiers is the contract between the router and the sandboxes that run snippets.
//
// A [Tier] is a kind of isolation: CPython in WebAssembly, a container, a jailed process. A
// [Sandbox] is one live instance of a tier. One session owns it, and its namespace persists
// across snippets. A snippet reaches the outside only through [Host].
//
// # Three endings
//
// A run has exactly one of three endings:
//
//   - The snippet ended, well or badly. Run returns a [Result] and a nil error. An
//     exception, a limit and a crash of the snippet's interpreter are data: the model that
//     wrote the snippet reads them.
//   - The tier cannot run this snippet. Run or Open returns a [*RejectedError], and the
//     router tries the next tier.
//   - The tier broke. Run or Open returns any other error: a [*BrokenError] if the tier
//     knows whether the snippet ran.
//
// # Optional interfaces
//
// A Sandbox may also be a [Forker], an [Exporter], an [Extender] or a [Collector]. Callers check
// with a type assertion.
package tiers

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"time"
)

// Tier opens sandboxes of one kind. A Tier is safe for concurrent use.
type Tier interface {
	// Info describes the tier. It is constant and never blocks.
	Info() Info
	// Probe returns nil if the tier works on this machine now. Otherwise the error gives
	// the reason and the remedy.
	Probe(ctx context.Context) error
	// Warm makes any slow preparations before the first Open. Without it, the first Open makes the
	// preparations that it needs.
	Warm(ctx context.Context) error
	// Open starts a sandbox for one session. It fails if the tier cannot enforce cfg. The
	// context bounds only the opening, not the sandbox's life.
	Open(ctx context.Context, cfg Config) (Sandbox, error)
	// Close frees the resources that the tier keeps for further sandboxes. Close all sandboxes
	// first. It is idempotent.
	Close() error
}

// Sandbox is one live instance of a tier. It has one owner: its methods must
// not be called concurrently.
type Sandbox interface {
	// Run runs one snippet in the sandbox's namespace and waits until it ends. When ctx ends, Run
	// stops the snippet and returns the context's error in a [*BrokenError], whose Lost describes
	// the restore. The sandbox remains usable.
	Run(ctx context.Context, job Job) (Result, error)
	// Close ends the sandbox and frees its resources. It is idempotent.
	Close() error
}

// Host answers the calls that a snippet makes to the outside. It must be safe for concurrent use:
// the calls of one asyncio.gather arrive concurrently.
//
// An error becomes a Python exception in the snippet, with the error's message.
type Host interface {
	Call(ctx context.Context, call Call) (Value, error)
}

// HostFunc adapts a function to [Host].
type HostFunc func(ctx context.Context, call Call) (Value, error)

// Call calls f.
func (f HostFunc) Call(ctx context.Context, call Call) (Value, error) { return f(ctx, call) }

// Value is one JSON value that crosses the sandbox's wall.
type Value = json.RawMessage

// Call is one host call. Every field is from the guest and is hostile.
type Call struct {
	// Function is the name that was called, one of Config.Functions.
	Function string
	// Args and Named are the positional and the keyword arguments. A part of a lazy context
	// arrives as {"__rlm_text__": [input, start, end]}: the characters from start to end of
	// the input with that number.
	Args  []Value
	Named map[string]Value
	// Snippet is the ordinal of the calling snippet in its session, and Ordinal that of the call
	// in the snippet. Both count from 1.
	Snippet, Ordinal int
}

// Function is a global name that the host defines for snippets, usually a function.
type Function struct {
	// Name is a Python identifier.
	Name string
	// Doc becomes the function's docstring.
	Doc string
	// Value, if set, makes the name a variable with this value instead of a function. Snippets
	// may rebind the name, and the new value persists. Only Python has such variables.
	Value Value
	// Timed counts the time of its calls as the snippet's own, which the limits bound, because the
	// host computes for the snippet. Other calls are not limited in time.
	Timed bool
}

// Input is one context of a session: context_0, context_1, and so on, where
// context is the first. Exactly one of the fields Text, Dir and Value is set.
type Input struct {
	// Name describes the origin of the input, for display and prompts.
	Name string
	// Variable is another name of the input in Python snippets. Empty means none.
	Variable string
	// Text is a text of any size. The caller closes it after closing the sandbox.
	Text Text
	// Dir is a directory: a mapping of relative paths to texts.
	Dir Dir
	// Value is a JSON value.
	Value Value
	// Notes are sentences about facts that the input does not show, such as how it was decoded and
	// which files were left out. Prompts contain them.
	Notes []string
}

// Close closes the text or the directory. Close the sandbox first.
func (in Input) Close() error {
	var errs []error
	for _, part := range []any{in.Text, in.Dir} {
		if closer, ok := part.(io.Closer); ok {
			errs = append(errs, closer.Close())
		}
	}
	return errors.Join(errs...)
}

// Config configures a sandbox. The zero value is a sandbox with the default limits, no inputs
// and no host functions.
type Config struct {
	// Host answers calls. If it is nil, each call gets an error that reports the missing host.
	Host Host
	// Functions are the names of Host's functions, and variables. If two share a name, the later
	// one applies.
	Functions []Function
	// Inputs are the session's contexts.
	Inputs []Input
	// Limits bound each snippet. A zero field means its default.
	Limits Limits
	// Language is the language of the first snippet, or empty if unknown. A tier with several
	// languages prepares this one immediately and the others on demand.
	Language Language
	// Hosts are the servers to which snippets may connect, each as HOST:PORT with a public name.
	// Tiers with FeatureSockets reach only these, through a proxy on the host. All other tiers
	// have no network and ignore Hosts.
	Hosts []string
	// Deterministic makes clocks, randomness and object identities the same in
	// every run of the same snippets.
	Deterministic bool
	// Mounts are host files and folders that snippets can read.
	Mounts []Mount
	// Packages is a folder of pure-Python packages that snippets can import, as made by `pip
	// install --target`. Tiers with FeaturePackages support it; these packages take precedence
	// over the tier's packages of the same name.
	Packages fs.FS
	// Out provides [OutFolder], whose files a [Collector] copies to the host.
	Out bool
	// Labels identify the user of the sandbox, such as tenant and request. There are at most 16. A
	// name begins with a lower case letter and has at most 63 lower case letters, digits and "_.-".
	// A value has at most 256 bytes that print on one line. Labels are added to logs and
	// containers; snippets cannot read them.
	Labels map[string]string
}

// Job is one snippet to run.
type Job struct {
	// Language is the language of Source. Empty means [Python].
	Language Language
	// Source is the snippet's source code, unmodified.
	Source string
	// Rejectable lets the tier end the snippet with a [*RejectedError] if it turns out to need
	// something that another tier may have, such as a module or a thread. The sandbox then
	// returns to the state before the snippet. Without Rejectable, the snippet gets an
	// exception.
	Rejectable bool
	// Stdout and Stderr, if set, receive the snippet's output while it runs, within the output
	// limit. Their write errors do not affect the snippet.
	Stdout, Stderr io.Writer
	// Seed, if set, determines the snippet's randomness, and Began is the first time that its clock
	// shows, as far as the tier can control both. A durable run uses them to repeat a snippet.
	Seed  []byte
	Began time.Time
}

// EchoWriter is an optional interface of [Job.Stdout], to receive the value of the last expression
// apart from the rest of the output.
type EchoWriter interface {
	// WriteEcho receives the value's text with its line end; Write does not receive it.
	WriteEcho(text []byte)
}

// Language names a programming language.
type Language string

// The languages of snippets.
const (
	Python Language = "python"
	Go     Language = "go"
)

// Status is the way in which a snippet ended.
type Status string

// The ways in which a snippet can end.
const (
	// StatusOK means that the snippet ran to its end, or called FINAL.
	StatusOK Status = "ok"
	// StatusRaised means that the snippet did not catch an exception.
	StatusRaised Status = "raised"
	// StatusExited means that the snippet called sys.exit or exit.
	StatusExited Status = "exited"
	// StatusLimit means that a limit stopped the snippet.
	StatusLimit Status = "limit"
	// StatusCrashed means that the snippet crashed its own interpreter.
	StatusCrashed Status = "crashed"
)

// Result describes a snippet that ended.
type Result struct {
	Status Status
	// Stdout and Stderr are the snippet's output, up to Limits.Output bytes together. They
	// hold arbitrary bytes, usually UTF-8.
	Stdout, Stderr string
	// Echo shows the last expression's value, or is empty. The same text is the last line of
	// Stdout, as in an interactive interpreter. Compiled Go does not set it.
	Echo string
	// Artefacts are the results other than text, in the order in which the snippet made them.
	Artefacts []Artefact
	// Dropped is the number of bytes dropped beyond the output limit.
	Dropped int64
	// Final is the value of the session's FINAL, if the snippet called it.
	Final *Final
	// Exception is set if Status is StatusRaised, StatusExited or StatusCrashed, or if a limit
	// stopped the snippet with an exception.
	Exception *Exception
	// Limit names the limit that was exceeded. With StatusLimit, it stopped the snippet;
	// otherwise the snippet continued, as with the output limit.
	Limit Limit
	// Usage is the snippet's use of resources.
	Usage Usage
	// Enforced lists the limits with the mechanisms that enforced them.
	Enforced []Enforcement
	// Denied lists the connections that the proxy refused: see Config.Hosts.
	Denied []Denial
	// Lost describes the session's loss in a restore; nil if there is none.
	Lost *Loss
	// Variables are the variables that snippets created and that still exist, oldest first, at most
	// a few hundred. Nil means unknown: the tier does not report them, or the snippet was stopped.
	Variables []Variable
}

// Variable is a variable of a session.
type Variable struct {
	// Name is the variable's name. Kind is its type, with the length of a collection, such as "list
	// (1,204)". Both are from the guest and are hostile.
	Name, Kind string
}

// Denial is a connection that the proxy refused.
type Denial struct {
	// Target is the requested address. Reason explains why the proxy refused it and what is
	// allowed.
	Target string `json:"target"`
	Reason string `json:"reason"`
}

// Final is the answer that a snippet gave with FINAL or one of its dialects.
type Final struct {
	// Value is the answer as JSON, without duplicate keys, NaN or infinity, which raise exceptions.
	// A value of another type that JSON lacks is given as its str().
	Value Value
	// Name is the variable that FINAL_VAR named.
	Name string
}

// Exception is an uncaught exception of a snippet.
type Exception struct {
	// Type is the name of the class, Message the exception's str(), and Traceback the traceback
	// that CPython prints, with the lines of the snippet.
	Type      string `json:"type"`
	Message   string `json:"message"`
	Traceback string `json:"traceback,omitempty"`
	// ExitCode is the argument of sys.exit if Status is StatusExited.
	ExitCode int `json:"exit_code,omitempty"`
}

// Loss describes the part of a session's state that did not survive.
type Loss struct {
	// Snippets are the ordinals of the snippets whose effects on the namespace are gone,
	// including the stopped one.
	Snippets []int `json:"snippets"`
	// Reason explains the loss in one sentence, to the model.
	Reason string `json:"reason"`
}

// Usage is the resource use of one snippet.
type Usage struct {
	// Wall is the time from start to end. HostWait is the part spent in host calls, and Idle the
	// part spent asleep. Active is the rest, during which the snippet computed.
	Wall, Active, HostWait, Idle time.Duration
	// Queued is the time that the snippet waited for a processor, before its start and
	// afterwards. It is not part of Wall.
	Queued time.Duration
	// Fuel counts loop iterations of the guest's machine code, plus one for each 64 bytes that
	// it copies or fills in bulk, or for each 2 to 8 bytes that the host hashes for it, exactly
	// and repeatably. It is 0 in tiers without FeatureFuel.
	Fuel uint64
	// PeakMemory is the guest's highest memory use, in bytes.
	PeakMemory int64
	// HostCalls counts calls to Host.
	HostCalls int
	// OutputBytes counts the bytes that the snippet wrote, kept or dropped.
	OutputBytes int64
}

// Forker is a Sandbox whose live namespace can be copied into a new one.
type Forker interface {
	// Fork returns an independent sandbox with the same namespace and configuration. It must not
	// be called while Run is running.
	Fork(ctx context.Context) (Sandbox, error)
}

// Extender is a Sandbox that accepts further inputs and functions.
type Extender interface {
	// Extend adds inputs after those of Config, and functions of its Host, for the next snippet.
	// It must not be called while Run is running.
	Extend(ctx context.Context, inputs []Input, functions []Function) error
}
