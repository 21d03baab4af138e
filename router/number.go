package router

import (
	"fmt"
	"strings"

	"github.com/rlmhq/rlm/internal/text/lazyregexp"
	"github.com/rlmhq/rlm/tiers"
)

// numberSnippet puts the snippet's number into an exception from the analyser, as the tiers do. The
// analyser cannot do so, because its verdicts are shared between snippets.
func numberSnippet(x *tiers.Exception, number int) *tiers.Exception {
	numbered := *x
	file := func(n string) string { return `File "<snippet` + n + `>", line ` }
	n := fmt.Sprint(" ", number)
	numbered.Traceback = strings.Replace(x.Traceback, file(""), file(n), 1)

	const inMessage = " (<snippet>, line "
	if i := strings.LastIndex(x.Message, inMessage); i >= 0 {
		numbered.Message = x.Message[:i] + " (<snippet" + n + ">, line " + x.Message[i+len(inMessage):]
	}
	for _, text := range []*string{&numbered.Message, &numbered.Traceback} {
		*text = goFile.ReplaceAllString(*text, fmt.Sprintf("snippet_%d.go:", number))
	}
	return &numbered
}

// goFile matches the snippet's name in the lines of an exception from the Go analyser.
var goFile = lazyregexp.New(`(?m)^snippet\.go:`)
