package run

// Triggers say when something is so large that a run should look at it instead of
// the model that asked. The zero value has the thresholds below.
type Triggers struct {
	// Always triggers whatever the signal says.
	Always bool
	// NoLongHorizon ignores Signal.LongHorizon.
	NoLongHorizon bool
	// OutputChars, Traces and Nodes are the thresholds: what is above triggers. 0 is
	// the default, NoTrigger switches the condition off.
	OutputChars, Traces, Nodes int64
}

// NoTrigger as a threshold switches its condition off.
const NoTrigger = -1

// Default thresholds.
const (
	DefaultOutputChars = 50_000
	DefaultTraces      = 500
	DefaultNodes       = 1_000
)

// Signal is what is known about a task, or about what a tool returned.
type Signal struct {
	// LongHorizon marks a task that takes many steps.
	LongHorizon bool
	// OutputChars are the characters of an output, Traces the failure traces to
	// distil, Nodes those that a query of a graph returned.
	OutputChars, Traces, Nodes int64
}

// Trigger is a condition that holds.
type Trigger string

// The conditions, in the order in which they are looked at.
const (
	TriggerNone        Trigger = ""
	TriggerAlways      Trigger = "always"
	TriggerLongHorizon Trigger = "long_horizon"
	TriggerLargeOutput Trigger = "large_output"
	TriggerManyTraces  Trigger = "many_traces"
	TriggerManyNodes   Trigger = "many_nodes"
)

// ShouldTrigger is that of c.Triggers.
func (c *Config) ShouldTrigger(s Signal) Trigger { return c.Triggers.ShouldTrigger(s) }

// ShouldTrigger returns the first condition that holds, TriggerNone if none does.
func (t Triggers) ShouldTrigger(s Signal) Trigger {
	switch {
	case t.Always:
		return TriggerAlways
	case s.LongHorizon && !t.NoLongHorizon:
		return TriggerLongHorizon
	case above(s.OutputChars, t.OutputChars, DefaultOutputChars):
		return TriggerLargeOutput
	case above(s.Traces, t.Traces, DefaultTraces):
		return TriggerManyTraces
	case above(s.Nodes, t.Nodes, DefaultNodes):
		return TriggerManyNodes
	}
	return TriggerNone
}

func above(n, threshold, standard int64) bool {
	if threshold == 0 {
		threshold = standard
	}
	return threshold > 0 && n > threshold
}
