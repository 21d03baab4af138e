// Package archtest contains tests that preserve the structure of the project: which imports are
// allowed, what must be documented, and where files may be. It exports no code.
//
// The exceptions of a rule are listed next to it, each with its reason. An exception that is no
// longer needed also fails.
package archtest
