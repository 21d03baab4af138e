package tablesql

import (
	"bytes"
	"slices"
	"strings"
)

// class is the kind of values that an operand has.
type class byte

const (
	classUnknown class = iota
	classNull
	classNumber
	classTruth // true or false, which are 1 and 0
	classText
	classDate  // text from date() and similar functions
	classMixed // numbers and text, such as coalesce(n, 'none')
)

func (c class) isNumber() bool { return c == classNumber || c == classTruth }
func (c class) isText() bool   { return c == classText || c == classDate }

// affinity is the kind to which SQLite converts the other side of a comparison.
type affinity byte

const (
	affinityNone affinity = iota
	affinityNumber
	affinityText
)

// operand is a part of an expression, without comparisons and logic.
type operand struct {
	class    class
	affinity affinity
	table    *table  // if it is a column of a known table and nothing else
	column   *column // as table
	name     string  // of a column or an alias, if it is nothing else
	literal  *token  // if it is a string or a number in the query, or a parameter

	first, last int // its tokens
}

// An expression may begin after each of these words, so none of them is a name.
var keywords = strings.Fields("select distinct all where and or not by on having when then else case between in " +
	"like ilike glob regexp match is from join using limit offset union except intersect as with values over filter " +
	"escape end asc desc collate left right inner outer cross natural group order partition returning window")

var (
	arithmeticSigns = []string{"+", "-", "*", "/", "%", "&", "|", "<<", ">>"}
	otherSigns      = []string{"||", "->", "->>"}
)

// These lists group functions by the class of their results. The results of other functions have
// the class of the arguments, or an unknown one.
var (
	numberFunctions = strings.Fields("abs round ceil ceiling floor sqrt ln log log10 log2 exp pow power mod sign " +
		"trunc length octet_length instr unicode sum total avg count julianday unixepoch row_number rank " +
		"dense_rank ntile random median json_array_length")
	textFunctions = strings.Fields("substr substring strftime lower upper trim ltrim rtrim replace printf format " +
		"hex char group_concat string_agg typeof concat concat_ws quote")
	dateFunctions  = strings.Fields("date time datetime")
	dateWords      = strings.Fields("current_date current_time current_timestamp")
	firstFunctions = strings.Fields("nullif lag lead first_value last_value nth_value") // from the first argument
	anyFunctions   = strings.Fields("coalesce ifnull max min")                          // from one argument
	numberTypes    = strings.Fields("real integer int bigint smallint tinyint numeric float double decimal number")
	dateTypes      = strings.Fields("date time datetime timestamp timestamptz")
	tryTypes       = strings.Fields("real integer int bigint numeric float double decimal number") // see TRY_CAST
	textTypes      = strings.Fields("text varchar char string nvarchar clob")
)

// deepest bounds the depth to which operands are read.
const deepest = 20

// isEnd reports whether an operand may end with a token.
func (q *question) isEnd(i int) bool {
	t := q.at(i)
	switch t.kind {
	case tokenName:
		return t.is("end") || !t.is(keywords...)
	case tokenQuoted, tokenString, tokenNumber:
		return true
	case tokenOther:
		return t.text == ")" || t.isParameter
	}
	return false
}

// operandTo returns the operand that ends with a token.
func (q *question) operandTo(i int) operand {
	first := q.startOf(i)
	if first < 0 {
		return operand{first: i, last: i}
	}
	if o := q.operandFrom(first, 0); o.last == i {
		return o
	}
	return operand{first: first, last: i}
}

// startOf returns the first token of the operand that ends with a token, or -1.
func (q *question) startOf(i int) int {
	for q.isEnd(i) {
		first := q.termTo(i)
		before := q.at(first - 1)
		switch {
		case before.is("collate"):
			i = first - 2
		case !before.is(arithmeticSigns...) && !before.is(otherSigns...):
			return first
		case !q.isEnd(first - 2): // a sign, not an operation
			return first - 1
		default:
			i = first - 2
		}
	}
	return -1
}

// termTo returns the first token of the term that ends with a token.
func (q *question) termTo(i int) int {
	switch t := q.at(i); {
	case t.is(")"):
		first := q.pairs[i]
		before := q.at(first - 1)
		if before.is("over", "filter") && q.isEnd(first-2) {
			return q.termTo(first - 2)
		}
		if before.kind == tokenName && !before.is(keywords...) {
			return first - 1
		}
		return first
	case t.is("end"):
		return q.pairs[i]
	case t.kind == tokenName && q.at(i-1).is("over") && q.isEnd(i-2):
		return q.termTo(i - 2)
	case t.kind == tokenName || t.kind == tokenQuoted:
		for q.at(i - 1).is(".") {
			i -= 2
		}
	}
	return max(i, 0)
}

