package tablesql

import (
	"fmt"
	"strings"
)

// comparison is a comparison of two operands.
type comparison struct {
	how         comparing
	left, right operand
}

type comparing byte

const (
	compareOrder   comparing = iota // <, BETWEEN and the like
	compareEqual                    // =, IN, IS, CASE x WHEN
	compareUnequal                  // <>, NOT IN, IS NOT
)

// findComparisons returns the comparisons of the query.
func (q *question) findComparisons() (all []comparison) {
	for i, t := range q.tokens {
		left := func() operand {
			if q.at(i - 1).is("not") {
				return q.operandTo(i - 2)
			}
			return q.operandTo(i - 1)
		}

		how := compareEqual
		if q.at(i-1).is("not") || q.at(i+1).is("not") {
			how = compareUnequal
		}

		switch {
		case t.is("<", ">", "<=", ">="):
			all = append(all, comparison{compareOrder, left(), q.operandFrom(i+1, 0)})
		case t.is("=", "=="):
			all = append(all, comparison{compareEqual, left(), q.operandFrom(i+1, 0)})
		case t.is("<>", "!="):
			all = append(all, comparison{compareUnequal, left(), q.operandFrom(i+1, 0)})
		case t.is("is"):
			right := i + 1
			for q.at(right).is("not", "distinct", "from") {
				right++
			}
			all = append(all, comparison{how, left(), q.operandFrom(right, 0)})
		case t.is("in") && q.at(i+1).is("(") && !q.at(i+2).is("select", "with", "values"):
			side := left()
			for _, one := range q.arguments(i+1, 0) {
				all = append(all, comparison{how, side, one})
			}
		case t.is("between"):
			side, low := left(), q.operandFrom(i+1, 0)
			all = append(all, comparison{compareOrder, side, low})
			if q.at(low.last + 1).is("and") {
				all = append(all, comparison{compareOrder, side, q.operandFrom(low.last+2, 0)})
			}
		case t.is("case") && !q.at(i+1).is("when"):
			all = append(all, q.compareCases(i)...)
		}
	}
	return all
}

// compareCases returns the comparisons of CASE x WHEN.
func (q *question) compareCases(i int) (all []comparison) {
	base := q.operandFrom(i+1, 0)

	for j := base.last + 1; j < q.pairs[i]; j++ {
		switch t := q.at(j); {
		case t.is("(", "case"):
			j = max(j, q.pairs[j])
		case t.is("when"):
			all = append(all, comparison{compareEqual, base, q.operandFrom(j+1, 0)})
		}
	}

	return all
}

// useOf returns how a comparison uses the operand opposite the given one.
func (c *comparison) useOf(other *operand) (all use) {
	isText := other.literal != nil && other.literal.kind == tokenString
	switch {
	case c.how != compareOrder:
		if other.class.isNumber() && other.column == nil {
			all |= useEqual
		}
		if c.how == compareUnequal && other.class != classNull {
			all |= useUnequal
		}
	case isText && isNumeral(other.literal.text):
		all |= useQuoted
	case !isText:
		all |= useCompare
		if other.class.isNumber() {
			all |= useNumber
		}
	}
	return all
}

// judge returns an error if SQLite's answer would differ from what people expect of the query,
// because it compares a number with text. If the comparison may be intended, judge adds a note
// instead.
func (q *question) judge() error {
	for i := range q.compared {
		c := &q.compared[i]
		number, text := &c.left, &c.right
		if number.class.isText() || text.class.isNumber() {
			number, text = text, number
		}

		switch {
		case c.how == compareOrder && (number.class == classMixed || text.class == classMixed):
			mixed := number
			if text.class == classMixed {
				mixed = text
			}
			return fmt.Errorf("%s gives numbers and texts, and SQLite takes each text for more than each number: "+
				"make all of its values numbers, or compare them in the snippet", q.show(mixed))
		case !number.class.isNumber() || !text.class.isText():
		default:
			if err := q.judgePair(c.how, number, text); err != nil {
				return err
			}
		}
	}
	return q.judgeCalls()
}

// judgePair judges the comparison of a number with text.
func (q *question) judgePair(how comparing, number, text *operand) error {
	literal := text.literal

	isNumber := literal != nil && isNumeral(literal.text)
	neverMatches := func() error {
		return fmt.Errorf("%s is a number and %s a text: for SQLite, such two are never equal, and the text is "+
			"always more: %s", q.show(number), q.show(text), q.advise(number, text))
	}
	noted := func() error {
		q.note(how, number, text)
		return nil
	}

	switch {
	case number.affinity == affinityNumber && literal != nil:
		isMissing := isMarker([]byte(literal.text)) || number.column != nil && number.column.mixed != ""
		if isNumber || how != compareOrder && isMissing {
			return nil // SQLite converts it to a number, or the query looks for missing values
		}
		if how == compareOrder {
			return neverMatches()
		}
		return noted()
	case number.affinity == affinityNumber && text.column == nil && text.class == classText:
		return nil // SQLite converts the expression's value to a number
	case text.affinity == affinityText && text.column == nil && how != compareOrder:
		return nil // CAST(n AS TEXT) = 5
	case text.column != nil && how == compareOrder:
		if number.column != nil {
			return neverMatches()
		}
		return text.table.explainText(text.column)
	case text.column != nil && number.class == classTruth:
		return fmt.Errorf("column %s of %s has texts, and true is the number 1 for SQLite: compare with a text, "+
			"such as %s = 'true'", showName(text.column.name), text.table.listNames()[0], showName(text.column.name))
	case text.column != nil && !text.column.hasDigits,
		number.column != nil && literal != nil && !isNumber && how != compareOrder:
		return noted()
	}
	return neverMatches()
}

