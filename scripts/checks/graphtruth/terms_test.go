package graphtruth

import (
	"errors"
	"fmt"
	"hash/fnv"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const (
	rdfNS     = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"
	xsdNS     = "http://www.w3.org/2001/XMLSchema#"
	xsdString = xsdNS + "string"
)

// kind is the kind of an RDF term.
type kind byte

const (
	unbound kind = iota
	iri
	blank
	literal
)

// term is an RDF term. Datatype is empty for strings and for strings with a language.
type term struct {
	kind                      kind
	value, datatype, language string
}

// triple is a fact, and tuple is a fact or a row of a result.
type (
	triple [3]term
	tuple  []term
)

func newLiteral(value, datatype, language string) term {
	if datatype == xsdString || language != "" {
		datatype = ""
	}
	return term{kind: literal, value: value, datatype: datatype, language: strings.ToLower(language)}
}

func (t term) String() string {
	switch {
	case t.kind == iri:
		return "<" + t.value + ">"
	case t.kind == blank:
		return "_:" + t.value
	case t.kind == unbound:
		return "-"
	case t.language != "":
		return strconv.Quote(t.value) + "@" + t.language
	case t.datatype != "":
		return strconv.Quote(t.value) + "^^" + strings.TrimPrefix(t.datatype, xsdNS)
	}
	return strconv.Quote(t.value)
}

// parseNTriples reads facts in N-Triples.
func parseNTriples(text string) ([]triple, error) {
	var facts []triple
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' {
			continue
		}
		var fact triple
		rest := line
		var err error
		for i := range fact {
			if fact[i], rest, err = parseTerm(rest); err != nil {
				return nil, fmt.Errorf("%w in %q", err, line)
			}
		}
		if rest != "." {
			return nil, fmt.Errorf("%q does not end in a dot", line)
		}
		facts = append(facts, fact)
	}
	return facts, nil
}

// parseTerm parses a term of N-Triples, and returns the rest of the text.
func parseTerm(text string) (term, string, error) {
	text = strings.TrimSpace(text)
	switch {
	case strings.HasPrefix(text, "<"):
		value, rest, _ := strings.Cut(text[1:], ">")
		value, err := unescape(value)
		return term{kind: iri, value: value}, strings.TrimSpace(rest), err
	case strings.HasPrefix(text, "_:"):
		name, rest, _ := strings.Cut(text[2:], " ")
		return term{kind: blank, value: name}, strings.TrimSpace(rest), nil
	case !strings.HasPrefix(text, `"`):
		return term{}, "", fmt.Errorf("no term begins with %q", text)
	}

	end := closingQuote(text)
	if end < 0 {
		return term{}, "", errors.New("a literal does not end")
	}
	value, err := unescape(text[1:end])
	rest := text[end+1:]
	if err != nil {
		return term{}, "", err
	}
	if datatype, found := strings.CutPrefix(rest, "^^<"); found {
		datatype, rest, _ = strings.Cut(datatype, ">")
		return newLiteral(value, datatype, ""), strings.TrimSpace(rest), nil
	}
	if language, found := strings.CutPrefix(rest, "@"); found {
		language, rest, _ = strings.Cut(language, " ")
		return newLiteral(value, "", language), strings.TrimSpace(rest), nil
	}
	return newLiteral(value, "", ""), strings.TrimSpace(rest), nil
}

// closingQuote returns the end of the string at the beginning of text, or -1.
func closingQuote(text string) int {
	for i := 1; i < len(text); i++ {
		switch text[i] {
		case '\\':
			i++
		case '"':
			return i
		}
	}
	return -1
}

// unescape replaces the escapes of N-Triples, which are those of Go, except \'.
func unescape(text string) (string, error) {
	if !strings.Contains(text, `\`) {
		return text, nil
	}
	var b strings.Builder
	for text != "" {
		if strings.HasPrefix(text, `\'`) {
			b.WriteByte('\'')
			text = text[2:]
			continue
		}
		r, _, rest, err := strconv.UnquoteChar(text, '"')
		if err != nil {
			return "", fmt.Errorf("a bad escape: %w", err)
		}
		b.WriteRune(r)
		text = rest
	}
	return b.String(), nil
}

// isomorphic reports whether two lists of tuples are the same in any order, up to a one-to-one
// renaming of blank nodes.
func isomorphic(a, b []tuple) bool {
	return len(a) == len(b) && matched(a, b, map[string]uint64{}, map[string]uint64{})
}

