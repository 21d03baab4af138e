package tablesql

import (
	"slices"
	"strings"
)

// noteJoins notes that a join by columns of the same name compares numbers with text, which are
// never equal, or empty strings, which are equal. If one column is from CSV or from a database,
// SQLite converts the other value.
func (t *Tables) noteJoins(q *question) {
	sources := t.findSources(q)
	for i := range q.tokens {
		if q.at(i).is("using") && q.at(i+1).is("(") {
			for j := i + 2; j < q.pairs[i+1]; j += 2 {
				name := q.at(j).text
				t.noteJoin(q, name, sources.joinedBy(i, name))
			}
		}
	}
	for i := range q.compared {
		c := &q.compared[i]
		if c.left.hasName(c.right.name) {
			t.noteJoin(q, c.right.name, sources.compared(q, c))
		}
	}
}

// noteJoin notes a join by one column of some tables. joined is nil if it is not clear which tables
// are joined; then noteJoin examines all tables that the query names.
func (t *Tables) noteJoin(q *question, name string, joined []*table) {
	if joined == nil {
		joined = slices.DeleteFunc(slices.Clone(t.list), func(table *table) bool { return !table.isIn(q) })
	}

	numbers, texts, empty := findKinds(joined, name)
	if numbers != "" && texts != "" {
		q.tell("join "+name, "column %s has numbers in %s and texts in %s, and the query joins them: "+
			"for SQLite, such two are never equal; convert one of them, as in CAST(%[1]s AS TEXT)",
			showName(name), numbers, texts)
	}
	if empty != "" && !q.mentions("") {
		q.tell("empty "+name, "column %s of %s has empty texts, which are not NULL, and the query joins them: "+
			"leave them out with WHERE %[1]s <> ''", showName(name), empty)
	}
}

// findKinds returns the name of a table whose column with the given name contains numbers, one
// whose column contains text, and one whose column contains empty strings, if all tables have such
// a column.
func findKinds(joined []*table, name string) (numbers, texts, empty string) {
	areAll := true
	for _, table := range joined {
		c := table.findColumn(name)
		if c == nil {
			continue
		}
		empty, areAll = table.listNames()[0], areAll && c.hasEmpty
		switch {
		case c.affinity() != affinityNone:
		case c.class.isNumber():
			numbers = table.listNames()[0]
		case c.class.isText():
			texts = table.listNames()[0]
		}
	}
	if !areAll {
		empty = ""
	}
	return numbers, texts, empty
}

func (t *table) findColumn(name string) *column {
	for i := range t.columns {
		if strings.EqualFold(t.columns[i].name, name) {
			return &t.columns[i]
		}
	}
	return nil
}

// isIn reports whether a query mentions a name of the table.
func (t *table) isIn(q *question) bool {
	return slices.ContainsFunc(q.tokens, func(one token) bool {
		return one.kind != tokenNumber && one.kind != tokenOther && t.isNamed(one.text)
	})
}

// source is a table, or anything else that a query reads, such as a subquery.
type source struct {
	table *table // nil if it is not a table of the session
	name  string // by which the query refers to it
	at    int    // its first token
}

// sources contains all sources of a query.
type sources struct {
	list    []source
	clauses []int // for each token: the FROM whose list it is in, or -1
}

// findSources returns the sources that a query reads.
func (t *Tables) findSources(q *question) sources {
	found := sources{clauses: findClauses(q)}
	for i := range q.tokens {
		if found.clauses[i] < 0 || !q.at(i).is("from", "join", ",") {
			continue
		}

		one, last := source{at: i + 1}, i+1
		if q.at(last).is("(") {
			last = q.pairs[last]
		} else {
			for q.at(last + 1).is(".") {
				last += 2
			}
			one.name, one.table = q.at(last).text, t.findTable(q, i+1, last)
		}
		if q.at(last + 1).is("as") {
			last++
		}
		if alias := q.at(last + 1); alias.kind == tokenQuoted || alias.kind == tokenName && !alias.is(keywords...) {
			one.name = alias.text
		}
		found.list = append(found.list, one)
	}
	return found
}

// findClauses returns for each token the FROM whose list it is in, outside of parentheses, or -1.
func findClauses(q *question) []int {
	clauses := make([]int, len(q.tokens))
	var outer []int
	clause := -1
	for i, t := range q.tokens {
		switch {
		case t.is("("):
			outer, clause = append(outer, clause), -1
		case t.is(")") && len(outer) > 0:
			outer, clause = outer[:len(outer)-1], outer[len(outer)-1]
		case t.is("from") && !q.at(i-1).is("distinct"):
			clause = i
		case t.is("select", "where", "group", "having", "order", "limit", "window", "union", "except", "intersect"):
			clause = -1
		}
		clauses[i] = clause
	}
	return clauses
}

// findTable returns the table whose name consists of the given tokens, or nil if the name may refer
// to anything else.
func (t *Tables) findTable(q *question, first, last int) *table {
	name, schema := q.at(last).text, ""
	if first < last {
		schema = q.at(last - 2).text
	}
	if q.at(last+1).is("(") || schema == "" && q.isDefined(name) {
		return nil
	}

	var found *table
	for _, table := range t.list {
		isNamed := table.isNamed(name)
		if schema != "" {
			isNamed = strings.EqualFold(table.inside.schema, schema) && strings.EqualFold(table.inside.table, name)
		}
		if isNamed && found != nil {
			return nil
		} else if isNamed {
			found = table
		}
	}
	return found
}

// isDefined reports whether a name may be that of a CTE.
func (q *question) isDefined(name string) bool {
	for i, t := range q.tokens {
		if strings.EqualFold(t.text, name) && q.at(i-1).is("with", "recursive", ",") && q.at(i+1).is("as", "(") {
			return true
		}
	}
	return false
}

// joinedBy returns the tables that USING, which is a token, joins by a column: the one before it,
// and the first one that has the column. It returns nil if these tables are not clear.
func (s *sources) joinedBy(using int, name string) (joined []*table) {
	var list []*table
	for _, one := range s.list {
		if one.at < using && s.clauses[one.at-1] == s.clauses[using] && s.clauses[using] >= 0 {
			list = append(list, one.table)
		}
	}
	if len(list) < 2 || list[len(list)-1] == nil {
		return nil
	}

	for _, first := range list[:len(list)-1] {
		switch {
		case first == nil:
			return nil
		case first.findColumn(name) != nil:
			return []*table{first, list[len(list)-1]}
		}
	}
	return nil
}

// compared returns the tables of the columns that a comparison compares, or nil if these tables are
// not clear.
func (s *sources) compared(q *question, c *comparison) (joined []*table) {
	for _, o := range []*operand{&c.left, &c.right} {
		if !q.at(o.last - 1).is(".") {
			return nil
		}

		var found *table
		for _, one := range s.list {
			if !strings.EqualFold(one.name, q.at(o.last-2).text) {
				continue
			}
			if one.table == nil || found != nil && found != one.table {
				return nil
			}
			found = one.table
		}
		if found == nil {
			return nil
		}
		joined = append(joined, found)
	}
	return joined
}
