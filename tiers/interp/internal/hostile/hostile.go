// Package hostile holds the snippets that attack tier interp, and names the harm that each does in
// an interpreter without the tier's walls. It serves tests only. It is a separate package because a
// bare interpreter exports the whole standard library, which the tier's tests need not link.
package hostile

import (
	"strings"

	"github.com/rlmhq/rlm/tiers"
)

// The outcomes of a snippet in the tier.
const (
	Rejected = "rejected"
	OK       = string(tiers.StatusOK)
	Raised   = string(tiers.StatusRaised)
	Limited  = string(tiers.StatusLimit)
	Crashed  = string(tiers.StatusCrashed)
)

// The harm that a snippet does in a bare interpreter, named as in package harm. Any other harm is a
// string that the snippet prints.
const (
	Kills  = "kills"
	Hangs  = "hangs"
	Grows  = "grows"
	Floods = "floods"
	// Deadlocks is the message of the Go runtime when it ends a process in which all goroutines
	// wait. With cgo it cannot detect this, and the process hangs.
	Deadlocks = "deadlock!"
)

// Snippet attacks the tier. In its source, PORT stands for the address of a server on the
// host and VICTIM for a process. A name that begins with "python: " marks Python; all other
// snippets are Go.
type Snippet struct {
	Name, Source string
	May          []string // the permitted outcomes in the tier
	Harm         string   // the harm in a bare interpreter
	// Truth is the output of a correct interpreter. It is set if a bare interpreter does harm by
	// printing something else.
	Truth string
}

// Language returns the language of the snippet.
func (s Snippet) Language() tiers.Language {
	if strings.HasPrefix(s.Name, "python: ") {
		return tiers.Python
	}
	return tiers.Go
}

// Secret is the string that an attack on a bare interpreter looks for. It is in a file, an
// environment variable and packages.
const Secret = "the secret of the host"

// Snippets holds every snippet: first those in Go, then those in Python.
var Snippets = append(goSnippets, pythonSnippets...)
