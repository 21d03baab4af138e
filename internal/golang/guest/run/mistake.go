package run

import "regexp"

// CompileError is the type of the exception of a snippet that does not compile.
const CompileError = "CompileError"

// lowerContext matches Python's name of an input. Go cannot use it, because a package has that
// name.
var lowerContext = regexp.MustCompile(`undefined: context(_\d+)?\b`)

// ExplainMistake returns the exception of a snippet that does not compile. It adds a hint if the
// snippet used Python's name of an input.
func ExplainMistake(kind, message, trace string) Exception {
	if kind == CompileError && lowerContext.MatchString(message+trace) {
		const hint = "in Go the first input is Context, the others are Context_1, Context_2 and " +
			"so on"
		message += " (" + hint + ")"
		trace += hint + "\n"
	}
	return Exception{Type: kind, Message: message, Traceback: trace}
}
