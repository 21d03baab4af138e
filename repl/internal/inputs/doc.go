// Package inputs reads the contexts of a session for prompts and sub-calls, and
// describes them to a model.
package inputs
