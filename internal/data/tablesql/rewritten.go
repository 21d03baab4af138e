package tablesql

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/rlmhq/rlm/internal/text/lazyregexp"
)

// edits are changes to some tokens of a query.
type edits struct {
	before, after, instead map[int]string
}

func newEdits() *edits { return &edits{map[int]string{}, map[int]string{}, map[int]string{}} }

// write returns the query with the edits. Spaces and comments between tokens are kept.
func (q *question) write(e *edits) string {
	var b strings.Builder
	done := 0
	for i, t := range q.tokens {
		word, isOther := e.instead[i]
		if !isOther {
			word = q.sql[t.from:t.to]
		}
		b.WriteString(q.sql[done:t.from] + e.before[i] + word + e.after[i])
		done = t.to
	}
	return b.String() + q.sql[done:]
}

// rewrite returns the query in the syntax that SQLite supports: see replaceIlike and
// replaceTryCast. With bigs, it writes each integer of more than 64 bits as text, because SQLite
// would convert the integer to a float.
func (q *question) rewrite(bigs bool) (string, *edits, error) {
	e := newEdits()
	for i, t := range q.tokens {
		var err error
		switch {
		case t.is("ilike"):
			err = q.replaceIlike(e, i)
		case t.is("try_cast"):
			err = q.replaceTryCast(e, i)
		case bigs && t.kind == tokenNumber && !t.isParameter && areDigits([]byte(t.text)):
			if _, tooLong := strconv.ParseInt(t.text, 10, 64); tooLong != nil && len(t.text) <= longestNumber {
				e.instead[i] = "'" + strings.TrimLeft(t.text, "0") + "'"
			}
		}
		if err != nil {
			return "", nil, err
		}
	}
	return q.write(e), e, nil
}

// rewrite adds these words. The comment marks the end of an operand, so that restoreName finds it.
const (
	ilikeMark    = "rlm_ilike:"
	ilikeWords   = "REGEXP '" + ilikeMark + "' || ("
	tryCastWords = "CAST(" + tryCastFunction + "("
	endMark      = "/*rlm*/"
)

var addedWords = lazyregexp.New(regexp.QuoteMeta(ilikeWords) + "|" + regexp.QuoteMeta(tryCastWords) + "|" +
	regexp.QuoteMeta(endMark) + `[^)]*\)`)

// replaceIlike replaces ILIKE with REGEXP, with a mark before its pattern: see withIlike. MATCH
// would not need a mark, but a virtual table in a database may interpret it as a search.
func (q *question) replaceIlike(e *edits, i int) error {
	last := q.operandFrom(i+1, 0).last
	if last >= len(q.tokens) || q.at(last+1).is("<", ">", "<=", ">=") {
		return errors.New("write (x ILIKE pattern), in parentheses")
	}

	e.instead[i] = ilikeWords
	e.after[last] += endMark + ")"
	return nil
}

// replaceTryCast replaces TRY_CAST, which SQLite lacks, with a CAST that returns NULL for text that
// is not a number. Other types are refused, because SQLite cannot determine which strings represent
// them.
func (q *question) replaceTryCast(e *edits, i int) error {
	as := q.findAs(i + 1)
	if as < 0 {
		return errors.New("write TRY_CAST(x AS type)")
	}
	if name := q.at(as + 1); !name.is(tryTypes...) && !name.is(textTypes...) {
		return fmt.Errorf("TRY_CAST to %s is not possible, but to INTEGER, REAL, DECIMAL and TEXT: a date is a text "+
			"such as '2024-01-31', and date(x) gives NULL for others", strings.ToUpper(name.text))
	}

	kind := castKind(q.sql[q.at(as).to:q.at(q.pairs[i+1]).from])
	e.instead[i], e.instead[i+1] = "", tryCastWords
	e.before[as] = endMark + ", " + strconv.Itoa(kind) + ")" + e.before[as]
	return nil
}

// restoreName returns the name of a column that is the text of an expression, without the words
// that rewrite adds.
func restoreName(name string) string {
	return addedWords.ReplaceAllStringFunc(name, func(found string) string {
		switch found {
		case ilikeWords:
			return "ILIKE"
		case tryCastWords:
			return "TRY_CAST("
		}
		return ""
	})
}

// addChecks adds function calls to the edits that check what SQLite does silently: quotients of two
// integers, remainders of fractions, and casts of text and fractions to numbers. Results that are
// numbers do not change; castValue and numbersOf refuse text that is not a number. addChecks
// reports whether there are such operations, and whether it understands all of them.
func (q *question) addChecks(e *edits) (areSome, isSure bool) {
	for i, t := range q.tokens {
		isKnown, isAdded := true, false
		switch {
		case t.is("/", "%"):
			isKnown, isAdded = q.checkQuotient(e, i)
		case t.is("cast") && q.at(i+1).is("("):
			isKnown, isAdded = q.checkCast(e, i+1)
		case t.kind == tokenQuoted && strings.ContainsAny(t.text, "/%(") && !q.at(i-1).is("from", "join"):
			_, isKnown = q.names[strings.ToLower(t.text)] // or it refers to a column by its expression
		}
		if !isKnown {
			return slices.ContainsFunc(q.tokens, func(t token) bool { return t.is("/", "%", "cast") }), false
		}
		areSome = areSome || isAdded
	}
	return areSome, true
}

