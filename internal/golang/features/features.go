// Package features names the features of Go that a snippet may need and that a Go interpreter may
// lack or implement incorrectly. The Go analyser looks for them, and a tier lists those that it
// supports.
package features

import "github.com/rlmhq/rlm/tiers"

// The features.
const (
	// Goroutines is the go statement.
	Goroutines tiers.Feature = "go-goroutines"
	// LoopVariables is a loop variable that outlives its iteration, in a closure or through its
	// address. Since Go 1.22, each iteration has a separate variable.
	LoopVariables tiers.Feature = "go1.22-loops"
	// RangeInt is for i := range 10.
	RangeInt tiers.Feature = "go1.22-range-int"
	// Builtins are min, max and clear, which Go 1.21 added.
	Builtins tiers.Feature = "go1.21-builtins"
	// Generics are functions and types with type parameters declared by the snippet.
	Generics tiers.Feature = "go-generics"
	// GenericsStdlib are generic functions and types of the standard library.
	GenericsStdlib tiers.Feature = "go-generics-stdlib"
	// Methods are methods that the standard library calls through an interface, such as
	// String and MarshalJSON.
	Methods tiers.Feature = "go-methods"
	// Reflect is package reflect.
	Reflect tiers.Feature = "go-reflect"
)

// All returns all features of Go. A tier with a compiler supports all of them.
func All() []tiers.Feature {
	return []tiers.Feature{
		Goroutines, LoopVariables, RangeInt, Builtins, Generics, GenericsStdlib, Methods, Reflect,
	}
}
