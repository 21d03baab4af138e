package gohost

import (
	"regexp"

	"github.com/rlmhq/rlm/tiers"
)

// CompileError is the type of the exception of a snippet that does not compile.
const CompileError = "CompileError"

// lowerContext finds the name that Python has for an input. Go cannot have it: it is
// the name of a package.
var lowerContext = regexp.MustCompile(`undefined: context(_\d+)?\b`)

// Mistake is the exception of a snippet that a compiler refused, with what is the
// matter where an input was called as in Python.
func Mistake(kind, message, trace string) *tiers.Exception {
	if kind == CompileError && lowerContext.MatchString(message+trace) {
		const hint = "in Go the first input is Context, the others are Context_1, Context_2 and so on"
		message += " (" + hint + ")"
		trace += hint + "\n"
	}
	return &tiers.Exception{Type: kind, Message: message, Traceback: trace}
}