// checkQuotient replaces the quotient or remainder whose operator is the given token with a
// function call, unless one of its operands is always a fraction.
func (q *question) checkQuotient(e *edits, sign int) (isKnown, isAdded bool) {
	first, last := q.productTo(sign-1), q.factorFrom(sign+1)
	if first < 0 || last < 0 {
		return false, false
	}
	if q.at(sign).is("/") && (q.isReal(first, sign-1) || q.isReal(sign+1, last)) {
		return true, false
	}

	name := quotientFunction
	if q.at(sign).is("%") {
		name = remainderFunction
	}
	e.before[first] = name + "(" + e.before[first]
	e.instead[sign] = ","
	e.after[last] += ")"
	return true, true
}

// tightSigns bind more tightly than a division.
var tightSigns = []string{"||", "->", "->>"}

// productTo returns the first token of the product that ends with a token, or -1.
func (q *question) productTo(i int) int {
	for q.isEnd(i) {
		first := q.termTo(i)
		for q.at(first-1).is("-", "+", "~") && !q.isEnd(first-2) {
			first--
		}
		before := q.at(first - 1)
		if !before.is("*", "/", "%", "collate") && !before.is(tightSigns...) {
			return first
		}
		i = first - 2
	}
	return -1
}

// factorFrom returns the last token of the factor that begins with a token, or -1.
func (q *question) factorFrom(i int) int {
	for {
		first := i
		for q.at(first).is("-", "+", "~") {
			first++
		}
		t, last := q.at(first), q.termFrom(first, 0).last
		if t.kind == tokenOther && !t.is("(") && !t.isParameter || t.is(keywords...) && !t.is("case") ||
			last >= len(q.tokens) {
			return -1
		}
		for q.at(last + 1).is("collate") {
			last += 2
		}
		if !q.at(last + 1).is(tightSigns...) {
			return last
		}
		i = last + 2
	}
}

// isReal reports whether a product has a factor that is a fraction, or NULL.
func (q *question) isReal(first, last int) bool {
	found := false
	for i := first; i <= last; i++ {
		t := q.at(i)
		column := q.names[strings.ToLower(t.text)].column
		switch {
		case t.is(tightSigns...):
			return false
		case t.is("("), t.is("case"):
			i = max(i, q.pairs[i])
		case t.kind == tokenNumber:
			_, err := strconv.ParseInt(t.text, 10, 64)
			found = found || err != nil && kindOf([]byte(t.text)) == kindReal
		case t.is("avg", "total", "julianday"):
			found = found || q.at(i+1).is("(")
		case t.kind == tokenName || t.kind == tokenQuoted:
			found = found || column != nil && column.kind == typeReal && !q.at(i+1).is("(", ".")
		}
	}
	return found
}

// checkCast wraps the value of a CAST to a number, whose parenthesis is a token.
func (q *question) checkCast(e *edits, open int) (isKnown, isAdded bool) {
	as := q.findAs(open)
	if as < 0 {
		return false, false
	}

	kind := castKind(q.sql[q.at(as).to:q.at(q.pairs[open]).from])
	if kind == castOther || q.isOfKind(open+1, as-1, kind) {
		return true, false
	}
	e.after[open] += castFunction + "("
	e.before[as] = ", " + strconv.Itoa(kind) + ") " + e.before[as]
	return true, true
}

// findAs returns the AS of a CAST whose parenthesis is a token, or -1.
func (q *question) findAs(open int) int {
	if !q.at(open).is("(") {
		return -1
	}

	as, end := open+1, q.pairs[open]
	for as < end && !q.at(as).is("as") {
		if q.at(as).is("(", "case") {
			as = max(as, q.pairs[as])
		}
		as++
	}
	if as >= end || as == open+1 {
		return -1
	}
	return as
}

// isOfKind reports whether tokens are a CSV column that already has the kind of a CAST.
func (q *question) isOfKind(first, last, kind int) bool {
	o := q.operandFrom(first, 0)
	if o.last != last || o.column == nil || o.table.places != nil {
		return false
	}
	return o.column.kind == typeInteger || o.column.kind == typeReal && kind == castReal
}

// mostScale bounds the decimal places of DECIMAL that castValue checks.
const mostScale = 15

// castKind returns the kind of value to which CAST converts for a type: see castValue.
func castKind(typeName string) int {
	name := strings.ToLower(strings.TrimSpace(typeName))
	has := func(parts ...string) bool {
		return slices.ContainsFunc(parts, func(part string) bool { return strings.Contains(name, part) })
	}
	switch { // the order is SQLite's
	case has("int"):
		return castInteger
	case has("char", "clob", "text", "blob"):
		return castOther
	case has("real", "floa", "doub"): //nolint:misspell // as in SQLite
		return castReal
	}

	_, after, _ := strings.Cut(name, ",")
	scale := strings.TrimSpace(strings.TrimSuffix(after, ")"))
	if n, err := strconv.Atoi(scale); err == nil && 0 <= n && n <= mostScale {
		return n
	}
	return castNumeric
}
