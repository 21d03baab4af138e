package tablesql

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"github.com/rlmhq/rlm/internal/text/lazyregexp"
)

// use is how a query uses a column.
type use uint32

const (
	useCompare   use = 1 << iota // with <, >, BETWEEN and the like
	useEqual                     // with = and a number
	useExtreme                   // max, min
	useOrder                     // ORDER BY with a LIMIT
	useCompute                   // arithmetic
	useCast                      // CAST to a number
	useForm                      // typeof, REGEXP and the like: the query distinguishes forms of values
	useNumber                    // with <, >, BETWEEN and the like, and a number
	useQuoted                    // with <, >, BETWEEN and the like, and a string that is a number
	useCondition                 // as a condition, which is true or false
	useNull                      // with IS NULL, coalesce, count
	useSort                      // ORDER BY
	useChange                    // CAST, replace, nullif: the query converts its values
	useAscending                 // ORDER BY without DESC and NULLS
	useUnequal                   // with <>, NOT IN and the like
	useLeast                     // min
	useLast                      // ORDER BY with NULLS LAST, not with DESC
)

// token is a part of a query.
type token struct {
	kind tokenKind
	text string // of a name or a string without its quotes
	from int    // in the query
	to   int

	isParameter bool // kind and text are those of its value, if a number or string
}

type tokenKind byte

const (
	tokenName tokenKind = iota
	tokenQuoted
	tokenString
	tokenNumber
	tokenOther
)

var tokenPattern = lazyregexp.New(`(?s)--[^\n]*|/\*.*?(?:\*/|$)|[xX]?'(?:[^']|'')*'|"(?:[^"]|"")*"|` +
	`\[[^\]]*\]|` + "`(?:[^`]|``)*`" + `|0[xX][0-9a-fA-F]+|(?:\d[\d_]*\.?[\d_]*|\.\d[\d_]*)(?:[eE][-+]?\d+)?|` +
	`\?\d*|[:@$][\p{L}_][\p{L}\p{N}_$]*|` +
	`[\p{L}_][\p{L}\p{N}_$]*|<=|>=|<>|<<|>>|!=|==|\|\||->>|->|\S`)

// cutTokens cuts a query into tokens, without comments.
func cutTokens(sql string) []token {
	var tokens []token
	for _, span := range tokenPattern.FindAllStringIndex(sql, -1) {
		text := sql[span[0]:span[1]]
		t := token{kind: tokenOther, text: text, from: span[0], to: span[1]}

		switch c := text[0]; {
		case strings.HasPrefix(text, "--"), strings.HasPrefix(text, "/*"):
			continue
		case c|0x20 == 'x' && text[len(text)-1] == '\'': // bytes
		case len(text) > 1 && strings.IndexByte("'\"[`", c) >= 0:
			t.kind = tokenQuoted
			if c == '\'' {
				t.kind = tokenString
			}
			t.text = strings.ReplaceAll(text[1:len(text)-1], text[:1]+text[:1], text[:1])
		case c == '?', len(text) > 1 && strings.IndexByte(":@$", c) >= 0:
			t.isParameter = true
		case '0' <= c && c <= '9' || c == '.' && len(text) > 1:
			t.kind = tokenNumber
		case c == '_' || c|0x20 >= 'a' && c|0x20 <= 'z' || c >= 0x80:
			t.kind = tokenName
		}
		tokens = append(tokens, t)
	}
	return tokens
}

// is reports whether the token is one of some words or signs.
func (t token) is(words ...string) bool {
	return (t.kind == tokenName || t.kind == tokenOther) && slices.Contains(words, strings.ToLower(t.text))
}

// question describes a query before it runs.
type question struct {
	sql      string
	tokens   []token
	pairs    []int              // of each parenthesis and CASE: the other one
	ordered  []bool             // in the list of an ORDER BY
	names    map[string]operand // what names stand for, in lower case
	compared []comparison
	notes    []toldNote      // see judge and tell
	told     map[string]bool // see tell
	hasLimit bool
}

