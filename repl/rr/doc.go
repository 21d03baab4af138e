// Package rr is the Recursive Reflector: a loop in which a model explores the
// record of an agent's work with snippets, asks helpers about parts of it, and
// hands over what can be learned from it.
package rr
