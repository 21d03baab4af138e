// Package config holds the settings of the command: what they are called, what
// values they take, and where a value came from.
//
// A [Setting] has one name, written in three ways: max_depth in a file,
// RLM_MAX_DEPTH in the environment, --max-depth on the command line. The one
// table [Settings] has them all; flags, the manual and the decoders are made of it.
//
// [Load] puts the layers over one another: defaults, then a YAML file, then
// variables, then flags. Files are hostile: bounded in size, without anchors,
// aliases and tags, and every key and type is checked. The names that
// agent-utilities gave to the same things are translated, see foreign.go.
package config
