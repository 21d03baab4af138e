package tiers

import (
	"strings"
	"time"
)

// Info is what a tier is and has, as data. The router knows a tier only by
// this and by Probe.
type Info struct {
	// Name is unique among the tiers: "wasm", "docker".
	Name string
	// Languages that the tier runs.
	Languages []Language
	// Lacks says of languages that the tier does not run here and could what is
	// missing, and what to do about it. It may be known only after Probe.
	Lacks map[Language]string
	// Features that a snippet may need and the tier has.
	Features []Feature
	// Modules are the Python modules that snippets can import. It may be known
	// only after Probe or Warm.
	Modules Modules
	// Isolation is how strong the tier's wall is.
	Isolation Isolation
	// OnRequest is set for a tier that a policy uses only if it asks for it.
	OnRequest bool
	// Cost is what using the tier takes.
	Cost Cost
}

// Has reports whether the tier has a feature.
func (i Info) Has(f Feature) bool {
	for _, g := range i.Features {
		if g == f {
			return true
		}
	}
	return false
}

// Modules is a set of top-level modules, by their import names.
type Modules map[string]struct{}

// Has reports whether the set holds the top-level package of a dotted name.
func (m Modules) Has(name string) bool {
	top, _, _ := strings.Cut(name, ".")
	_, ok := m[top]
	return ok
}

// ModuleSet makes a set of names.
func ModuleSet(names ...string) Modules {
	m := make(Modules, len(names))
	for _, name := range names {
		m[name] = struct{}{}
	}
	return m
}

// Feature is something a snippet may need beyond its language.
type Feature string

// The features that tiers differ in.
const (
	FeatureAsync       Feature = "async"        // top-level await, asyncio
	FeatureThreads     Feature = "threads"      // real threads
	FeatureProcesses   Feature = "processes"    // subprocess, fork
	FeatureSockets     Feature = "sockets"      // connections, to Config.Hosts
	FeatureFiles       Feature = "files"        // a file system to write to
	FeatureNative      Feature = "native"       // native extension modules
	FeatureFork        Feature = "fork"         // live sandboxes can be copied
	FeatureMove        Feature = "move"         // namespaces move to and from other tiers
	FeatureHugeContext Feature = "huge-context" // contexts beyond memory
	FeatureDeterminism Feature = "determinism"  // the same result in every run, where asked for
	FeatureFuel        Feature = "fuel"         // repeatable metering of work
	FeatureDynamic     Feature = "dynamic"      // exec, eval, imports by a computed name
	FeatureClasses     Feature = "classes"      // class definitions
	FeatureGenerators  Feature = "generators"   // generators
)

// The features of Go that an interpreter of Go may lack or get wrong.
const (
	// FeatureGoroutines: the go statement.
	FeatureGoroutines Feature = "go-goroutines"
	// FeatureLoopVariables: a loop whose variable outlives its iteration, in a
	// closure or by its address, so that it matters that Go 1.22 has one each.
	FeatureLoopVariables Feature = "go1.22-loops"
	// FeatureRangeInt: for i := range 10.
	FeatureRangeInt Feature = "go1.22-range-int"
	// FeatureBuiltins: min, max and clear, which are of Go 1.21.
	FeatureBuiltins Feature = "go1.21-builtins"
	// FeatureGenerics: functions and types of the snippet have type parameters.
	FeatureGenerics Feature = "go-generics"
	// FeatureGenericsStdlib: generic functions and types of the standard library.
	FeatureGenericsStdlib Feature = "go-generics-stdlib"
	// FeatureMethods: methods that the standard library finds by an interface,
	// such as String and MarshalJSON.
	FeatureMethods Feature = "go-methods"
	// FeatureReflect: package reflect.
	FeatureReflect Feature = "go-reflect"
)

// GoFeatures are all features of Go: a tier that compiles has them.
func GoFeatures() []Feature {
	return []Feature{
		FeatureGoroutines, FeatureLoopVariables, FeatureRangeInt, FeatureBuiltins, FeatureGenerics,
		FeatureGenericsStdlib, FeatureMethods, FeatureReflect,
	}
}

// Isolation orders the kinds of wall by strength.
type Isolation int

// The kinds of wall, weakest first.
const (
	// IsolationNone is no wall at all. No tier of this project has it.
	IsolationNone Isolation = iota
	// IsolationProcess is a host process behind kernel filters.
	IsolationProcess
	// IsolationContainer is a hardened container on the host's kernel.
	IsolationContainer
	// IsolationWasm is a virtual machine without system calls: the guest has
	// only the functions that the host gives it.
	IsolationWasm
	// IsolationKernel is a guest with a kernel of its own.
	IsolationKernel
)

// String returns the name used in flags and reports.
func (i Isolation) String() string {
	switch i {
	case IsolationNone:
		return "none"
	case IsolationProcess:
		return "process"
	case IsolationContainer:
		return "container"
	case IsolationWasm:
		return "wasm"
	case IsolationKernel:
		return "kernel"
	}
	return "unknown"
}

// Cost is what a tier costs, measured and quoted in docs/performance.md. The router
// compares tiers by it.
type Cost struct {
	// Start is the time from opening a sandbox to its first result, Snippet that of a
	// further snippet.
	Start, Snippet time.Duration
	// Slowdown is how much longer than native code a snippet of a language computes:
	// than CPython for Python, than a compiled program for Go. A language that is
	// missing runs natively.
	Slowdown map[Language]float64
}
