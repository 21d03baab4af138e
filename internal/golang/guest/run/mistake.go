package run

import "regexp"

// CompileError is the type of the exception of a snippet that does not compile.
const CompileError = "CompileError"

// lowerContext matches Python's name of an input. Go cannot use it, because a package has that
// name.
var lowerContext = regexp.MustCompile(`undefined: context(_\d+)?\b`)

// textMethod matches the use of a method of [Text] on a short input, which is a string: as the
// compiler says it, and as the interpreter does.
var textMethod = regexp.MustCompile(`\bContext(_\d+)?\.\w+ undefined \(type string has|` +
	`undefined method: (Len|Slice|R?Find|Count|Contains|Line(Count|s))\b`)

// ExplainMistake returns the exception of a snippet that does not compile. It adds a hint if the
// snippet used Python's name of an input, or a method that only a long input has.
func ExplainMistake(kind, message, trace string) Exception {
	hint := ""
	switch text := message + trace; {
	case kind != CompileError:
	case lowerContext.MatchString(text):
		hint = "in Go the first input is Context, the others are Context_1, Context_2 and so on"
	case textMethod.MatchString(text):
		hint = "an input of at most 64 KiB is a string: use package strings, as in " +
			`strings.Count(Context, "x"); only a longer one is a *Text with methods`
	}

	if hint != "" {
		message += " (" + hint + ")"
		trace += hint + "\n"
	}
	return Exception{Type: kind, Message: message, Traceback: trace}
}
