// Package config holds the settings of the command: their names, values, and origins.
//
// A [Setting] has one name, written in three ways: max_depth in a file, RLM_MAX_DEPTH in the
// environment, --max-depth on the command line. The table [Settings] lists them all; flags, the
// manual and the decoders are generated from it.
//
// [Load] applies the layers in this order: defaults, a YAML file, variables, flags. Files are not
// trusted: their size is bounded, they must not contain anchors, aliases or tags, and every key and
// type is checked. The names that agent-utilities uses for the same settings are translated; see
// aliases.go.
package config
