package worker

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/scanner"
	"go/token"
	"slices"
	"strings"

	"github.com/rlmhq/rlm/internal/golang/guest/run"
	"github.com/rlmhq/rlm/internal/snippet/session/wire"
)

// goPlan is a snippet cut into units for the interpreter: all declarations, or one statement.
type goPlan struct {
	number   int // the snippet's number
	chunks   []goChunk
	own      *goNames // the names that the snippet declares
	imported map[string]bool
	wrapped  int // number of functions that it generates for statements
	impure   string
}

// goChunk is a unit that the interpreter evaluates.
type goChunk struct {
	text string
	line int  // in the snippet, from 1
	wrap int  // the number of the function that wraps it; 0 without one
	call int  // the number of the function that it calls instead of running text
	echo bool // show the value
	show string
}

// wrapper is the prefix of the functions that wrap statements with blocks: at the top level, the
// interpreter confuses a block's variables with those around it.
const wrapper = "rlmStatement"

// source returns the chunk's source, on the same lines as in the snippet.
func (c goChunk) source() string {
	switch {
	case c.call > 0:
		return fmt.Sprintf("%s%d()", wrapper, c.call)
	case c.wrap > 0:
		return fmt.Sprintf(
			"func %s%d() {%s%s\n}", wrapper, c.wrap, strings.Repeat("\n", c.line-1), c.text,
		)
	}

	return strings.Repeat("\n", c.line-1) + c.text
}

// firstLine returns the line that a traceback shows.
func (c goChunk) firstLine() string {
	line, _, _ := strings.Cut(strings.TrimSpace(c.show), "\n")
	return line
}

// goSource is a snippet that has been parsed.
type goSource struct {
	text  string
	set   *token.FileSet
	file  *token.File
	decls []ast.Decl // imports and functions
	stmts []ast.Stmt
	edits []goEdit
}

// goEdit replaces the bytes [at, at+drop) of the snippet.
type goEdit struct {
	at, drop int
	text     string
}

const maxSource = 256 << 10

// fileOf returns the name of a snippet in messages, as in compiled Go.
func fileOf(number int) string { return fmt.Sprintf("snippet_%d.go", number) }

// planGo parses and checks the snippet with the given number. If there is no plan, the ending
// explains why.
func planGo(source string, known *goNames, number int) (*goPlan, ending) {
	if len(source) > maxSource {
		return nil, rejected("size", fmt.Sprintf("the snippet is longer than %d bytes", maxSource))
	}
	src, err := parseGo(source)
	if err != nil {
		message := fileOf(number) + ":" + err.Error()
		return nil, ending{code: wire.CodeRaised, exception: &run.Exception{
			Type: "SyntaxError", Message: message, Traceback: message + "\n",
		}}
	}

	check := &goCheck{src: src, known: known, own: emptyGoNames()}
	if missing, reason := check.run(); reason != "" {
		return nil, rejected(missing, reason)
	}
	if mistake := check.checkConstants(); mistake != "" {
		return nil, uncompiled(fileOf(number)+":"+mistake, mistake)
	}
	plan := check.plan()
	plan.number, plan.impure = number, check.impure

	return plan, ending{}
}

// parseGo parses a snippet: a whole file of package main, or imports, functions, declarations
// and statements in any order. Imports and functions are not allowed in a function body, so they
// are parsed separately and blanked out; the rest is parsed as a body.
func parseGo(source string) (*goSource, error) {
	src := &goSource{text: source, set: token.NewFileSet()}
	src.file = src.set.AddFile("", -1, len(source))
	src.file.SetLinesForContent([]byte(source))
	rest := []byte(source)
	for _, start := range topLevel(source) {
		if rest[start] == ' ' { // inside a part that has been parsed
			continue
		}
		if word(source, start) == "package" {
			end := start + strings.IndexAny(source[start:]+"\n", "\n;")
			if strings.TrimSpace(strings.TrimPrefix(source[start:end], "package")) != "main" {
				return nil, src.at(start, "a snippet must be package main")
			}
			blank(rest, start, end)
			continue
		}

		decl, end, err := src.decl(start)
		if err != nil {
			return nil, err
		}
		if decl != nil {
			src.decls = append(src.decls, decl)
			blank(rest, start, end)
		}
	}

	const head, tail = "package main;func _(){", "\n}"
	body, err := parser.ParseFile(src.set, "", head+string(rest)+tail, parseMode)
	if err != nil {
		return nil, src.moved(err, len(head))
	}
	if len(body.Decls) != 1 {
		return nil, src.at(len(source), "unexpected }")
	}

	src.stmts = body.Decls[0].(*ast.FuncDecl).Body.List
	for _, s := range src.stmts {
		shift(s, int(body.FileStart)+len(head), src.file.Base())
	}
	return src, nil
}

