package wiring

import (
	_ "embed" // for the program
	"strconv"
	"strings"
)

//go:embed sql.py
var sqlProgram string

// ShowQuery returns a program in Python that prints the rows of a query as a table. If isValue, the
// rows are the final value instead.
func ShowQuery(query string, isValue bool) string {
	quoted := strconv.QuoteToASCII(strings.ToValidUTF8(query, "\uFFFD")) // also a literal in Python
	show := "_show"
	if isValue {
		show = "FINAL"
	}
	return strings.NewReplacer("QUERY", quoted, "SHOW", show).Replace(sqlProgram)
}
