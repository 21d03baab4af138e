package tiersuite

import (
	"io"
	"maps"
	"slices"
	"strings"
)

// KindsOfText returns the names of the texts that WriteText can write.
func KindsOfText() []string { return slices.Sorted(maps.Keys(lines)) }

// WriteText writes about size bytes of a kind of text.
func WriteText(w io.Writer, kind string, size int) error { return writeText(w, lines[kind], size) }

// TextExpressions returns Python expressions over a text t of the given kind: the operations of
// str, searches with patterns, and functions of the standard library. Slow expressions are divided
// among the kinds; over a huge text, all expressions are slow.
func TextExpressions(kind string, isHuge bool) []string {
	number, kinds := slices.Index(KindsOfText(), kind), len(lines)
	if isHuge {
		return slices.DeleteFunc(pickInTurn(textExpressions(0, 1), number, kinds), func(e string) bool {
			return slices.Contains(otherwiseHuge, e)
		})
	}
	return slices.DeleteFunc(textExpressions(number, kinds), func(e string) bool { return e == otherwiseShort })
}

// otherwiseShort is an expression whose result over a short text differs from CPython, because a
// slice of the whole text is only an equal str.
const otherwiseShort = "t is t[:]"

// otherwiseHuge are expressions whose results over a huge text differ from CPython, as documented
// in docs/reference/context.md. They use a short form, and the type of a list that does not fit.
var otherwiseHuge = []string{"hash(repr(t))", "hash(ascii(t))", "type(t.split()), type(t.splitlines())"}

func textExpressions(kind, kinds int) []string {
	all := pickInTurn(asStr, kind, kinds)
	for _, g := range expressions(kind, kinds) {
		all = append(all, g.exprs...)
	}
	return slices.DeleteFunc(all, func(e string) bool {
		return strings.Contains(e, "plain") // plain is a copy of the text, which only one side has
	})
}
