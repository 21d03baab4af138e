// Package archtest contains tests that preserve the structure of the project: which imports are
// allowed, what must be documented, where files may be. It exports no code.
//
// A rule with exceptions has a list of them next to it, each with its reason. An exception that is
// no longer needed fails, too.
package archtest
