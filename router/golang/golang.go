// Package golang analyses Go snippets by go/parser, without type checking.
//
// A snippet is what a model writes into a session: a whole file, declarations,
// statements, or imports, functions and statements mixed in one text. Names that
// it does not declare are taken to come from an earlier snippet.
package golang

import (
	"context"
	"fmt"
	"go/ast"
	"strings"

	"github.com/rlmhq/rlm/router"
	"github.com/rlmhq/rlm/tiers"
)

// maxSource is how long a snippet may be, in bytes.
const maxSource = 1 << 20

// Analyser finds out what Go snippets need. It is safe for concurrent use.
type Analyser struct{}

var _ router.Analyser = Analyser{}

// New returns an analyser.
func New() Analyser { return Analyser{} }

// Analyse returns what the snippet needs.
func (Analyser) Analyse(ctx context.Context, source string) (router.Verdict, error) {
	if err := ctx.Err(); err != nil {
		return router.Verdict{}, fmt.Errorf("cannot analyse the snippet: %w", err)
	}
	if len(source) > maxSource {
		return router.Verdict{Unknown: fmt.Sprintf("it is too long to analyse: %d bytes, the limit is %d", len(source), maxSource)}, nil
	}
	files, errs := parse(source)
	if len(errs) > 0 {
		if strings.Contains(errs[0].Msg, "nesting depth") {
			return router.Verdict{Unknown: "it is nested too deeply to analyse"}, nil
		}
		return router.Verdict{Invalid: invalid(errs)}, nil
	}
	n := &router.Needs{Language: tiers.Go}
	f := newFinder(n)
	for _, file := range files {
		f.imports(file)
	}
	findNames(files, f.packages, n)
	for _, name := range n.Writes {
		f.declared[name] = true
	}
	for _, file := range files {
		f.file = file
		ast.Inspect(file.syntax, f.inspect)
	}
	return router.Verdict{Needs: n}, nil
}
