package otel

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// kind is a kind of loop. It determines the names of the spans.
type kind struct {
	run       string // the span of the loop
	iteration string // the span of a turn, before its number
	first     int    // the number of the first turn's span
	sub       *kind  // the kind of the sub-loops; nil for the same kind
}

// runKind is the kind of `rlm ask`.
var runKind = kind{
	run: "rlm_run", iteration: "rlm_iteration_", first: 1,
	sub: &kind{run: "rlm_sub_loop", iteration: "rlm_iteration_", first: 1},
}

// kinds maps commands to kinds of loops.
var kinds = map[string]*kind{
	"run":       &runKind,
	"reflect":   {run: "rr_reflect", iteration: "rr_iteration_"},
	"reflexion": {run: "reflexion_run", iteration: "reflexion_iteration_", first: 1},
	// A workflow has a sub-loop for each node, and iterations for the loops in it.
	"workflow": {
		run: "workflow_run", iteration: "workflow_iteration_", first: 1,
		sub: &kind{run: "workflow_node", iteration: "workflow_iteration_", first: 1},
	},
	// Distill has two iterations, clusters and edits, and their runs are child spans.
	"distill": {run: "distill_run", iteration: "distill_step_", first: 1, sub: &runKind},
}

// findKind returns the kind of loop with a name. An empty name means "run".
func findKind(name string) (*kind, error) {
	if name == "" {
		return &runKind, nil
	}
	if k, ok := kinds[name]; ok {
		return k, nil
	}

	known := slices.Sorted(maps.Keys(kinds))
	return nil, fmt.Errorf("cannot observe the loop %q: use one of %s",
		name, strings.Join(known, ", "))
}

// subKind returns the kind of the loop's sub-loops.
func (k *kind) subKind() *kind {
	if k.sub == nil {
		return k
	}
	return k.sub
}
