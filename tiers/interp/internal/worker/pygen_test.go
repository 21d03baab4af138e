package worker

import (
	"fmt"
	"strings"
)

// expr writes an expression of a type.
func (g *generator) expr(kind string, depth int) string {
	if depth <= 0 || g.IntN(5) == 0 {
		return g.atom(kind)
	}
	d := depth - 1
	if g.IntN(12) == 0 {
		return fmt.Sprintf("(%s if %s else %s)", g.expr(kind, d), g.expr("b", d), g.expr(kind, d))
	}
	if g.IntN(14) == 0 {
		return fmt.Sprintf("(%s %s %s)", g.expr(kind, d), g.pick("and", "or"), g.expr(kind, d))
	}
	switch kind {
	case "i":
		return g.integer(d)
	case "s":
		return g.text(d)
	case "b":
		return g.truth(d)
	}
	return g.list(kind, d)
}

func (g *generator) integer(d int) string {
	switch g.IntN(13) {
	case 0, 1, 2, 3:
		return fmt.Sprintf(
			"(%s %s %s)", g.expr("i", d), g.pick("+", "-", "*", "//", "%", "&", "|", "^"),
			g.expr("i", d),
		)
	case 4:
		return fmt.Sprintf("(%s ** %d)", g.expr("i", d), g.IntN(9))
	case 5:
		return fmt.Sprintf("(%s %s %d)", g.expr("i", d), g.pick("<<", ">>"), g.IntN(70))
	case 6:
		return fmt.Sprintf("len(%s)", g.expr(g.pick("s", "li", "ls", "lli"), d))
	case 7:
		return g.pick("-", "+", "~") + g.expr("i", d)
	case 8:
		return fmt.Sprintf("%s(%s, %s)", g.pick("min", "max"), g.expr("i", d), g.expr("i", d))
	case 9:
		return fmt.Sprintf(
			"sum(%s)",
			g.pick(
				g.expr("li", d), "range("+g.atom("i")+" % 50)", "q * q for q in range(9) if q % 2",
				"q for q in "+g.expr("li", d),
			),
		)
	case 10:
		return fmt.Sprintf("%s[%s]", g.expr("li", d), g.pick("0", "-1", "1"))
	case 11:
		return fmt.Sprintf("%s.find(%s)", g.expr("s", d), g.expr("s", d))
	default:
		return fmt.Sprintf("%s(%s)", g.pick("abs", "abs"), g.expr("i", d))
	}
}

func (g *generator) text(d int) string {
	switch g.IntN(11) {
	case 0, 1:
		return fmt.Sprintf("(%s + %s)", g.expr("s", d), g.expr("s", d))
	case 2:
		return fmt.Sprintf("(%s * %s)", g.expr("s", d), g.pick("0", "3", "-1", "2"))
	case 3, 4:
		return fmt.Sprintf("str(%s)", g.expr(g.kind(), d))
	case 5:
		return fmt.Sprintf("%s[%s]", g.expr("s", d), g.slice())
	case 6:
		return fmt.Sprintf("%s[%s]", g.expr("ls", d), g.pick("0", "-1"))
	case 7:
		return fmt.Sprintf("%s.replace(%s, %s)", g.expr("s", d), g.expr("s", d), g.expr("s", d))
	case 8:
		return fmt.Sprintf("%s.%s()", g.expr("s", d), g.pick("strip", "lstrip", "rstrip"))
	case 9:
		return fmt.Sprintf("%s(%s)", g.pick("min", "max"), g.expr("ls", d))
	default:
		return fmt.Sprintf("%s[%s]", g.expr("s", d), g.pick("0", "-1", "1"))
	}
}

func (g *generator) slice() string {
	part := func() string { return g.pick("", "", "0", "1", "2", "-1", "-2", "5", "100", "-100") }
	switch g.IntN(3) {
	case 0:
		return part() + ":" + part()
	case 1:
		return part() + ":" + part() + ":" + g.pick("1", "2", "-1", "-2", "3")
	}
	return part() + ":"
}