const parseMode = parser.SkipObjectResolution

// topLevel returns where "package", "import" and "func" begin a top-level line of a snippet.
func topLevel(source string) (starts []int) {
	var s scanner.Scanner
	set := token.NewFileSet()
	file := set.AddFile("", -1, len(source))
	s.Init(file, []byte(source), func(token.Position, string) {}, 0)
	depth, fresh := 0, true
	for {
		pos, tok, _ := s.Scan()
		switch tok {
		case token.EOF:
			return starts
		case token.LPAREN, token.LBRACE, token.LBRACK:
			depth++
		case token.RPAREN, token.RBRACE, token.RBRACK:
			depth--
		case token.PACKAGE, token.IMPORT, token.FUNC:
			if fresh && depth == 0 {
				starts = append(starts, file.Offset(pos))
			}
		default:
		}

		fresh = tok == token.SEMICOLON
	}
}

// decl parses the import or function that begins at start, or returns nil for a function literal.
// The text after the declaration may be something else, so errors there are ignored.
func (src *goSource) decl(start int) (ast.Decl, int, error) {
	const head = "package main;"
	mode := parseMode
	if word(src.text, start) == "import" {
		mode |= parser.ImportsOnly
	}
	f, err := parser.ParseFile(src.set, "", head+src.text[start:], mode)
	if f == nil || len(f.Decls) == 0 && len(f.Imports) == 0 {
		if word(src.text, start) == "func" {
			return nil, 0, nil // the body's parser will judge
		}
		return nil, 0, src.moved(err, len(head)-start)
	}
	decl := f.Decls[0]
	if fn, ok := decl.(*ast.FuncDecl); ok &&
		(fn.Name == nil || fn.Name.Name == "_" || fn.Body == nil) {
		return nil, 0, nil
	}

	if _, ok := decl.(*ast.BadDecl); ok {
		if word(src.text, start) == "func" {
			return nil, 0, nil // the body's parser will judge
		}
		return nil, 0, src.moved(err, len(head)-start)
	}

	end := int(decl.End()-f.FileStart) - len(head) + start
	if end > len(src.text) {
		return nil, 0, src.moved(err, len(head)-start)
	}
	list, ok := err.(scanner.ErrorList) //nolint:errorlint // the parser returns it bare
	if ok && len(list) > 0 && list[0].Pos.Offset-len(head)+start < end {
		if word(src.text, start) == "func" && strings.Contains(list[0].Msg, "expected 'IDENT'") {
			return nil, 0, nil
		}
		return nil, 0, src.moved(err, len(head)-start)
	}

	shift(decl, int(f.FileStart)+len(head), src.file.Base()+start)
	return decl, end, nil
}

func word(text string, start int) string {
	end := start
	for end < len(text) && text[end] >= 'a' && text[end] <= 'z' {
		end++
	}
	return text[start:end]
}

func blank(b []byte, start, end int) {
	for i := start; i < end; i++ {
		if b[i] != '\n' {
			b[i] = ' '
		}
	}
}

// moved returns a parser's first error with its position converted to one in the snippet.
func (src *goSource) moved(err error, by int) error {
	var list scanner.ErrorList
	if l, ok := err.(scanner.ErrorList); ok { //nolint:errorlint // the parser returns it bare
		list = l
	}
	if len(list) == 0 {
		return src.at(0, "cannot be parsed")
	}

	return src.at(min(max(0, list[0].Pos.Offset-by), len(src.text)), list[0].Msg)
}

func (src *goSource) at(offset int, message string) error {
	p := src.file.Position(src.file.Pos(offset))
	return fmt.Errorf("%d:%d: %s", p.Line, p.Column, message)
}

// offset returns the offset of a position in the snippet.
func (src *goSource) offset(p token.Pos) int { return src.file.Offset(p) }

func (src *goSource) line(p token.Pos) int { return src.file.Line(p) }

// cut returns the snippet's text [start, end) with the edits in that range applied.
func (src *goSource) cut(start, end int) string {
	slices.SortStableFunc(src.edits, func(a, b goEdit) int { return a.at - b.at })
	var b strings.Builder
	at := start
	for _, e := range src.edits {
		if e.at >= start && e.at < end {
			b.WriteString(src.text[at:e.at])
			b.WriteString(e.text)
			at = e.at + e.drop
		}
	}

	b.WriteString(src.text[at:end])
	return b.String()
}
