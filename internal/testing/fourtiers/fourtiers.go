// Package fourtiers describes four tiers like those of the project, for tests of routes.
package fourtiers

import (
	"slices"
	"time"

	"github.com/rlmhq/rlm/tiers"
)

// whole are the features of a tier that runs all of Python.
var whole = []tiers.Feature{
	tiers.FeatureAsync, tiers.FeatureClasses, tiers.FeatureGenerators, tiers.FeatureDynamic,
	tiers.FeatureMove,
}

// Interp describes a tier like interp.
func Interp() tiers.Info {
	return tiers.Info{
		Name:      "interp",
		Languages: []tiers.Language{tiers.Python, tiers.Go},
		Isolation: tiers.IsolationProcess,
		Features:  []tiers.Feature{tiers.FeatureMove},
		Modules:   tiers.ModuleSet("math"),
		Cost:      tiers.Cost{Start: 100 * time.Microsecond, Snippet: 50 * time.Microsecond},
	}
}

// Wasm describes a tier like wasm.
func Wasm() tiers.Info {
	return tiers.Info{
		Name: "wasm", Languages: []tiers.Language{tiers.Python}, Isolation: tiers.IsolationWasm,
		Features: whole, Modules: tiers.ModuleSet("math", "json", "re", "os"),
		Cost: tiers.Cost{Start: time.Millisecond, Snippet: 80 * time.Microsecond},
	}
}

// Docker describes a tier like docker.
func Docker() tiers.Info {
	return tiers.Info{
		Name:      "docker",
		Languages: []tiers.Language{tiers.Python},
		Isolation: tiers.IsolationContainer,
		Features: slices.Concat(whole,
			[]tiers.Feature{tiers.FeatureThreads, tiers.FeatureFiles, tiers.FeatureProcesses}),
		Modules: tiers.ModuleSet("math", "json", "re", "os", "numpy"),
		Cost:    tiers.Cost{Start: 400 * time.Millisecond, Snippet: 500 * time.Microsecond},
	}
}

// Local describes a tier like local.
func Local() tiers.Info {
	return tiers.Info{
		Name:      "local",
		OnRequest: true,
		Languages: []tiers.Language{tiers.Python, tiers.Go},
		Isolation: tiers.IsolationProcess,
		Features: slices.Concat(whole,
			[]tiers.Feature{tiers.FeatureThreads, tiers.FeatureFiles, tiers.FeatureProcesses}),
		Modules: tiers.ModuleSet("math", "json", "re", "os", "numpy", "torch"),
		Cost:    tiers.Cost{Start: 20 * time.Millisecond, Snippet: 200 * time.Microsecond},
	}
}
