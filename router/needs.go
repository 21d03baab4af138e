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
	// Needs is set if the analyser understood the snippet.
	Needs *Needs
	// Invalid is set if the snippet is not valid in its language, so no tier needs to try it.
	Invalid *tiers.Exception
	// Unknown is the reason why the analyser did not understand the snippet, for example because it
	// is too large or too deeply nested. Only a tier that runs the whole language may try it.
	Unknown string
}

// Needs are the requirements of a snippet, as an analyser finds them without running it. They may
// be wrong, because routing is not isolation.
type Needs struct {
	Language tiers.Language `json:"language"`
	// Imports are the modules imported by name, in order of appearance.
	Imports []Import `json:"imports,omitempty"`
	// Features are the snippet's needs in addition to its language.
	Features []FeatureNeed `json:"features,omitempty"`
	// Reads, Writes and Deletes are the global names that the snippet reads before writing,
	// binds, and deletes.
	Reads   []string `json:"reads,omitempty"`
	Writes  []string `json:"writes,omitempty"`
	Deletes []string `json:"deletes,omitempty"`
	// Calls are the global functions, including host functions, that the snippet calls by plain
	// name and does not define itself.
	Calls []string `json:"calls,omitempty"`
	// Defines are the top-level functions and classes (Go: declarations).
	Defines []string `json:"defines,omitempty"`
	// Later are the needs (imports and features) of functions and classes that the snippet
	// defines but does not use, by name. They become the needs of a later snippet that reads the
	// name.
	Later map[string]*Needs `json:"later,omitempty"`
	// Computes is the snippet's computing time in native code, estimated from constants in its
	// source, and ComputesLine the line with the computation. Zero means unknown.
	Computes     time.Duration `json:"computes_ns,omitempty"`
	ComputesLine int           `json:"computes_line,omitempty"`
	// Telling is set if the snippet contains something unique to its language, so that it cannot be
	// faulty code in another language.
	Telling bool `json:"-"`
}

// Import is one imported module.
type Import struct {
	// Module is the dotted name (Go: the import path).
	Module string `json:"module"`
	// Guarded is set if the snippet itself handles the module's absence, with `except
	// ImportError` around the import.
	Guarded bool `json:"guarded,omitempty"`
	// Unlikely is set if the module is imported only if another one is absent, or only on an
	// unusual version of the language. Such a module does not affect the choice of a tier.
	Unlikely bool `json:"unlikely,omitempty"`
	// Line is the line of the import, counted from 1.
	Line int `json:"line"`

	of string // see FeatureNeed
}

// FeatureNeed is a needed feature and the place in the snippet that shows it.
type FeatureNeed struct {
	Feature tiers.Feature `json:"feature"`
	// Why names the construct that the analyser found: "subprocess.run", "open(..., 'w')".
	Why  string `json:"why"`
	Line int    `json:"line"`

	of string // the name from an earlier snippet that needs it; empty for the snippet itself
}

// describe names the module and the place of its import.
func (i *Import) describe() string {
	return fmt.Sprintf("%s (%s)", texts.OneLine(i.Module), i.where())
}

// where describes the place where a snippet needs an import.
func (i *Import) where() string { return where(i.Line, i.of) }

// where describes the place where a snippet needs a feature.
func (f *FeatureNeed) where() string { return where(f.Line, f.of) }

func where(line int, of string) string {
	if of != "" {
		return "in " + texts.OneLine(of)
	}
	return fmt.Sprintf("line %d", line)
}

// withLater returns the needs plus those of the names that the snippet reads and earlier snippets
// defined. It does not modify n, because verdicts are shared.
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
