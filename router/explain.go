package router

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/rlmhq/rlm/internal/text/texts"
)

// Text formats the plan as tables for display. Programs should use the plan's JSON.
func (p *Plan) Text() string {
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fmt.Fprintf(w, "language\t%s\n", texts.OneLine(string(p.Language)))
	if p.Home != "" {
		fmt.Fprintf(w, "home\t%s\n", p.Home)
	}
	fmt.Fprintf(w, "snippet\t%s\n", p.describeSnippet())
	_ = w.Flush() // writing to a Builder cannot fail
	b.WriteByte('\n')

	fmt.Fprintf(w, "tier\torder\tcost\twhy\n")
	for i, step := range p.Chain {
		fmt.Fprintf(w, "%s\t%d\t%s\t%s\n", step.Tier, i+1, step.cost(), step.describe())
	}
	for _, r := range p.Refusals {
		fmt.Fprintf(w, "%s\t-\t-\t%s\n", r.Tier, r.Reason)
	}
	_ = w.Flush()

	return b.String()
}

// describeSnippet summarises the analyser's findings in one line.
func (p *Plan) describeSnippet() string {
	switch {
	case p.Invalid != "":
		return "is not " + texts.OneLine(string(p.Language)) + ": " + p.Invalid
	case p.Needs == nil:
		return "not understood: " + texts.OneLine(p.Unknown)
	}

	parts := p.Needs.describe()
	for _, name := range slices.Sorted(maps.Keys(p.Needs.Later)) {
		later := strings.Join(p.Needs.Later[name].describe(), ", ")
		parts = append(parts, "when "+texts.OneLine(name)+" is used: "+later)
	}

	if p.Needs.Computes >= shownComputing {
		parts = append(parts, fmt.Sprintf("computes about %s natively (line %d)",
			p.Needs.Computes, p.Needs.ComputesLine))
	}

	if len(parts) == 0 {
		return "needs nothing beyond its language"
	}
	return strings.Join(parts, "; ")
}

// describe lists the imports and features.
func (n *Needs) describe() (parts []string) {
	for i := range n.Imports {
		module := &n.Imports[i]
		kind := "imports "
		if module.Guarded || module.Unlikely {
			kind = "may import "
		}
		parts = append(parts, kind+module.describe())
	}

	for i := range n.Features {
		need := &n.Features[i]
		parts = append(parts,
			fmt.Sprintf("needs %s (%s, %s)", need.Feature, texts.OneLine(need.Why), need.where()))
	}
	return parts
}

// shownComputing is the minimum computing time for which an estimate is shown.
const shownComputing = 100 * time.Millisecond

// describe lists the parts of a step's cost, and the modules that the tier lacks.
func (s Step) describe() string {
	text := "home"
	if !s.Home {
		text = fmt.Sprintf("start %s", s.Run)
	}
	if s.Move > 0 {
		text += fmt.Sprintf(", move %s", s.Move)
	}
	if s.Compute > 0 {
		text += fmt.Sprintf(", compute %s", s.Compute)
	}
	if len(s.Lacks) > 0 {
		text += "; lacks the module " + s.Lacks[0] + ": the import will fail"
	}
	return text
}
