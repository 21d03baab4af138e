// Package golang analyses Go snippets with go/parser, without type checking.
//
// A snippet is a model's input to a session: a whole file, declarations, statements, or a mixture
// of imports, functions and statements. Names that it does not declare are assumed to be from an
// earlier snippet.
package golang

import (
	"context"
	"fmt"
	"go/ast"
	"go/token"
	"strings"

	"github.com/rlmhq/rlm/router"
	"github.com/rlmhq/rlm/tiers"
)

// maxSource bounds a snippet, in bytes.
const maxSource = 1 << 20

// Analyser determines the needs of Go snippets. The zero value is ready for use, and safe for
// concurrent use.
type Analyser struct{}

// Analyse returns the needs of the snippet.
func (Analyser) Analyse(ctx context.Context, source string) (router.Verdict, error) {
	if err := ctx.Err(); err != nil {
		return router.Verdict{}, fmt.Errorf("cannot analyse the snippet: %w", err)
	}
	if len(source) > maxSource {
		return router.Verdict{
			Unknown: fmt.Sprintf("the snippet is too long to analyse: it has %d bytes, the limit is %d",
				len(source), maxSource),
		}, nil
	}

	files, errs := parseSnippet(source)
	if len(errs) > 0 {
		if strings.Contains(errs[0].Msg, "nesting depth") {
			return router.Verdict{Unknown: "the snippet is nested too deeply to analyse"}, nil
		}
		return router.Verdict{Invalid: syntaxError(errs)}, nil
	}

	n := &router.Needs{Language: tiers.Go, Telling: looksLikeGo(source)}
	f := newFinder(n)
	for _, file := range files {
		f.findImports(file)
	}
	findNames(files, f.packages, n)
	for _, name := range n.Writes {
		f.declared[name] = true
	}

	for _, file := range files {
		f.file = file
		ast.Inspect(file.syntax, f.inspect)
	}

	n.Computes, n.ComputesLine = estimateEffort(files)
	return router.Verdict{Needs: n}, nil
}

// looksLikeGo reports whether a source contains something specific to Go: a clause or a declaration
// that begins with a keyword of Go, a block in braces, or a call of package fmt. Single statements,
// such as `return 5` or `y := 2`, could also be faulty code in another language.
func looksLikeGo(source string) bool {
	shows, last, at := false, token.ILLEGAL, 0
	scanTokens(source, func(offset int, tok token.Token) bool {
		switch tok {
		case token.PACKAGE, token.FUNC, token.TYPE, token.VAR, token.CONST, token.GO, token.DEFER,
			token.CHAN, token.LBRACE:
			shows = true
		case token.STRING, token.LPAREN:
			shows = last == token.IMPORT
		case token.PERIOD:
			shows = last == token.IDENT && strings.HasPrefix(source[at:], "fmt.")
		default:
		}

		last, at = tok, offset
		return !shows
	})
	return shows
}
