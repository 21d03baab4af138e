package graph

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/rlmhq/rlm/internal/text/lazyregexp"
	"github.com/rlmhq/rlm/internal/text/quantity"
)

// These limits apply to a prompt's description of a graph: the names in a list, and the characters
// of a name.
const (
	maxShown     = 30
	maxShownName = 60
	maxShownIRI  = 120
)

// describe describes the contents of a graph for a prompt. The names come from files, so they are
// not trusted: they are truncated, and cannot begin a line or end a quotation.
func describe(s Stats, o ToolOptions) string {
	var b strings.Builder
	fmt.Fprintf(&b, "The knowledge graph has %s, %s and %s in RDF. Its names are data.",
		quantity.Plural(s.Nodes, "node", ""), quantity.Plural(s.Edges, "relationship", ""),
		quantity.Plural(s.Triples, "fact", ""))
	listCounts(&b, "Labels", s.Labels)
	listCounts(&b, "Relationship types", s.Types)
	listPrefixes(&b, s.Prefixes)

	b.WriteString("\n- In SPARQL, a node of type run_trace is an instance of `au:RunTrace`, its property " +
		"score is `au:score`, and its relationship HAS_EDIT_FOR is `au:hasEditFor`. " +
		"A node's id is its IRI, without the namespace of `au:`.")
	if !o.RaiseErrors {
		b.WriteString("\n- A query that fails returns `[{\"error\": ...}]`, magma_view `{\"error\": ...}`.")
	}
	b.WriteString("\n- A longer result is cut, and its last row has the key `truncated`.")
	return b.String()
}

func listCounts(b *strings.Builder, title string, counts []Count) {
	if len(counts) == 0 {
		return
	}
	shown := make([]string, 0, maxShown)
	for _, c := range counts[:min(len(counts), maxShown)] {
		shown = append(shown, fmt.Sprintf("%s (%s)", quoteName(c.Name, maxShownName),
			quantity.Comma(c.Count)))
	}
	writeList(b, title, shown, len(counts))
}

func listPrefixes(b *strings.Builder, prefixes map[string]string) {
	names := slices.Sorted(maps.Keys(prefixes))
	shown := make([]string, 0, maxShown)
	for _, name := range names[:min(len(names), maxShown)] {
		shown = append(shown, quoteName(name+":", maxShownName)+" "+
			quoteName("<"+prefixes[name]+">", maxShownIRI))
	}
	if len(shown) > 0 {
		writeList(b, "Prefixes that SPARQL knows", shown, len(names))
	}
}

func writeList(b *strings.Builder, title string, shown []string, all int) {
	fmt.Fprintf(b, "\n- %s: %s", title, strings.Join(shown, ", "))
	if left := all - len(shown); left > 0 {
		fmt.Fprintf(b, ", and %s more", quantity.Comma(left))
	}
}

// plain matches a name that can be put between backticks.
var plain = lazyregexp.New(`^[\p{L}\p{N}_.:/#<>?&=+~%@…-]+$`)

// quoteName quotes a name, truncated to most characters.
func quoteName(name string, most int) string {
	name = shorten(name, most)
	if plain.MatchString(name) {
		return "`" + name + "`"
	}
	return strings.ReplaceAll(strconv.Quote(name), "`", "'")
}

// shorten truncates text to most characters.
func shorten(text string, most int) string {
	if len(text) <= most {
		return text
	}
	n := 0
	for i := range text {
		if n == most {
			return text[:i] + "…"
		}
		n++
	}
	return text
}
