package tiers

import (
	"time"
)

// Info describes a tier as data. The router uses nothing of a tier except its Info and its Probe.
type Info struct {
	// Name is unique among the tiers: "wasm", "docker".
	Name string
	// Version lists the versions of the interpreters and the wall, for display. It may be
	// complete only after Probe.
	Version string
	// Languages that the tier runs.
	Languages []Language
	// Lacks explains why a supported language does not run on this machine, and how to change
	// that. It may be complete only after Probe.
	Lacks map[Language]string
	// Features that the tier offers to snippets.
	Features []Feature
	// Modules are the top-level Python modules that snippets can import. The set may be complete
	// only after Probe or Warm. Nil means that the modules are unknown.
	Modules map[string]bool
	// Shown are the host folders and files that every sandbox of the tier can read. Hidden are
	// folders with modules that it does not show, each with the reason.
	Shown, Hidden []string
	// Isolation is the strength of the tier's wall.
	Isolation Isolation
	// OnRequest means that the tier is used only if the policy names it.
	OnRequest bool
	// Cost is the time that the tier takes.
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

// ModuleSet returns a set of names in the form of Info.Modules.
func ModuleSet(names ...string) map[string]bool {
	m := make(map[string]bool, len(names))
	for _, name := range names {
		m[name] = true
	}
	return m
}

// Feature is an ability of a tier that a snippet may need in addition to its language.
type Feature string

// The features that distinguish tiers.
const (
	FeatureAsync       Feature = "async"        // top-level await, asyncio
	FeatureThreads     Feature = "threads"      // threads, whose host calls run concurrently
	FeatureProcesses   Feature = "processes"    // subprocess, fork
	FeatureSockets     Feature = "sockets"      // connections, to Config.Hosts
	FeatureFiles       Feature = "files"        // a writable file system
	FeatureOut         Feature = "out"          // the folder OutFolder, for sessions with Config.Out
	FeaturePackages    Feature = "packages"     // the modules of Config.Packages
	FeatureNative      Feature = "native"       // native extension modules
	FeatureFork        Feature = "fork"         // live sandboxes can be copied
	FeatureMove        Feature = "move"         // namespaces move to and from other tiers
	FeatureHugeContext Feature = "huge-context" // contexts larger than memory
	FeatureDeterminism Feature = "determinism"  // the same result in every run, on request
	FeatureFuel        Feature = "fuel"         // repeatable metering of work
	FeatureDynamic     Feature = "dynamic"      // exec, eval, imports by a computed name
	FeatureClasses     Feature = "classes"      // class definitions
	FeatureGenerators  Feature = "generators"   // generators
)

// Isolation orders the kinds of wall by strength.
type Isolation int

// The kinds of wall, weakest first.
const (
	// IsolationNone is the absence of a wall. No tier of this project uses it.
	IsolationNone Isolation = iota
	// IsolationProcess is a host process behind kernel filters.
	IsolationProcess
	// IsolationContainer is a hardened container on the host's kernel.
	IsolationContainer
	// IsolationWasm is a virtual machine without system calls. The guest can call only the
	// functions that the host provides.
	IsolationWasm
	// IsolationKernel is a guest with a separate kernel.
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

// Cost is the time that a tier takes, as measured in docs/reference/performance.md. The router
// compares tiers by it.
type Cost struct {
	// Start is the time from opening a sandbox to its first result. Snippet is the time of
	// each further snippet.
	Start, Snippet time.Duration
	// Slowdown is the factor by which a snippet computes more slowly than native code: CPython
	// for Python, a compiled program for Go. A language without an entry runs at native speed.
	Slowdown map[Language]float64
}