// operandFrom returns the operand that begins with a token.
func (q *question) operandFrom(i, depth int) operand {
	all, isSum := q.termFrom(i, depth), false
	for {
		sign := q.at(all.last + 1)
		switch {
		case sign.is("collate"):
			all.last += 2
			continue
		case !sign.is(arithmeticSigns...) && !sign.is(otherSigns...):
			return all
		}

		next := q.termFrom(all.last+2, depth)
		made := classUnknown
		if isSum = isSum || sign.is(arithmeticSigns...); isSum { // || binds stronger than +
			made = classNumber
		} else if sign.is("||") {
			made = classText
		}
		all = operand{class: made, first: all.first, last: next.last}
	}
}

// termFrom returns the term that begins with a token: a value, a name, a call, or an expression in
// parentheses.
func (q *question) termFrom(i, depth int) operand {
	t, o := q.at(i), operand{first: i, last: i}
	switch {
	case depth > deepest:
	case t.isParameter && t.kind == tokenOther: // of an unknown kind
	case t.is("-", "+", "~"):
		inner := q.termFrom(i+1, depth+1)
		o.last = max(inner.last, i)
		switch {
		case inner.literal != nil && inner.literal.kind == tokenNumber:
			o.class, o.literal = classNumber, inner.literal
		case t.is("+"):
			o.class = inner.class
		default:
			o.class = classNumber
		}
	case t.kind == tokenNumber:
		o.class, o.literal = classNumber, &q.tokens[i]
	case t.kind == tokenString:
		o.class, o.literal = classText, &q.tokens[i]
	case t.is("true", "false"):
		o.class = classTruth
	case t.is("null"):
		o.class = classNull
	case t.is(dateWords...):
		o.class = classDate
	case t.is("("):
		return q.parenthesis(i, depth)
	case t.is("case"):
		o.class, o.last = q.branches(i, depth), q.pairs[i]
	case t.kind == tokenName && q.at(i+1).is("("):
		return q.call(i, depth)
	case t.kind == tokenQuoted, t.kind == tokenName && !t.is(keywords...):
		for q.at(o.last+1).is(".") && !q.at(o.last+2).is("*") {
			o.last += 2
		}
		known := q.names[strings.ToLower(q.at(o.last).text)]
		known.name, known.first, known.last = q.at(o.last).text, i, o.last
		return known
	}
	return o
}

// parenthesis returns an operand in parentheses. Parentheses around a column do not change it.
func (q *question) parenthesis(i, depth int) operand {
	o := operand{first: i, last: q.pairs[i]}

	inner := q.operandFrom(i+1, depth+1)
	if inner.last+1 != o.last || q.at(i+1).is("select", "with", "values") {
		return o
	}
	inner.first, inner.last = o.first, o.last
	return inner
}

// call returns the operand for the result of a function.
func (q *question) call(i, depth int) operand {
	name, end := q.at(i), q.pairs[i+1]
	o := operand{first: i, last: end}
	switch {
	case name.is(numberFunctions...):
		o.class = classNumber
	case name.is(textFunctions...):
		o.class = classText
	case name.is(dateFunctions...):
		o.class = classDate
	case name.is("cast", "try_cast"):
		to := q.operandFrom(i+2, depth+1).last + 2
		switch {
		case q.at(to).is(numberTypes...):
			o.class, o.affinity = classNumber, affinityNumber
		case q.at(to).is(textTypes...):
			o.class, o.affinity = classText, affinityText
		}
	case name.is(firstFunctions...):
		inner := q.operandFrom(i+2, depth+1)
		o.class, o.table, o.column = inner.class, inner.table, inner.column
	case name.is(anyFunctions...), name.is("iif", "if"):
		list := q.arguments(i+1, depth)
		if name.is("iif", "if") && len(list) > 0 {
			list = list[1:]
		}
		if o.class = joinClasses(list); len(list) > 0 && list[0].class == o.class {
			o.table, o.column = list[0].table, list[0].column
		}
	}

	for q.at(o.last+1).is("filter", "over") {
		if !q.at(o.last + 2).is("(") {
			o.last += 2
			break
		}
		o.last = q.pairs[o.last+2]
	}

	return o
}

