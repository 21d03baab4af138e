package ledger

import (
	"time"

	"github.com/rlmhq/rlm/repl/llm"
)

// EventKind is the kind of an event.
type EventKind string

// The kinds of events.
const (
	EventRunStarted  EventKind = "run_started"
	EventRunEnded    EventKind = "run_ended"
	EventLoopStarted EventKind = "loop_started" // a sub-loop, at its depth
	EventLoopEnded   EventKind = "loop_ended"
	EventTurnStarted EventKind = "turn_started"
	EventReply       EventKind = "reply" // a model's reply to a loop
	EventSnippet     EventKind = "snippet"
	EventCallStarted EventKind = "call_started" // a sub-call that is a single model call
	EventCall        EventKind = "call"
	EventTool        EventKind = "tool"       // a tool call ended
	EventRetry       EventKind = "retry"      // an answer was invalid or cut; the model tries again
	EventForesight   EventKind = "foresight"  // the expected cost of a combinator
	EventCompaction  EventKind = "compaction" // messages were replaced by a summary
	EventRefusal     EventKind = "refusal"    // a call did not fit the budget
	EventWarning     EventKind = "warning"
	EventWaiting     EventKind = "waiting" // a call is retried: Error is why, Elapsed since when
	EventAnswer      EventKind = "answer"
	EventVerdict     EventKind = "verdict" // a judgement: Status is a sentence, Text may be JSON
	// EventDelta is a piece of a reply, for Progress only. An empty piece means that the reply
	// broke off and starts again.
	EventDelta EventKind = "delta"
)

// Event reports one step of a run. Fields that do not apply to the kind are empty.
type Event struct {
	Time time.Time `json:"time"`
	Kind EventKind `json:"kind"`
	// Node names the loop in the tree: "0" is the root, "0.2" its second sub-loop.
	Node  string `json:"node"`
	Depth int    `json:"depth"`
	Turn  int    `json:"turn,omitempty"`
	// Purpose is the reason of a call: "root" and "sub" for the turns of the root and
	// of sub-loops, "leaf", "compaction", "synthesis", "bypass"; "draft", "revision" and
	// "critique" of the loop reflexion; "llm.call" and "evaluate" of workflows.
	Purpose string `json:"purpose,omitempty"`
	Model   string `json:"model,omitempty"`
	// Agent is the agent to which the loop or call belongs; empty for none.
	Agent string `json:"agent,omitempty"`
	// Text is the reply, the code, the answer, the reason or the tool call, shortened.
	Text   string `json:"text,omitempty"`
	Tier   string `json:"tier,omitempty"`
	Status string `json:"status,omitempty"`
	Error  string `json:"error,omitempty"`
	// Elapsed is the duration of the step.
	Elapsed time.Duration `json:"elapsed_ns,omitempty"`
	// Limit is the maximum duration of a wait.
	Limit time.Duration `json:"limit_ns,omitempty"`
	// Labels are the labels of the run's task, for example a tenant.
	Labels map[string]string `json:"labels,omitempty"`
	// Used is the spending of this step, Spent the run's total up to then.
	Used  *Spending `json:"used,omitempty"`
	Spent *Spending `json:"spent,omitempty"`
	// Ran is the code of EventSnippet with its whole output, Call the sub-call of EventCall.
	// They are for observers in this process, which must not change them; in a trace, the
	// trajectory holds them.
	Ran  *Snippet `json:"-"`
	Call *SubCall `json:"-"`
	// Request, Response and Err belong to EventReply and EventCall: the request, its server, and
	// the reply or error. Host is empty if no server was asked. They are also for observers.
	Request  *llm.Request  `json:"-"`
	Response *llm.Response `json:"-"`
	Err      error         `json:"-"`
	Host     string        `json:"-"`
	Port     int           `json:"-"`
}

// SubCall is a sub-call of a snippet, for its loop's trajectory.
type SubCall struct {
	Model  string
	Prompt string
	// Question is the prompt without its context, ContextLength the length of the context in
	// characters, and Mode the mode of ask_llm. They are empty for a sub-loop.
	Question      string
	ContextLength int
	Mode          string
	// Agent is the agent that answered, empty for none.
	Agent    string
	Response string
	Usage    llm.Usage
	Elapsed  time.Duration
	Err      error
}

// AddLabels returns a progress function that adds labels to each event and passes it to
// progress.
func AddLabels(progress func(Event), labels map[string]string) func(Event) {
	if progress == nil || len(labels) == 0 {
		return progress
	}
	return func(e Event) {
		e.Labels = labels
		progress(e)
	}
}
