package run

// Triggers configure when an input is so large that a run should read it instead of the calling
// model.
type Triggers struct {
	// Always triggers for every signal.
	Always bool
	// NoLongHorizon ignores Signal.LongHorizon.
	NoLongHorizon bool
	// OutputChars, Traces and Nodes are thresholds: larger values trigger. 0 means the default:
	// 50,000 characters, 500 traces, 1,000 nodes. -1 disables a condition.
	OutputChars, Traces, Nodes int64
}

// Signal describes a task, or the output of a tool.
type Signal struct {
	// LongHorizon marks a task that takes many steps.
	LongHorizon bool
	// OutputChars is the length of an output in characters, Traces the number of failure traces
	// to distil, and Nodes the number of nodes that a graph query returned.
	OutputChars, Traces, Nodes int64
}

// Trigger is a condition that is met: "always", "long_horizon", "large_output", "many_traces" or
// "many_nodes". It is empty if none is met.
type Trigger string

// ShouldTrigger returns the first condition that is met, in the order of [Trigger].
func (t Triggers) ShouldTrigger(s Signal) Trigger {
	t = t.withDefaults()
	switch {
	case t.Always:
		return "always"
	case s.LongHorizon && !t.NoLongHorizon:
		return "long_horizon"
	case isAbove(s.OutputChars, t.OutputChars):
		return "large_output"
	case isAbove(s.Traces, t.Traces):
		return "many_traces"
	case isAbove(s.Nodes, t.Nodes):
		return "many_nodes"
	}

	return ""
}

// withDefaults returns t with every threshold of 0 replaced by its default.
func (t Triggers) withDefaults() Triggers {
	for _, f := range []struct {
		value    *int64
		standard int64
	}{
		{&t.OutputChars, 50_000},
		{&t.Traces, 500},
		{&t.Nodes, 1_000},
	} {
		if *f.value == 0 {
			*f.value = f.standard
		}
	}

	return t
}

// isAbove reports whether a number exceeds a threshold that is not disabled.
func isAbove(n, threshold int64) bool { return threshold > 0 && n > threshold }
