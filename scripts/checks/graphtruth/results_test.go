package graphtruth

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// answer is the answer to a SPARQL query: rows, a truth value, or facts.
type answer struct {
	variables []string
	rows      []map[string]term
	ordered   bool
	truth     *bool
	facts     []triple
	isGraph   bool
}

// tuples returns the rows, each with the terms of the variables in this order.
func (a answer) tuples(variables []string) []tuple {
	rows := make([]tuple, len(a.rows))
	for i, row := range a.rows {
		for _, name := range variables {
			rows[i] = append(rows[i], row[name])
		}
	}
	return rows
}

// differs describes how an answer differs from the expected one, or returns an empty string. With
// lax, a row may occur fewer times than expected.
func (a answer) differs(want answer, lax bool) string {
	switch {
	case (a.truth != nil) != (want.truth != nil), a.isGraph != want.isGraph:
		return "another kind of result"
	case want.truth != nil:
		if *a.truth != *want.truth {
			return fmt.Sprintf("%v instead of %v", *a.truth, *want.truth)
		}
		return ""
	case want.isGraph:
		if !isomorphic(factRows(a.facts), factRows(want.facts)) {
			return fmt.Sprintf("another graph: %d facts, want %d", len(a.facts), len(want.facts))
		}
		return ""
	}

	variables := slices.Clone(want.variables)
	slices.Sort(variables)
	if got := slices.Sorted(slices.Values(a.variables)); !slices.Equal(got, variables) {
		return fmt.Sprintf("variables %v instead of %v", got, variables)
	}
	rows, wanted := a.tuples(variables), want.tuples(variables)
	if want.ordered {
		number(rows)
		number(wanted)
	}
	if lax {
		rows, wanted = distinct(rows), distinct(wanted)
	}
	if !isomorphic(rows, wanted) && !isomorphic(canonical(rows), canonical(wanted)) {
		return describeRows(rows, wanted)
	}
	return ""
}

// canonical returns rows with numbers in a canonical form, so that 2.0 equals 2.00. It preserves
// types.
func canonical(rows []tuple) []tuple {
	forms := make([]tuple, len(rows))
	for i, row := range rows {
		for _, t := range row {
			switch strings.TrimPrefix(t.datatype, xsdNS) {
			case "integer", "decimal", "double", "float":
				if number, err := strconv.ParseFloat(t.value, 64); err == nil {
					t.value = strconv.FormatFloat(number, 'g', 15, 64)
				}
			}
			forms[i] = append(forms[i], t)
		}
	}
	return forms
}

func factRows(facts []triple) []tuple {
	rows := make([]tuple, len(facts))
	for i, fact := range facts {
		rows[i] = fact[:]
	}
	return distinct(rows)
}

// number adds an index to each row.
func number(rows []tuple) {
	for i := range rows {
		rows[i] = append(rows[i], term{kind: literal, value: strconv.Itoa(i)})
	}
}

func distinct(rows []tuple) []tuple {
	seen := map[string]bool{}
	return slices.DeleteFunc(slices.Clone(rows), func(row tuple) bool {
		key := fmt.Sprint(row)
		known := seen[key]
		seen[key] = true
		return known
	})
}

// describeRows describes a surplus row and a missing row.
func describeRows(rows, wanted []tuple) string {
	if len(rows) != len(wanted) {
		return fmt.Sprintf("%d rows instead of %d", len(rows), len(wanted))
	}
	got, want := render(rows, nil), render(wanted, nil)
	for i := range got {
		if got[i] != want[i] {
			return fmt.Sprintf("a row %s instead of %s", got[i], want[i])
		}
	}
	return "blank nodes that differ"
}

type xmlTerm struct {
	URI     *string `xml:"uri"`
	Blank   *string `xml:"bnode"`
	Literal *struct {
		Text     string `xml:",chardata"`
		Datatype string `xml:"datatype,attr"`
		Language string `xml:"http://www.w3.org/XML/1998/namespace lang,attr"`
	} `xml:"literal"`
}

// parseXML parses the SPARQL Query Results XML Format.
func parseXML(text []byte) (answer, error) {
	var document struct {
		Variables []struct {
			Name string `xml:"name,attr"`
		} `xml:"head>variable"`
		Boolean *bool `xml:"boolean"`
		Results []struct {
			Bindings []struct {
				Name string `xml:"name,attr"`
				xmlTerm
			} `xml:"binding"`
		} `xml:"results>result"`
	}
	decoder := xml.NewDecoder(bytes.NewReader(text))
	decoder.Strict = false
	if err := decoder.Decode(&document); err != nil {
		return answer{}, err
	}

	result := answer{truth: document.Boolean}
	for _, variable := range document.Variables {
		result.variables = append(result.variables, variable.Name)
	}
	for _, solution := range document.Results {
		row := map[string]term{}
		for _, b := range solution.Bindings {
			switch {
			case b.URI != nil:
				row[b.Name] = term{kind: iri, value: *b.URI}
			case b.Blank != nil:
				row[b.Name] = term{kind: blank, value: *b.Blank}
			case b.Literal != nil:
				row[b.Name] = newLiteral(b.Literal.Text, b.Literal.Datatype, b.Literal.Language)
			}
		}
		result.rows = append(result.rows, row)
	}
	return result, nil
}

