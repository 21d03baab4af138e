package worker

import (
	"go/ast"
	"go/token"
	"reflect"
)

var posType = reflect.TypeFor[token.Pos]()

// shift moves all positions in a syntax tree from one base to another, so that separately parsed
// parts have positions in the snippet.
func shift(root ast.Node, from, to int) {
	by := token.Pos(to - from)
	ast.Inspect(root, func(n ast.Node) bool {
		if n == nil {
			return false
		}
		v := reflect.ValueOf(n).Elem()
		if v.Kind() != reflect.Struct {
			return true
		}

		for i := range v.NumField() {
			if f := v.Field(i); f.Type() == posType && f.Int() != int64(token.NoPos) {
				f.SetInt(f.Int() + int64(by))
			}
		}
		return true
	})
}
