package router

import (
	"fmt"
	"strings"
	"text/tabwriter"
)

// Text shows the plan as tables for people. For programs there is its JSON.
func (p *Plan) Text() string {
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fmt.Fprintf(w, "language\t%s\n", oneLine(string(p.Language)))
	if p.Home != "" {
		fmt.Fprintf(w, "home\t%s\n", p.Home)
	}
	fmt.Fprintf(w, "snippet\t%s\n", p.snippet())
	_ = w.Flush() // a Builder takes everything
	b.WriteByte('\n')
	fmt.Fprintf(w, "tier\torder\tcost\twhy\n")
	for i, step := range p.Chain {
		fmt.Fprintf(w, "%s\t%d\t%s\t%s\n", step.Tier, i+1, step.Cost(), step.why())
	}
	for _, r := range p.Refusals {
		fmt.Fprintf(w, "%s\t-\t-\t%s\n", r.Tier, r.Reason)
	}
	_ = w.Flush()
	return b.String()
}

// snippet says in one line what the analyser found.
func (p *Plan) snippet() string {
	switch {
	case p.Invalid != "":
		return "is not " + oneLine(string(p.Language)) + ": " + p.Invalid
	case p.Needs == nil:
		return "not understood: " + oneLine(p.Unknown)
	}
	var parts []string
	for i := range p.Needs.Imports {
		module := &p.Needs.Imports[i]
		kind := "imports "
		if module.Guarded {
			kind = "may import "
		}
		parts = append(parts, fmt.Sprintf("%s%s (line %d)", kind, oneLine(module.Module), module.Line))
	}
	for i := range p.Needs.Features {
		need := &p.Needs.Features[i]
		parts = append(parts, fmt.Sprintf("needs %s (%s, line %d)", need.Feature, oneLine(need.Why), need.Line))
	}
	if len(parts) == 0 {
		return "needs nothing beyond its language"
	}
	return strings.Join(parts, "; ")
}

// why says what the cost of a step is made of.
func (s Step) why() string {
	switch {
	case s.Home:
		return "home"
	case s.Move > 0:
		return fmt.Sprintf("start %s, move %s", s.Run, s.Move)
	}
	return fmt.Sprintf("start %s", s.Run)
}