// parseJSON parses the SPARQL 1.1 Query Results JSON Format.
func parseJSON(text []byte) (answer, error) {
	var document struct {
		Head struct {
			Vars []string `json:"vars"`
		} `json:"head"`
		Boolean *bool `json:"boolean"`
		Results struct {
			Bindings []map[string]struct {
				Type     string `json:"type"`
				Value    string `json:"value"`
				Datatype string `json:"datatype"`
				Language string `json:"xml:lang"`
			} `json:"bindings"`
		} `json:"results"`
	}
	if err := json.Unmarshal(text, &document); err != nil {
		return answer{}, err
	}

	result := answer{variables: document.Head.Vars, truth: document.Boolean}
	for _, solution := range document.Results.Bindings {
		row := map[string]term{}
		for name, b := range solution {
			switch b.Type {
			case "uri":
				row[name] = term{kind: iri, value: b.Value}
			case "bnode":
				row[name] = term{kind: blank, value: b.Value}
			default:
				row[name] = newLiteral(b.Value, b.Datatype, b.Language)
			}
		}
		result.rows = append(result.rows, row)
	}
	return result, nil
}

// parseTSV parses the SPARQL 1.1 TSV format, in which terms are written as in Turtle.
func parseTSV(text []byte) (answer, error) {
	lines := strings.Split(strings.TrimSuffix(strings.ReplaceAll(string(text), "\r\n", "\n"), "\n"), "\n")
	var result answer
	for name := range strings.SplitSeq(lines[0], "\t") {
		result.variables = append(result.variables, strings.TrimPrefix(name, "?"))
	}
	for _, line := range lines[1:] {
		row := map[string]term{}
		fields := strings.Split(line, "\t")
		if len(fields) != len(result.variables) {
			return answer{}, fmt.Errorf("%d fields in %q", len(fields), line)
		}
		for i, field := range fields {
			t, err := parseShortTerm(field)
			if err != nil {
				return answer{}, err
			}
			if t.kind != unbound {
				row[result.variables[i]] = t
			}
		}
		result.rows = append(result.rows, row)
	}
	return result, nil
}

// parseShortTerm parses a term of N-Triples or a number or truth value of Turtle.
func parseShortTerm(text string) (term, error) {
	switch {
	case text == "":
		return term{}, nil
	case strings.ContainsAny(text[:1], `<"_`):
		t, rest, err := parseTerm(text)
		if err == nil && rest != "" {
			err = fmt.Errorf("%q follows a term", rest)
		}
		return t, err
	case text == "true", text == "false":
		return newLiteral(text, xsdNS+"boolean", ""), nil
	case strings.ContainsAny(text, "eE"):
		return newLiteral(text, xsdNS+"double", ""), nil
	case strings.Contains(text, "."):
		return newLiteral(text, xsdNS+"decimal", ""), nil
	}
	return newLiteral(text, xsdNS+"integer", ""), nil
}

// parseCSV parses the SPARQL 1.1 CSV format. It does not distinguish kinds of terms, so everything
// except blank nodes is a string.
func parseCSV(text []byte) (answer, error) {
	records, err := csv.NewReader(bytes.NewReader(text)).ReadAll()
	if err != nil {
		return answer{}, err
	}
	if len(records) == 0 {
		return answer{}, errors.New("no header")
	}
	result := answer{variables: records[0]}
	for _, record := range records[1:] {
		row := map[string]term{}
		for i, field := range record {
			if name, found := strings.CutPrefix(field, "_:"); found {
				row[result.variables[i]] = term{kind: blank, value: name}
			} else if field != "" {
				row[result.variables[i]] = newLiteral(field, "", "")
			}
		}
		result.rows = append(result.rows, row)
	}
	return result, nil
}

// readResultSet reads an answer written as facts, in the vocabulary of the tests.
func readResultSet(facts []triple) answer {
	const ns = "http://www.w3.org/2001/sw/DataAccess/tests/result-set#"
	d := newDescription(facts)
	sets := d.instances(term{kind: iri, value: ns + "ResultSet"})
	if len(sets) == 0 {
		return answer{facts: facts, isGraph: true}
	}

	var result answer
	if truth, ok := d.one(sets[0], ns+"boolean"); ok {
		value := truth.value == "true" || truth.value == "1"
		result.truth = &value
		return result
	}
	for _, name := range d.all(sets[0], ns+"resultVariable") {
		result.variables = append(result.variables, name.value)
	}
	solutions := d.all(sets[0], ns+"solution")
	index := map[term]int{}
	for _, solution := range solutions {
		if at, ok := d.one(solution, ns+"index"); ok {
			result.ordered = true
			index[solution], _ = strconv.Atoi(at.value)
		}
	}
	slices.SortStableFunc(solutions, func(a, b term) int { return index[a] - index[b] })

	for _, solution := range solutions {
		row := map[string]term{}
		for _, binding := range d.all(solution, ns+"binding") {
			name, _ := d.one(binding, ns+"variable")
			row[name.value], _ = d.one(binding, ns+"value")
		}
		result.rows = append(result.rows, row)
	}
	return result
}

// description finds facts by subject and property.
type description struct {
	objects map[[2]string][]term
	facts   []triple
}

func newDescription(facts []triple) description {
	d := description{map[[2]string][]term{}, facts}
	for _, fact := range facts {
		key := [2]string{fact[0].String(), fact[1].value}
		d.objects[key] = append(d.objects[key], fact[2])
	}
	return d
}

func (d description) all(subject term, property string) []term {
	return d.objects[[2]string{subject.String(), property}]
}

func (d description) one(subject term, property string) (term, bool) {
	if all := d.all(subject, property); len(all) > 0 {
		return all[0], true
	}
	return term{}, false
}

func (d description) instances(class term) []term {
	var found []term
	for _, fact := range d.facts {
		if fact[1].value == rdfNS+"type" && fact[2] == class {
			found = append(found, fact[0])
		}
	}
	return found
}

// list returns the members of a list.
func (d description) list(head term) []term {
	var members []term
	for range len(d.facts) {
		first, ok := d.one(head, rdfNS+"first")
		if !ok {
			break
		}
		members = append(members, first)
		head, _ = d.one(head, rdfNS+"rest")
	}
	return members
}
