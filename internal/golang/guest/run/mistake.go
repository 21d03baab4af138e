package run

import "regexp"

// CompileError is the type of the exception of a snippet that does not compile.
const CompileError = "CompileError"

// lowerContext finds the name that Python has for an input. Go cannot have it: it is
// the name of a package.
var lowerContext = regexp.MustCompile(`undefined: context(_\d+)?\b`)

// ExplainMistake is the exception of a snippet that a compiler refused. It adds a hint
// where the snippet used Python's name for an input.
func ExplainMistake(kind, message, trace string) Exception {
	if kind == CompileError && lowerContext.MatchString(message+trace) {
		const hint = "in Go the first input is Context, the others are Context_1, Context_2 and " +
			"so on"
		message += " (" + hint + ")"
		trace += hint + "\n"
	}
	return Exception{Type: kind, Message: message, Traceback: trace}
}