// matched colours the blank nodes of both lists by the tuples that contain them. If the colours
// leave a choice, it tries each possibility.
func matched(a, b []tuple, fixedA, fixedB map[string]uint64) bool {
	coloursA, coloursB := colour(a, fixedA), colour(b, fixedB)
	if !slices.Equal(render(a, coloursA), render(b, coloursB)) {
		return false
	}
	ofA, ofB := byColour(coloursA), byColour(coloursB)
	for _, c := range slices.Sorted(maps.Keys(ofA)) {
		if len(ofA[c]) != len(ofB[c]) {
			return false
		}
		if len(ofA[c]) == 1 {
			continue
		}
		chosen := uint64(len(fixedA) + 1)
		withA := maps.Clone(fixedA)
		withA[ofA[c][0]] = chosen
		for _, name := range ofB[c] {
			withB := maps.Clone(fixedB)
			withB[name] = chosen
			if matched(a, b, withA, withB) {
				return true
			}
		}
		return false
	}
	return true
}

// colour assigns numbers to blank nodes that depend only on the tuples around them.
func colour(tuples []tuple, fixed map[string]uint64) map[string]uint64 {
	colours := map[string]uint64{}
	for _, row := range tuples {
		for _, t := range row {
			if t.kind == blank {
				colours[t.value] = fixed[t.value]
			}
		}
	}
	for range len(colours) + 1 {
		before := len(byColour(colours))
		next := maps.Clone(colours)
		for _, row := range tuples {
			for place, t := range row {
				if t.kind == blank {
					next[t.value] += digest(strconv.Itoa(place), renderRow(row, colours, place))
				}
			}
		}
		for name := range next {
			next[name] = digest(strconv.FormatUint(next[name], 16), strconv.FormatUint(fixed[name], 16))
		}
		colours = next
		if len(byColour(colours)) == before && before == len(colours) {
			break
		}
	}
	return colours
}

func byColour(colours map[string]uint64) map[uint64][]string {
	names := map[uint64][]string{}
	for name, c := range colours {
		names[c] = append(names[c], name)
	}
	return names
}

func digest(parts ...string) uint64 {
	h := fnv.New64a()
	for _, part := range parts {
		_, _ = h.Write([]byte(part))
		_, _ = h.Write([]byte{0})
	}
	return h.Sum64()
}

// render returns the rows as sorted strings, with colours for blank nodes.
func render(rows []tuple, colours map[string]uint64) []string {
	texts := make([]string, len(rows))
	for i, row := range rows {
		texts[i] = renderRow(row, colours, -1)
	}
	slices.Sort(texts)
	return texts
}

// renderRow returns a row as a string. The blank node at index self is "self".
func renderRow(row tuple, colours map[string]uint64, self int) string {
	parts := make([]string, len(row))
	for i, t := range row {
		switch {
		case t.kind != blank:
			parts[i] = t.String()
		case self >= 0 && t == row[self]:
			parts[i] = "self"
		default:
			parts[i] = strconv.FormatUint(colours[t.value], 16)
		}
	}
	return strings.Join(parts, " ")
}

func TestIsomorphic(t *testing.T) {
	t.Parallel()
	parse := func(text string) []tuple {
		var rows []tuple
		for line := range strings.SplitSeq(text, ";") {
			var row tuple
			for word := range strings.FieldsSeq(line) {
				if name, found := strings.CutPrefix(word, "_"); found {
					row = append(row, term{kind: blank, value: name})
				} else {
					row = append(row, term{kind: iri, value: word})
				}
			}
			rows = append(rows, row)
		}
		return rows
	}

	const triangles = "_a p _b; _b p _c; _c p _a; _d p _e; _e p _f; _f p _d"
	for _, c := range []struct {
		a, b string
		same bool
	}{
		{"x p y", "x p y", true},
		{"x p y", "x p z", false},
		{"x p y; x p y", "x p y", false},
		{"_a p _b; _b p _c", "_1 p _2; _3 p _1", true},
		{"_a p _b; _b p _a", "_1 p _1; _2 p _2", false},
		{triangles, "_a p _b; _b p _c; _c p _d; _d p _e; _e p _f; _f p _a", false},
		{triangles, "_f p _a; _a p _c; _c p _f; _b p _e; _e p _d; _d p _b", true},
		{"_a p x; _b p x; _a q _b", "_b p x; _a p x; _b q _a", true},
		{"_a p x; _b p x", "_a p x; _a p x", false},
	} {
		t.Run(fmt.Sprintf("%.60s", c.a), func(t *testing.T) {
			if got := isomorphic(parse(c.a), parse(c.b)); got != c.same {
				t.Errorf("isomorphic(%q, %q) = %v", c.a, c.b, got)
			}
		})
	}
}
