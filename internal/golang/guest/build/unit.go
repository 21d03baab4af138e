package build

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/scanner"
	"go/token"
	"regexp"
	"strconv"
	"strings"
)

// unit is one parsed snippet.
type unit struct {
	n       int // number from 1
	whole   bool
	imports []imported
	decls   []ast.Decl // functions, and all types and constants
	stmts   []ast.Stmt // everything else, including variables
	defs    map[string]def
	regions [2]region // of the declarations and of the statements
}

// imported is one import.
type imported struct {
	name, path string
	pos        token.Pos
}

// def is a name that the snippet declares at its top level.
type def struct {
	sequential bool      // the name exists only after its statement
	end        token.Pos // of that statement
}

// region is the position of a part of the snippet in the file set.
type region struct {
	file *token.File
	head int // bytes before the snippet's own source
}

// CompileError describes the mistakes in a snippet.
type CompileError struct {
	Type, Message, Text string
}

// Error returns the first message.
func (e *CompileError) Error() string { return e.Message }

// failed returns an error with messages, each with its position.
func failed(kind string, messages ...string) *CompileError {
	const most = 10
	text := strings.Join(messages[:min(most, len(messages))], "\n") + "\n"
	if len(messages) > most {
		text += "too many errors\n"
	}
	return &CompileError{Type: kind, Message: messages[0], Text: text}
}

func (u *unit) file() string { return fmt.Sprintf("snippet_%d.go", u.n) }

// maxSource bounds a snippet, in bytes.
const maxSource = 1 << 20

// parseUnit parses a snippet, which is a file of package main, or imports, declarations and
// statements in any order. A function body cannot contain functions and imports, so the snippet is
// parsed twice, each time with the other part blanked out.
func parseUnit(set *token.FileSet, n int, source string) (*unit, *CompileError) {
	u := &unit{n: n, defs: map[string]def{}}
	if len(source) > maxSource {
		return nil, failed(
			"SyntaxError", fmt.Sprintf("%s: it is longer than %d bytes", u.file(), maxSource),
		)
	}

	declarations, statements, whole := split(source)
	u.whole = whole
	line := fmt.Sprintf("/*line %s:1:1*/", u.file())
	for i, text := range []string{
		"package main;" + line + declarations,
		"package main;func _(){" + line + statements + "\n}",
	} {
		file, err := parser.ParseFile(
			set, u.file(), text, parser.SkipObjectResolution|parser.AllErrors,
		)
		var list scanner.ErrorList
		if errors.As(err, &list) {
			messages := make([]string, len(list))
			for i, e := range list {
				messages[i] = e.Error()
			}
			return nil, failed("SyntaxError", messages...)
		}

		u.regions[i] = region{set.File(file.FileStart), strings.Index(text, line) + len(line)}
		if i == 0 {
			u.decls = file.Decls
			continue
		}
		if len(file.Decls) != 1 {
			return nil, failed("SyntaxError", u.file()+": unexpected }")
		}

		if f, ok := file.Decls[0].(*ast.FuncDecl); ok && f.Body != nil {
			u.stmts = f.Body.List
		}
	}

	err := u.sort(set)
	return u, err
}

// split divides source code into its imports and functions, and its statements. Both results have
// the length and the lines of the source. whole means that the source is a complete file.
func split(source string) (declarations, statements string, whole bool) {
	d, s := []byte(source), []byte(source)
	var begun, depth int
	var tokens []token.Token // the first few top-level tokens of the part that begins at begun
	cut := func(end int) {
		blank := d
		switch {
		case len(tokens) > 0 && tokens[0] == token.PACKAGE:
			whole = true
			erase(s, begun, end)
		case isDeclaration(tokens):
			blank = s
		}

		erase(blank, begun, end)
		begun, tokens = end, nil
	}

	set := token.NewFileSet()
	file := set.AddFile("", -1, len(source))
	var scan scanner.Scanner
	scan.Init(file, []byte(source), func(token.Position, string) {}, 0)
	for {
		pos, tok, _ := scan.Scan()
		switch tok {
		case token.EOF:
			cut(len(source))
			return string(d), string(s), whole
		case token.RPAREN, token.RBRACK, token.RBRACE:
			depth--
		default:
		}

		if depth == 0 && len(tokens) < 5 {
			tokens = append(tokens, tok)
		}
		switch {
		case tok == token.LPAREN || tok == token.LBRACK || tok == token.LBRACE:
			depth++
		case tok == token.SEMICOLON && depth <= 0:
			depth = 0
			cut(min(file.Offset(pos)+1, len(source)))
		}
	}
}

// isDeclaration recognises imports, functions and methods by their first tokens. A function literal
// is not a declaration, because it has no name.
func isDeclaration(t []token.Token) bool {
	switch {
	case len(t) == 0:
		return false
	case t[0] == token.IMPORT:
		return true
	case t[0] != token.FUNC || len(t) < 3:
		return false
	}

	return t[1] == token.IDENT ||
		len(t) == 5 && t[1] == token.LPAREN && t[3] == token.IDENT && t[4] == token.LPAREN
}

