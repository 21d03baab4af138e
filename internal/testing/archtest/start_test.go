package archtest

import (
	"fmt"
	"go/ast"
	"go/token"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// compiledAtStart are parts in which variables may compile regular expressions. They are not part
// of the command, or they are programs of images, which have only the standard library.
var compiledAtStart = []string{
	"scripts/", "examples/", "images/go/", "internal/testing/", "internal/golang/guest/",
}

// TestExpressionsAreCompiledLate checks that no variable compiles an expression, which would slow
// down the start of every process. Package lazyregexp detects an invalid expression only at its
// first use, so the test compiles all expressions.
func TestExpressionsAreCompiledLate(t *testing.T) {
	late := 0
	for _, f := range goFiles(t) {
		isFree := func(part string) bool { return strings.HasPrefix(f.path, part) }
		if f.test || slices.ContainsFunc(compiledAtStart, isFree) {
			continue
		}
		if compilesAtStart(f.syntax) {
			t.Errorf("%s compiles an expression at the start: use internal/text/lazyregexp", f.path)
		}
		for _, text := range lateExpressions(f.syntax) {
			late++
			if _, err := regexp.Compile(text); err != nil {
				t.Errorf("%s: %v", f.path, err)
			}
		}
	}
	if late == 0 {
		t.Error("no expression was found")
	}
}

func TestAnExpressionOfAVariableIsFound(t *testing.T) {
	for source, want := range map[string]bool{
		"var x = regexp.MustCompile(`x`)":                                true,
		"var x = []*regexp.Regexp{regexp.MustCompile(`x`)}":              true,
		"var x = lazyregexp.New(`x`)":                                    false,
		"func f() { regexp.MustCompile(`x`) }":                           false,
		"var x = func() *regexp.Regexp { return regexp.MustCompile(y) }": false,
	} {
		t.Run(fmt.Sprintf("%.60s", source), func(t *testing.T) {
			if got := compilesAtStart(parseSource(t, "package p\n"+source)); got != want {
				t.Errorf("%s: %t", source, got)
			}
		})
	}
}

// compilesAtStart reports whether a variable of a package compiles an expression.
func compilesAtStart(syntax *ast.File) (found bool) {
	for _, decl := range syntax.Decls {
		variables, ok := decl.(*ast.GenDecl)
		if !ok {
			continue
		}
		ast.Inspect(variables, func(n ast.Node) bool {
			call, isCall := n.(*ast.CallExpr)
			found = found || isCall && isCallOf(call, "regexp", "MustCompile")
			_, isFunction := n.(*ast.FuncLit)
			return !isFunction
		})
	}
	return found
}

// lateExpressions returns the constant strings that a file passes to lazyregexp.
func lateExpressions(syntax *ast.File) (texts []string) {
	ast.Inspect(syntax, func(n ast.Node) bool {
		if call, ok := n.(*ast.CallExpr); ok && isCallOf(call, "lazyregexp", "New") {
			if text, ok := constantText(call.Args[0]); ok {
				texts = append(texts, text)
			}
		}
		return true
	})
	return texts
}

func isCallOf(call *ast.CallExpr, pkg, name string) bool {
	selected, ok := call.Fun.(*ast.SelectorExpr)
	if !ok || selected.Sel.Name != name {
		return false
	}
	from, ok := selected.X.(*ast.Ident)
	return ok && from.Name == pkg
}

// constantText evaluates literals and their concatenations.
func constantText(e ast.Expr) (string, bool) {
	switch e := e.(type) {
	case *ast.BasicLit:
		text, err := strconv.Unquote(e.Value)
		return text, err == nil
	case *ast.BinaryExpr:
		left, isLeft := constantText(e.X)
		right, isRight := constantText(e.Y)
		return left + right, e.Op == token.ADD && isLeft && isRight
	}
	return "", false
}
