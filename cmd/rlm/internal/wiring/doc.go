// Package wiring creates what commands need from their flags and the settings: engines, contexts,
// models, tools, graphs, named sessions and the store.
package wiring