func newQuestion(sql string, given any) *question {
	q := &question{sql: sql, tokens: cutTokens(sql)}

	q.hasLimit = q.hasWord("limit")
	q.pairs, q.ordered = pairUp(q.tokens), findOrdered(q.tokens)
	q.setParameters(given)
	q.compared = q.findComparisons()

	return q
}

// setParameters sets the kinds of the parameters from their values, which are in a list or a dict.
// The parameters have the same numbers as in SQLite.
func (q *question) setParameters(given any) {
	list, _ := given.([]any)
	named, _ := given.(map[string]any)
	numbers, most := map[string]int{}, 0

	for i := range q.tokens {
		t := &q.tokens[i]
		if !t.isParameter {
			continue
		}

		number, isKnown := numbers[t.text]
		if !isKnown || t.text == "?" {
			number = most + 1
			if written, err := strconv.Atoi(t.text[1:]); err == nil {
				number = written
			}
			numbers[t.text] = number
			most = max(most, number)
		}

		value := named[t.text[1:]]
		if 0 < number && number <= len(list) {
			value = list[number-1]
		}

		switch v := value.(type) {
		case string:
			t.kind, t.text = tokenString, v
		case json.Number:
			t.kind, t.text = tokenNumber, v.String()
		case bool:
			t.kind, t.text = tokenNumber, "1"
		}
	}
}

// mentions reports whether the query contains a text, as a string literal or as the value of a
// parameter.
func (q *question) mentions(text string) bool {
	return slices.ContainsFunc(q.tokens, func(t token) bool { return t.kind == tokenString && t.text == text })
}

// at returns a token, or an empty one for an index outside the query.
func (q *question) at(i int) token {
	if i < 0 || i >= len(q.tokens) {
		return token{kind: tokenOther}
	}
	return q.tokens[i]
}

// uses returns how the query uses a column. It finds uses of the column's name, not those of a
// subquery or an expression derived from it.
func (q *question) uses(column string) (all use) {
	for i, t := range q.tokens {
		isName := t.kind == tokenName || t.kind == tokenQuoted
		if isName && strings.EqualFold(t.text, column) && !q.at(i+1).is(".", "(") {
			all |= q.useAt(i)
		}
	}

	for _, c := range q.compared {
		if c.left.hasName(column) {
			all |= c.useOf(&c.right)
		}
		if c.right.hasName(column) {
			all |= c.useOf(&c.left)
		}
	}
	return all
}

// usesOfAll returns how the query uses any value, even one that has no name.
func (q *question) usesOfAll() (all use) {
	for i, t := range q.tokens {
		call := q.at(i+1).is("(") && !q.at(i+2).is("*")
		switch {
		case t.is("<", ">", "<=", ">=", "<>", "between"):
			all |= useCompare
		case t.is("by") && q.at(i-1).is("order"):
			all |= useSort
		case t.is("cast", "try_cast", "replace", "nullif", "decimal"):
			all |= useChange
		case t.is("typeof", "regexp"):
			all |= useForm
		case call && !t.is("coalesce", "ifnull"):
			all |= t.useIn()
		case t.is("+", "-", "/", "%"), t.is("*") && !q.at(i-1).is("select", "distinct", ",", "(", "."):
			all |= useCompute
		}
	}
	return all
}

// useIn returns how a function uses its first argument.
func (t token) useIn() use {
	switch {
	case t.is("min"):
		return useExtreme | useLeast
	case t.is("max", "median"), t.kind == tokenName && strings.HasPrefix(strings.ToLower(t.text), "percentile"):
		return useExtreme
	case t.is("abs", "round", "ceil", "ceiling", "floor", "sqrt", "ln", "log", "log10", "exp", "pow", "power",
		"mod", "sign", "trunc"):
		return useCompute
	case t.is("typeof"):
		return useForm
	case t.is("count", "coalesce", "ifnull"):
		return useNull
	}
	return 0
}

