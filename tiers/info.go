package tiers

import "time"

// Info is what a tier is and has, as data. The router knows a tier only by
// this and by Probe.
type Info struct {
	// Name is unique among the tiers: "wasm", "docker".
	Name string
	// Languages that the tier runs.
	Languages []Language
	// Features that a snippet may need and the tier has.
	Features []Feature
	// Isolation is how strong the tier's wall is.
	Isolation Isolation
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

// Feature is something a snippet may need beyond its language.
type Feature string

// The features that tiers differ in.
const (
	FeatureAsync       Feature = "async"        // top-level await, asyncio
	FeatureThreads     Feature = "threads"      // real threads
	FeatureProcesses   Feature = "processes"    // subprocess, fork
	FeatureSockets     Feature = "sockets"      // network sockets
	FeatureFiles       Feature = "files"        // a file system to write to
	FeatureNative      Feature = "native"       // native extension modules
	FeatureFork        Feature = "fork"         // live sandboxes can be copied
	FeatureHugeContext Feature = "huge-context" // contexts beyond memory
	FeatureFuel        Feature = "fuel"         // repeatable metering of work
)

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

// Cost is what a tier costs, measured and quoted in docs/performance.md. The
// router compares tiers by it.
type Cost struct {
	// Start is a new sandbox to its first result, Snippet a further snippet,
	// HostCall one round trip to the host.
	Start, Snippet, HostCall time.Duration
	// Slowdown is CPU time relative to native CPython.
	Slowdown float64
	// Memory is what a live idle sandbox holds, in bytes.
	Memory int64
}
