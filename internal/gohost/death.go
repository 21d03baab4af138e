package gohost

import (
	"bytes"
	"strings"
	"syscall"
)

// OutOfMemory is what Cause calls a death for lack of memory.
const OutOfMemory = "memory"

// deaths are how the Go runtime announces that it gives up, and what that is
// called in a result.
var deaths = []struct{ says, name string }{
	{"out of memory", OutOfMemory},
	{"cannot allocate memory", OutOfMemory},
	{"stack exceeds", "StackOverflow"},
	{"fatal error: ", "FatalError"},
	{"panic: ", "panic"},
}

// Cause finds in the last words of a Go program why its runtime gave up: the name
// of the cause and the line that says it, both empty if there is none. The words
// are hostile and decide on words only.
func Cause(last []byte) (name, line string) {
	for _, d := range deaths {
		if at := bytes.Index(last, []byte(d.says)); at >= 0 {
			return d.name, lineAt(last, at)
		}
	}
	return "", ""
}

// CPUSignal is Linux's SIGXCPU, which package syscall does not name everywhere.
const CPUSignal = syscall.Signal(24)

// WithoutPrefix is a line of Cause as a message.
func WithoutPrefix(line string) string {
	return strings.TrimPrefix(strings.TrimPrefix(line, "panic: "), "fatal error: ")
}

// lineAt is the line of text that holds byte at, cut to a few hundred bytes.
func lineAt(text []byte, at int) string {
	start := bytes.LastIndexByte(text[:at], '\n') + 1
	end := len(text)
	if n := bytes.IndexByte(text[at:], '\n'); n >= 0 {
		end = at + n
	}
	return strings.ToValidUTF8(string(text[start:min(end, start+300)]), "�")
}

// LastLine is the last line that a process wrote.
func LastLine(text []byte) string {
	text = bytes.TrimSpace(text)
	return lineAt(text, len(text))
}
