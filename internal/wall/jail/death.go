package jail

import (
	"bytes"
	"strings"
	"syscall"
)

// OutOfMemory is the Cause of a Death from lack of memory.
const OutOfMemory = "memory"

// CPUTimeSignal is Linux's SIGXCPU, which means that the process has used the processor time of
// Limits.CPUSeconds. Package syscall does not define it on every system.
const CPUTimeSignal = syscall.Signal(24)

// Death is the reason why a Go program's runtime ended the program. It is parsed from the program's
// output, which is not trusted, so use it only in messages.
type Death struct {
	// Cause is [OutOfMemory], "StackOverflow", "FatalError" or "panic". It is empty if the output
	// does not reveal the cause.
	Cause string
	// Line is the line of the output that reveals the cause.
	Line string
}

// deathMarks are the final messages of the Go runtime, with their causes. The first match counts,
// because an exhausted stack, for example, is also a fatal error.
var deathMarks = []struct{ text, cause string }{
	{"out of memory", OutOfMemory},
	{"cannot allocate memory", OutOfMemory},
	{"stack exceeds", "StackOverflow"},
	{"fatal error: ", "FatalError"},
	{"panic: ", "panic"},
}

// FindDeath finds, in a Go program's output, the reason why the runtime ended the program.
func FindDeath(output []byte) Death {
	for _, mark := range deathMarks {
		if at := bytes.Index(output, []byte(mark.text)); at >= 0 {
			return Death{Cause: mark.cause, Line: lineAt(output, at)}
		}
	}
	return Death{}
}

// Message returns the line without the runtime's prefix.
func (d Death) Message() string {
	return strings.TrimPrefix(strings.TrimPrefix(d.Line, "panic: "), "fatal error: ")
}

// LastLine returns the last line of a process's output.
func LastLine(output []byte) string {
	output = bytes.TrimSpace(output)
	return lineAt(output, len(output))
}

// maxLine bounds a quoted line, in bytes.
const maxLine = 300

// lineAt returns the line of text that contains byte at.
func lineAt(text []byte, at int) string {
	start := bytes.LastIndexByte(text[:at], '\n') + 1
	end := len(text)
	if n := bytes.IndexByte(text[at:], '\n'); n >= 0 {
		end = at + n
	}
	return strings.ToValidUTF8(string(text[start:min(end, start+maxLine)]), "�")
}
