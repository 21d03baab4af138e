// Package wiring makes what commands work with from their flags and the settings: engines, contexts, models,
// tools, graphs, sessions with a name and the store.
package wiring