func erase(b []byte, start, end int) {
	for i := start; i < end; i++ {
		if b[i] != '\n' {
			b[i] = ' '
		}
	}
}

// sort records the declarations of the snippet, and moves types and constants from the statements
// to the declarations.
func (u *unit) sort(set *token.FileSet) *CompileError {
	var decls []ast.Decl
	for _, d := range u.decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			if d.Recv == nil && d.Name.Name != "init" && d.Name.Name != "_" {
				u.defs[d.Name.Name] = def{}
			}
			decls = append(decls, d)
		case *ast.GenDecl:
			if err := u.addImports(set, d); err != nil {
				return err
			}
		}
	}

	var stmts []ast.Stmt
	for _, s := range u.stmts {
		d, ok := s.(*ast.DeclStmt)
		if !ok {
			stmts = append(stmts, s)
			if err := u.define(set, s); err != nil {
				return err
			}
			continue
		}

		g, _ := d.Decl.(*ast.GenDecl) // the only kind in a body
		for _, spec := range g.Specs {
			u.declare(spec)
		}
		if g.Tok == token.VAR {
			stmts = append(stmts, s)
		} else {
			decls = append(decls, g)
		}
	}

	u.decls, u.stmts = decls, stmts
	return u.reserved(set)
}

// suffix matches the suffix in the names of older declarations; see versions.unique.
var suffix = regexp.MustCompile(`__[0-9]+(_[0-9]+)?\b`)

// base returns the snippet's own name for a name in the program.
func base(name string) string { return suffix.ReplaceAllString(name, "") }

// reserved rejects snippets that use names reserved for the program.
func (u *unit) reserved(set *token.FileSet) (err *CompileError) {
	u.idents(func(id *ast.Ident) {
		if suffix.MatchString(id.Name) || strings.Contains(id.Name, "rlm__") {
			err = failed(
				"CompileError",
				fmt.Sprintf("%s: the name %s is reserved", set.Position(id.Pos()), id.Name),
			)
		}
	})

	return err
}

// declare records the names of a declaration. In a complete file, the order of variables does not
// matter.
func (u *unit) declare(spec ast.Spec) {
	switch spec := spec.(type) {
	case *ast.TypeSpec:
		u.defs[spec.Name.Name] = def{}
	case *ast.ValueSpec:
		for _, name := range spec.Names {
			if name.Name != "_" {
				u.defs[name.Name] = def{sequential: !u.whole, end: spec.End()}
			}
		}
	}
}

// define records the names declared by :=. If the snippet has already declared a name, := only
// assigns to it.
func (u *unit) define(set *token.FileSet, s ast.Stmt) *CompileError {
	a, ok := s.(*ast.AssignStmt)
	if !ok || a.Tok != token.DEFINE {
		return nil
	}
	fresh := false
	for _, e := range a.Lhs {
		name, ok := e.(*ast.Ident)
		if !ok {
			return failed(
				"CompileError", set.Position(e.Pos()).String()+": non-name on left side of :=",
			)
		}

		if _, known := u.defs[name.Name]; !known && name.Name != "_" {
			u.defs[name.Name] = def{sequential: true, end: a.End()}
			fresh = true
		}
	}

	if !fresh {
		return failed(
			"CompileError", set.Position(a.TokPos).String()+": no new variables on left side of :=",
		)
	}
	return nil
}

func (u *unit) addImports(set *token.FileSet, d *ast.GenDecl) *CompileError {
	for _, spec := range d.Specs {
		i, ok := spec.(*ast.ImportSpec)
		if !ok {
			continue
		}
		path, err := strconv.Unquote(i.Path.Value)
		name := path[strings.LastIndexByte(path, '/')+1:]
		if strings.HasPrefix(name, "v") && strings.Trim(name[1:], "0123456789") == "" &&
			strings.Contains(path, "/") {
			name = strings.TrimSuffix(path, "/"+name)
			name = name[strings.LastIndexByte(name, '/')+1:]
		}

		if i.Name != nil {
			name = i.Name.Name
		}
		switch {
		case name == ".":
			return failed(
				"CompileError",
				fmt.Sprintf("%s: a session cannot import to its own names", set.Position(i.Pos())),
			)
		case err != nil || !token.IsIdentifier(name) || path == "C":
			return failed(
				"CompileError",
				fmt.Sprintf("%s: package %s is not in std", set.Position(i.Pos()), i.Path.Value),
			)
		}

		u.imports = append(u.imports, imported{name, path, i.Pos()})
	}

	return nil
}

// offset returns the position of an identifier in the snippet, or -1 if it is elsewhere.
func (u *unit) offset(pos token.Pos) int {
	for _, r := range u.regions {
		if int(pos) >= r.file.Base() && int(pos) <= r.file.Base()+r.file.Size() {
			return max(-1, r.file.Offset(pos)-r.head)
		}
	}
	return -1
}
