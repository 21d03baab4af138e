package router

import (
	"fmt"
	"slices"
	"time"

	"github.com/rlmhq/rlm/internal/text/texts"
	"github.com/rlmhq/rlm/tiers"
)

// Verdict is an analyser's answer: exactly one of its fields is set.
type Verdict struct {
	// Needs: the analyser understood the snippet.
	Needs *Needs
	// Invalid: the snippet is not of this language, so no tier needs to try it.
	Invalid *tiers.Exception
	// Unknown says why the analyser did not understand the snippet: it may be too large
	// or too deep. Only a tier that runs the whole language may try it.
	Unknown string
}

// Needs is what a snippet wants of a tier, as an analyser sees it without running
// anything. It may be wrong: a route is not a wall.
type Needs struct {
	Language tiers.Language `json:"language"`
	// Imports are the modules imported by name, in order of appearance.
	Imports []Import `json:"imports,omitempty"`
	// Features are what the snippet needs beyond its language.
	Features []FeatureNeed `json:"features,omitempty"`
	// Reads, Writes and Deletes are the global names that the snippet reads before it
	// writes them, binds, and deletes.
	Reads   []string `json:"reads,omitempty"`
	Writes  []string `json:"writes,omitempty"`
	Deletes []string `json:"deletes,omitempty"`
	// Calls are the global functions that the snippet calls by plain name and does not
	// define itself, host functions included.
	Calls []string `json:"calls,omitempty"`
	// Defines are the top-level functions and classes (Go: declarations).
	Defines []string `json:"defines,omitempty"`
	// Later are the needs, imports and features, of functions and classes that the snippet
	// defines and does not use, by their names: a later snippet has them if it reads the name.
	Later map[string]*Needs `json:"later,omitempty"`
	// Computes is how long the snippet computes in native code, as far as constants in
	// its text show, and ComputesLine where it does. Zero means that nothing is known.
	Computes     time.Duration `json:"computes_ns,omitempty"`
	ComputesLine int           `json:"computes_line,omitempty"`
	// Telling is set if the snippet has what only its language has, so that it cannot
	// be a mistake in another one.
	Telling bool `json:"-"`
}

// Import is one imported module.
type Import struct {
	// Module is the dotted name (Go: the import path).
	Module string `json:"module"`
	// Guarded is set when the snippet itself deals with the module's absence, by
	// `except ImportError` around the import.
	Guarded bool `json:"guarded,omitempty"`
	// Unlikely is set when the module is only imported if another one is absent, or on an
	// unusual version of the language. It is no reason to choose a tier.
	Unlikely bool `json:"unlikely,omitempty"`
	// Line is counted from 1.
	Line int `json:"line"`

	of string // see FeatureNeed
}

// FeatureNeed is one feature and where the snippet shows that it needs it.
type FeatureNeed struct {
	Feature tiers.Feature `json:"feature"`
	// Why names what the analyser saw: "subprocess.run", "open(..., 'w')".
	Why  string `json:"why"`
	Line int    `json:"line"`

	of string // what an earlier snippet defined and needs it, empty for the snippet itself
}

// describe names the module and where it is imported.
func (i *Import) describe() string {
	return fmt.Sprintf("%s (%s)", texts.OneLine(i.Module), i.where())
}

// where says where a snippet needs an import.
func (i *Import) where() string { return where(i.Line, i.of) }

// where says where a snippet needs a feature.
func (f *FeatureNeed) where() string { return where(f.Line, f.of) }

func where(line int, of string) string {
	if of != "" {
		return "in " + texts.OneLine(of)
	}
	return fmt.Sprintf("line %d", line)
}

// withLater returns the needs with those of the names that it reads and that earlier
// snippets defined. It changes nothing: a verdict is shared.
func (n *Needs) withLater(later map[string]*Needs) *Needs {
	whole := *n
	for _, name := range n.Reads {
		found := later[name]
		if found == nil {
			continue
		}
		whole.Imports, whole.Features = slices.Clone(whole.Imports), slices.Clone(whole.Features)
		for _, i := range found.Imports {
			i.of = name
			whole.Imports = append(whole.Imports, i)
		}
		for _, f := range found.Features {
			f.of = name
			whole.Features = append(whole.Features, f)
		}
	}
	return &whole
}

// needsFeature reports whether the snippet needs a feature.
func (n *Needs) needsFeature(f tiers.Feature) bool {
	for _, need := range n.Features {
		if need.Feature == f {
			return true
		}
	}
	return false
}