// note adds a note about a column that the query compares for equality with a kind of value that
// the column lacks.
func (q *question) note(how comparing, number, text *operand) {
	column, other, holds, kind := number, text, "numbers", "text"
	if text.column != nil {
		column, other, holds, kind = text, number, "texts", "number"
	}

	advice := "they are equal only if both are written alike"
	if how == compareUnequal {
		advice = "a value differs from it unless both are written alike"
	}
	if text.literal != nil && text.literal.text == "" {
		if how == compareUnequal || q.hasWord("isnull", "notnull", "coalesce", "ifnull", "null") {
			return
		}
		advice = "a missing number is NULL: ask with IS NULL"
	}

	const most = 5
	if column.column != nil && len(q.notes) < most {
		text := fmt.Sprintf("column %s of %s has %s, and the query compares it with the %s %s: %s",
			showName(column.column.name), column.table.listNames()[0], holds, kind, q.show(other), advice)
		q.tell(text, "%s", text)
	}
}

// advise returns advice about a number that is compared with text.
func (q *question) advise(number, text *operand) string {
	literal := text.literal
	switch {
	case literal != nil && !isNumeral(literal.text):
		return "compare with a number"
	case literal != nil && literal.isParameter:
		return "give the parameter as a number"
	case literal != nil:
		return "write " + literal.text + " without quotes"
	case number.literal != nil && text.class == classDate:
		return "compare with a text such as '2024-01-31'"
	case text.class == classDate:
		return "convert the date, with julianday or unixepoch"
	}
	return "convert the text, as in CAST(" + q.show(text) + " AS INTEGER)"
}

// judgeCalls returns an error for arithmetic with words, and for the maximum or minimum of numbers
// and text.
func (q *question) judgeCalls() error {
	for i, t := range q.tokens {
		switch {
		case t.is("+", "-", "*", "/", "%") && q.isEnd(i-1):
			left := q.operandOfTerm(i - 1)
			right := q.termFrom(i+1, 0)
			for _, o := range []*operand{&left, &right} {
				if err := q.judgeTerm(t, o); err != nil {
					return err
				}
			}
		case t.is(dateTypes...) && q.isCast(i-1):
			return fmt.Errorf("SQLite has no type %s, and CAST would take the digits at the beginning of a text: "+
				"a date is a text such as '2024-01-31', and date(x) or datetime(x) gives one", strings.ToUpper(t.text))
		case t.is("max", "min", "median") && q.at(i+1).is("(") && q.call(i, 0).class == classMixed:
			o := q.call(i, 0)
			return fmt.Errorf("%s chooses among numbers and texts, and SQLite takes each text for more than each "+
				"number: leave the texts out, or make numbers of them", q.show(&o))
		}
	}
	return nil
}

// operandOfTerm returns the term that ends with a token.
func (q *question) operandOfTerm(i int) operand {
	if o := q.termFrom(q.termTo(i), 0); o.last == i {
		return o
	}
	return operand{first: i, last: i}
}

// judgeTerm judges an operand of arithmetic.
func (q *question) judgeTerm(sign token, o *operand) error {
	advice := "SQLite computes with the digits at its beginning, or 0"
	if sign.text == "+" {
		advice += "; || joins texts"
	}

	switch {
	case o.class == classText && o.column != nil && o.name == "":
		return fmt.Errorf("the query computes with the text %s: %s; count days with julianday", q.show(o), advice)
	case o.class == classDate:
		return fmt.Errorf("%s is a text, and SQLite computes with its year alone: use julianday(...), which counts "+
			"days, or date(..., '+1 day')", q.show(o))
	case o.literal != nil && o.literal.kind == tokenString && !isNumeral(o.literal.text):
		return fmt.Errorf("the query computes with the text %q: %s", o.literal.text, advice)
	}
	return nil
}

// show returns an operand as written in the query.
func (q *question) show(o *operand) string {
	const most = 60

	from, to := q.at(o.first).from, q.at(o.last).to
	if t := q.at(o.first); t.isParameter && o.first == o.last {
		return q.sql[from:to] + " (" + t.text + ")"
	}

	text := q.sql[from:max(from, to)]
	if len(text) > most {
		text = strings.ToValidUTF8(text[:most], "") + "..."
	}
	return text
}
