// Package archtest holds tests that keep the shape of the project: which way
// imports may run, what must be documented, what may lie where. It has no code
// that others call.
//
// A rule that stands in the way has a list of exceptions beside it, each with
// its reason. An exception that is no longer needed fails too.
package archtest