// arguments returns the arguments of a call whose list opens with a token. Arguments that are more
// than an operand have no class.
func (q *question) arguments(open, depth int) (list []operand) {
	end := q.pairs[open]

	first := open + 1
	for i := first; i <= end; i++ {
		switch {
		case q.at(i).is("(") || q.at(i).is("case"):
			i = q.pairs[i]
		case i == end || q.at(i).is(","):
			if first < i {
				o := q.operandFrom(first, depth+1)
				if o.last != i-1 {
					o = operand{first: first, last: i - 1}
				}
				list = append(list, o)
			}
			first = i + 1
		}
	}
	return list
}

// branches returns the class of the values of CASE.
func (q *question) branches(i, depth int) class {
	var list []operand
	end := q.pairs[i]
	for j := i + 1; j < end; j++ {
		switch t := q.at(j); {
		case t.is("(") || t.is("case"):
			j = q.pairs[j]
		case t.is("then", "else"):
			o := q.operandFrom(j+1, depth+1)
			if !q.at(o.last+1).is("when", "else", "end") {
				o.class = classUnknown
			}
			list = append(list, o)
		}
	}

	return joinClasses(list)
}

// joinClasses returns the class of a value that may be any of the operands, ignoring NULL.
func joinClasses(list []operand) class {
	var has [classMixed + 1]bool
	for _, o := range list {
		has[o.class] = true
	}

	isNumber, isText := has[classNumber] || has[classTruth], has[classText] || has[classDate]
	switch {
	case has[classMixed], isNumber && isText:
		return classMixed
	case has[classUnknown]:
		return classUnknown
	case isNumber:
		return classNumber
	case has[classText]:
		return classText
	case has[classDate]:
		return classDate
	}
	return classNull
}

// isNumeral reports whether both SQLite and people read a string as a number.
func isNumeral(text string) bool {
	trimmed := bytes.Trim([]byte(text), " ")

	if kind := kindOf(trimmed); kind != kindText {
		return kind != kindNull
	}
	return areDigits(bytes.TrimLeft(trimmed, "+-"))
}

// pairUp matches parentheses, and each CASE with its END. An opening one without a match is paired
// with the last token.
func pairUp(tokens []token) []int {
	pairs := make([]int, len(tokens))
	var open []int

	for i, t := range tokens {
		pairs[i] = len(tokens) - 1
		isClose, isEnd := t.is(")"), t.is("end")
		if isClose || isEnd {
			pairs[i] = 0
			for len(open) > 0 {
				last := open[len(open)-1]
				open = open[:len(open)-1]
				if tokens[last].is("(") == isClose {
					pairs[i], pairs[last] = last, i
					break
				}
			}
		}
		if t.is("(", "case") {
			open = append(open, i)
		}
	}
	return pairs
}

// findAliases adds the names that the query gives to expressions. A name that it gives to values of
// different kinds, or that a column also has, is unknown.
func (q *question) findAliases() {
	const passes = 2 // an alias may be derived from another one
	columns := q.names
	for range passes {
		found := map[string]operand{}
		for i, t := range q.tokens {
			isName := t.kind == tokenName && !t.is(keywords...) || t.kind == tokenQuoted
			end := i - 1
			if q.at(end).is("as") {
				end--
			}
			if !isName || !q.isEnd(end) || q.at(i+1).is(".", "(") || q.isCast(i-1) {
				continue
			}

			name := strings.ToLower(t.text)
			o := q.operandTo(end)

			before, isKnown := found[name]
			if isKnown && (before.class != o.class || before.affinity != o.affinity || before.column != o.column) {
				o = operand{}
			}
			if column, isColumn := columns[name]; isColumn && column.column != o.column {
				o = operand{}
			}
			found[name] = o
		}

		q.names = make(map[string]operand, len(columns)+len(found))
		for name, o := range columns {
			q.names[name] = o
		}
		for name, o := range found {
			q.names[name] = operand{class: o.class, affinity: o.affinity, table: o.table, column: o.column}
		}
	}
}

// isCast reports whether a token is the AS of CAST(x AS type).
func (q *question) isCast(i int) bool {
	if !q.at(i).is("as") || !q.at(i+2).is(")", "(") {
		return false
	}
	if q.at(i + 2).is("(") { // the name of a CTE, or varchar(10)
		return true
	}
	return q.at(q.pairs[i+2]-1).is("cast", "try_cast")
}

// hasName reports whether the operand is a column or an alias of this name.
func (o *operand) hasName(name string) bool { return o.name != "" && strings.EqualFold(o.name, name) }

// hasWord reports whether one of some words or signs is a token of the query.
func (q *question) hasWord(words ...string) bool {
	return slices.ContainsFunc(q.tokens, func(t token) bool { return t.is(words...) })
}
