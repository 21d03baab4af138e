package tablesql

import (
	"fmt"
	"slices"
	"strings"

	"github.com/rlmhq/rlm/internal/text/lazyregexp"
)

// isDescription matches the commands by which other programs show tables and columns.
var isDescription = lazyregexp.New(`(?i)^\s*(describe|desc|show|pragma|\.tables|\.schema)\b`)

// listColumns returns advice about a column that does not exist: the nearest name, and the columns
// of the tables that the query names.
func (t *Tables) listColumns(sql, problem string) string {
	_, missing, _ := strings.Cut(problem, "no such column: ")
	missing = strings.ToLower(missing[strings.LastIndexByte(missing, '.')+1:])

	const mostTables, mostColumns = 5, 30
	nearest, least := "", 1+len(missing)/3
	var lists []string
	for _, table := range t.list {
		isNamed := func(name string) bool {
			name = strings.Trim(name[strings.LastIndexByte(name, '.')+1:], `"`)
			return name != "" && strings.Contains(strings.ToLower(sql), strings.ToLower(name))
		}
		if table.prepare() != nil || !slices.ContainsFunc(table.listNames(), isNamed) {
			continue
		}

		var names []string
		for i, c := range table.columns {
			if distance := countEdits(missing, strings.ToLower(c.name), least+1); distance <= least {
				nearest, least = c.name, distance-1
			}
			if i < mostColumns {
				names = append(names, strings.TrimSpace(showName(c.name)+" "+c.showKind()))
			}
		}
		if more := len(table.columns) - mostColumns; more > 0 {
			names = append(names, fmt.Sprintf("and %d more", more))
		}

		own := table.listNames()
		if len(lists) < mostTables {
			lists = append(lists, fmt.Sprintf("[%s] of %s", strings.Join(names, ", "), own[len(own)-1]))
		}
	}

	advice := ""
	if nearest != "" {
		advice = "; did you mean " + showName(nearest) + "?"
	}
	if lists != nil {
		advice += "; the columns are: " + strings.Join(lists, ", ")
	}
	return advice
}

// countEdits returns how many characters must be added, removed or replaced to turn a into b, or
// most if that many are needed or the strings are long.
func countEdits(a, b string, most int) int {
	from, to := []rune(a), []rune(b)
	const longest = 100
	if len(from) > longest || len(to) > longest {
		return most
	}

	row := make([]int, len(to)+1)
	for j := range row {
		row[j] = j
	}
	for i, c := range from {
		before := row[0]
		row[0] = i + 1
		for j, d := range to {
			edits := before + 1
			if c == d {
				edits = before
			}
			before = row[j+1]
			row[j+1] = min(edits, row[j]+1, before+1)
		}
	}
	return min(most, row[len(to)])
}