func (g *generator) truth(d int) string {
	switch g.IntN(9) {
	case 0, 1:
		return fmt.Sprintf(
			"(%s %s %s)", g.expr("i", d), g.pick("<", ">", "==", "!=", "<=", ">="), g.expr("i", d),
		)
	case 2:
		return fmt.Sprintf(
			"(%s %s %s)", g.expr("s", d), g.pick("<", ">", "==", "!=", "<=", ">=", "in", "not in"),
			g.expr("s", d),
		)
	case 3:
		return "(not " + g.expr(g.kind(), d) + ")"
	case 4:
		return fmt.Sprintf("(%s < %s <= %s)", g.expr("i", d), g.expr("i", d), g.expr("i", d))
	case 5:
		k := g.pick("i", "s")
		return fmt.Sprintf("(%s %s %s)", g.expr(k, d), g.pick("in", "not in"), g.expr("l"+k, d))
	case 6:
		k := g.pick("li", "ls", "lli", "b")
		return fmt.Sprintf("(%s %s %s)", g.expr(k, d), g.pick("==", "!="), g.expr(k, d))
	case 7:
		return fmt.Sprintf(
			"%s(%s)", g.pick("any", "all", "bool"), g.expr(g.pick("li", "ls", "lb"), d),
		)
	default:
		return fmt.Sprintf(
			"%s.%s(%s)", g.expr("s", d), g.pick("startswith", "endswith"), g.expr("s", d),
		)
	}
}

func (g *generator) list(kind string, d int) string {
	elem := kind[1:]
	switch g.IntN(9) {
	case 0:
		return fmt.Sprintf("(%s + %s)", g.expr(kind, d), g.expr(kind, d))
	case 1:
		return fmt.Sprintf("(%s * %s)", g.expr(kind, d), g.pick("0", "2", "-1", "3"))
	case 2:
		return fmt.Sprintf("%s[%s]", g.expr(kind, d), g.slice())
	case 3:
		if elem == "i" || elem == "s" {
			return fmt.Sprintf("sorted(%s%s)", g.expr(kind, d), g.pick("", ", reverse=True"))
		}
	case 4:
		return fmt.Sprintf("list(%s)", g.expr(kind, d))
	case 5:
		switch elem {
		case "i":
			return fmt.Sprintf(
				"[c %s %s for c in %s%s]", g.pick("+", "*", "-"), g.atom("i"),
				g.pick("range(5)", g.expr("li", d)), g.pick("", " if c > 1", " if c % 2 == 0"),
			)
		case "s":
			return fmt.Sprintf(
				"[%s for c in %s]", g.pick("c", "c + c", "str(len(c))", "c[0:1]"),
				g.pick(g.expr("ls", d), g.expr("s", d)),
			)
		case "b":
			return fmt.Sprintf("[c > %s for c in %s]", g.atom("i"), g.expr("li", d))
		}
	case 6:
		if elem == "s" {
			return fmt.Sprintf(
				"%s.split(%s)", g.expr("s", d), g.pick("", "' '", "','", "'a'", "'ab'", "''", g.expr("s", d)),
			)
		}
		if elem == "i" {
			return "list(range(" + g.pick("4", "1, 6", "6, 0, -1", "0, 10, 3") + "))"
		}
	}
	var items []string
	for range g.IntN(4) + 1 {
		items = append(items, g.expr(elem, d))
	}
	return "[" + strings.Join(items, ", ") + "]"
}

func (g *generator) atom(kind string) string {
	if name := g.name(kind); name != "" {
		return name
	}
	switch kind {
	case "i":
		return g.pick(
			"0", "1", "2", "3", "7", "10", "63", "255", "1000003", "9223372036854775807",
			"9223372036854775808", "4611686018427387904", "123456789012345678901234567890", "-1",
			"-7", "(-3)", "(-9223372036854775808)",
		)
	case "s":
		return g.pick(
			`""`, `"a"`, `'ab'`, `"hello world"`, `'it\'s'`, `"q\"q"`, `"l1\nl2"`, `"t\tt"`,
			`"b\\b"`, `"a,b,c"`, `" pad "`, `"aaa"`, `"Z"`, `"10"`, `"{}%s"`,
		)
	case "b":
		return g.pick("True", "False")
	case "li":
		return g.pick("[1, 2, 3]", "[5]", "[3, 1, 2, 1]", "[0, -1]", "[10, 20, 30, 40]")
	case "ls":
		return g.pick(`["a", "b"]`, `["x"]`, `["b", "a", "C", ""]`, `["one two", "three"]`)
	case "lb":
		return g.pick("[True, False]", "[True]")
	}
	return g.pick("[[1], [2, 3]]", "[[4, 5]]", "[[0], [0], [9]]")
}