// useAt returns how the tokens around the name of a column use it.
func (q *question) useAt(last int) (all use) {
	first := q.termTo(last)
	before, after := q.at(first-1), q.at(last+1)
	if before.is("(") || before.is("distinct") && q.at(first-2).is("(") {
		function := q.at(first - 2)
		if before.is("distinct") {
			function = q.at(first - 3)
		}
		all |= function.useIn()
		if function.is("cast") && after.is("as") && q.at(last+2).is(numberTypes...) {
			all |= useCast
		}
	}

	isNot := after.is("not")
	if isNot && q.at(last+2).is("regexp", "glob", "like", "ilike") {
		all |= useUnequal
	}

	if after.is("regexp", "glob", "like", "ilike") || isNot && q.at(last+2).is("regexp", "glob", "like", "ilike") {
		all |= useForm
	}
	if after.is("isnull", "notnull") || isNot && q.at(last+2).is("null") ||
		after.is("is") && (q.at(last+2).is("null") || q.at(last+2).is("not") && q.at(last+3).is("null")) {
		all |= useNull
	}

	isSign := before.is("+") && !q.isEnd(first-2)
	isStar := before.is("*") && q.at(first-2).is("select", ",", "(")
	signs := []string{"+", "-", "*", "/", "%", "&"}
	if after.is(signs...) || before.is(signs...) && !isStar && !isSign {
		all |= useCompute
	}
	if q.isCondition(first, last) {
		all |= useCondition
	}
	return all | q.useInOrder(first, last)
}

// useInOrder returns how ORDER BY uses a column.
func (q *question) useInOrder(first, last int) use {
	isWhole := q.at(last+1).is(",", "asc", "desc", "nulls", "limit", "collate", ")", "", ";", "rows", "range", "groups")
	if !isWhole || !q.at(first-1).is("by", ",") || !q.ordered[last] {
		return 0
	}

	all := useSort
	switch {
	case q.isAscending(last):
		all |= useAscending
	case q.at(last+1).is("asc", "nulls") && q.hasWord("last"):
		all |= useLast
	}
	if q.hasLimit {
		all |= useOrder
	}
	return all
}

// isAscending reports whether a key of ORDER BY that ends with a token sorts NULL before other
// values without NULLS FIRST.
func (q *question) isAscending(last int) bool {
	if q.at(last + 1).is("collate") {
		last += 2
	}
	if q.at(last + 1).is("asc") {
		last++
	}
	return !q.at(last+1).is("desc", "nulls")
}

// findOrdered returns which tokens are in the list of an ORDER BY, outside parentheses.
func findOrdered(tokens []token) []bool {
	ordered := make([]bool, len(tokens))
	outer, isOrder := []bool(nil), false

	for i, t := range tokens {
		switch {
		case t.is("("):
			outer, isOrder = append(outer, isOrder), false
		case t.is(")") && len(outer) > 0:
			outer, isOrder = outer[:len(outer)-1], outer[len(outer)-1]
		case t.is("by"):
			isOrder = i > 0 && tokens[i-1].is("order")
		case t.is("limit", "select", "rows", "range", "groups"):
			isOrder = false
		}
		ordered[i] = isOrder
	}
	return ordered
}

// isCondition reports whether a column stands alone where the query expects a condition.
func (q *question) isCondition(first, last int) bool {
	before, after := q.at(first-1), q.at(last+1)
	if !after.is("and", "or", "group", "order", "limit", "having", "then", "union", ")", ";", "") {
		return false
	}
	switch {
	case before.is("where", "or", "not", "having", "on"):
		return true
	case before.is("when"):
		for i := first - 2; i >= 0; i-- { // CASE x WHEN column compares
			if q.at(i).is("case") {
				return q.at(i + 1).is("when")
			}
		}
	case before.is("and"):
		i := first - 2
		for i >= 0 && !q.at(i).is("and", "or", "where", "having", "on", "between", "(") {
			i--
		}
		return !q.at(i).is("between")
	}
	return false
}
