package golang

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/scanner"
	"go/token"
	"strings"

	"github.com/rlmhq/rlm/tiers"
)

// The prefixes that turn a part into a file. They are on the part's first line, so that line
// numbers do not change.
const (
	beforeDeclarations = "package p;"
	beforeStatements   = "package p;func _(){"
	afterStatements    = "\n}"
)

// part is a parsed part of a snippet.
type part struct {
	set    *token.FileSet
	syntax *ast.File
	// statements is the body of a part that consists of statements.
	statements *ast.BlockStmt
}

func (p part) line(pos token.Pos) int { return p.set.Position(pos).Line }

// parseSnippet parses a snippet as a file, as declarations or as a mixture.
func parseSnippet(source string) ([]part, scanner.ErrorList) {
	if startsWithPackage(source) {
		p, errs := parsePart("", source, "")
		return []part{p}, errs
	}
	if p, errs := parsePart(beforeDeclarations, source, ""); len(errs) == 0 {
		return []part{p}, nil
	}

	declarations, statements := split(source)
	d, errs := parsePart(beforeDeclarations, declarations, "")
	s, more := parsePart(beforeStatements, statements, afterStatements)
	if errs = append(errs, more...); len(errs) > 0 {
		errs.Sort()
		return nil, errs
	}

	function, ok := s.syntax.Decls[0].(*ast.FuncDecl)
	if !ok || len(s.syntax.Decls) != 1 {
		// A brace closed the function around the statements.
		at := s.set.Position(s.syntax.Decls[len(s.syntax.Decls)-1].Pos())
		return nil, scanner.ErrorList{{Pos: at, Msg: "unexpected '}'"}}
	}

	s.statements = function.Body
	return []part{d, s}, nil
}

func parsePart(before, source, after string) (part, scanner.ErrorList) {
	p := part{set: token.NewFileSet()}
	var err error
	p.syntax, err = parser.ParseFile(p.set, "", before+source+after, parser.AllErrors)
	var list scanner.ErrorList
	if err != nil && !errors.As(err, &list) {
		list = scanner.ErrorList{{Pos: token.Position{Line: 1, Column: 1}, Msg: err.Error()}}
	}
	last := strings.Count(source, "\n") + 1
	for _, e := range list {
		if e.Pos.Line == 1 {
			e.Pos.Column = max(1, e.Pos.Column-len(before))
		}
		if e.Pos.Line > last {
			e.Pos.Line, e.Pos.Column = last, len(source)-strings.LastIndexByte(source, '\n')
		}
	}

	return p, list
}

// syntaxError converts the errors of a parser to the exception that a model receives. The router
// adds the snippet's number.
func syntaxError(errs scanner.ErrorList) *tiers.Exception {
	message := func(e *scanner.Error) string {
		return fmt.Sprintf("snippet.go:%d:%d: %s", e.Pos.Line, e.Pos.Column, e.Msg)
	}
	var trace strings.Builder
	for i, e := range errs {
		if i == 10 {
			fmt.Fprintf(&trace, "too many errors\n")
			break
		}
		fmt.Fprintf(&trace, "%s\n", message(e))
	}

	return &tiers.Exception{
		Type:      "SyntaxError",
		Message:   message(errs[0]),
		Traceback: trace.String(),
	}
}

// scanTokens yields the tokens of a source with their offsets, until yield returns false.
func scanTokens(source string, yield func(offset int, tok token.Token) bool) {
	set := token.NewFileSet()
	file := set.AddFile("", set.Base(), len(source))
	var s scanner.Scanner
	s.Init(file, []byte(source), func(token.Position, string) {}, 0)

	for {
		pos, tok, _ := s.Scan()
		if tok == token.EOF || !yield(file.Offset(pos), tok) {
			return
		}
	}
}

func startsWithPackage(source string) bool {
	first := token.EOF
	scanTokens(source, func(_ int, tok token.Token) bool {
		first = tok
		return false
	})
	return first == token.PACKAGE
}

// split divides a source into its imports and functions, and its statements. Both results have the
// length and the lines of the source, with blanks in place of the other part.
func split(source string) (declarations, statements string) {
	d, s := []byte(source), []byte(source)
	var depth, begun int
	var first, second token.Token // the first two tokens of the part that began at begun
	cut := func(end int) {
		blank := d
		if first == token.IMPORT ||
			first == token.FUNC &&
				(second == token.IDENT || second == token.LPAREN && isMethod(source[begun:end])) {
			blank = s
		}

		for i := begun; i < end; i++ {
			if blank[i] != '\n' {
				blank[i] = ' '
			}
		}

		begun, first, second = end, 0, 0
	}
	scanTokens(source, func(offset int, tok token.Token) bool {
		switch tok {
		case token.LPAREN, token.LBRACK, token.LBRACE:
			depth++
		case token.RPAREN, token.RBRACK, token.RBRACE:
			depth--
		case token.SEMICOLON:
			if depth <= 0 {
				cut(min(offset+1, len(source)))
				return true
			}
		default:
		}

		if first == 0 {
			first = tok
		} else if second == 0 {
			second = tok
		}
		return true
	})

	cut(len(source))
	return string(d), string(s)
}

// isMethod distinguishes a method from a function literal that is called immediately: func (t T)
// name( from func (n int) string {.
func isMethod(text string) bool {
	depth := 0
	var after []token.Token // the end of the first parentheses and the tokens after it
	scanTokens(text, func(_ int, tok token.Token) bool {
		if after != nil {
			after = append(after, tok)
			return len(after) < 3
		}

		switch tok {
		case token.LPAREN:
			depth++
		case token.RPAREN:
			if depth--; depth == 0 {
				after = append(after, tok)
			}
		default:
		}
		return true
	})

	return len(after) == 3 && after[1] == token.IDENT && after[2] == token.LPAREN
}
