package graphtruth

import (
	"cmp"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const (
	manifestNS = "http://www.w3.org/2001/sw/DataAccess/tests/test-manifest#"
	queryNS    = "http://www.w3.org/2001/sw/DataAccess/tests/test-query#"
	sparqlNS   = "http://www.w3.org/ns/sparql-service-description#"

	// filesNS is the apparent location of the suites' files.
	filesNS = "http://suite.test/"
)

// The lines of the tally for SPARQL.
const (
	sparql10   = "SPARQL 1.0 query"
	sparql11   = "SPARQL 1.1 query"
	formats11  = "SPARQL 1.1 results in JSON, CSV and TSV"
	entailment = "SPARQL 1.1 entailment: RDF, RDFS, OWL 2 RL"
)

// sparqlTest is an entry of a manifest.
type sparqlTest struct {
	suite, name string
	kind        string // the last part of its type
	query       string // the name of its file
	data        []string
	named       []string
	want        string // the name of the file with its result
	lax         bool   // a row may occur fewer times
	reason      bool   // the answer includes facts inferred from the data
}

// sparqlSuite runs the W3C's tests for queries.
type sparqlSuite struct {
	files map[string][]byte
}

func (s sparqlSuite) tests(t *testing.T) []sparqlTest {
	t.Helper()
	var tests []sparqlTest
	for _, dir := range []string{
		"aggregates", "bind", "bindings", "construct", "exists", "functions", "grouping", "negation",
		"project-expression", "property-path", "subquery", "syntax-query",
	} {
		tests = append(tests, s.manifest(t, "sparql11/"+dir, sparql11)...)
	}
	for _, dir := range []string{"csv-tsv-res", "json-res"} {
		tests = append(tests, s.manifest(t, "sparql11/"+dir, formats11)...)
	}
	tests = append(tests, s.manifest(t, "sparql11/entailment", entailment)...)

	var old []string
	for name := range s.files {
		if path.Base(name) == "manifest.ttl" && strings.HasPrefix(name, "dawg-data-r2/") {
			old = append(old, path.Dir(name))
		}
	}
	slices.Sort(old)
	for _, dir := range old {
		tests = append(tests, s.manifest(t, dir, sparql10)...)
	}
	return tests
}

// manifest reads the tests of a folder.
func (s sparqlSuite) manifest(t *testing.T, dir, suite string) []sparqlTest {
	t.Helper()
	facts, err := s.parse(t, dir+"/manifest.ttl")
	if err != nil {
		t.Fatal(err)
	}
	d := newDescription(facts)
	var tests []sparqlTest
	for _, manifest := range d.instances(term{kind: iri, value: manifestNS + "Manifest"}) {
		entries, _ := d.one(manifest, manifestNS+"entries")
		for _, entry := range d.list(entries) {
			if test, ok := readEntry(d, entry, suite); ok {
				test.name = strings.TrimPrefix(dir, "sparql11/") + "/" + test.name
				tests = append(tests, test)
			}
		}
	}
	if len(tests) == 0 {
		t.Fatalf("the manifest of %s has no tests", dir)
	}
	return tests
}

// readEntry reads a test. It returns false for a test that is not about a query, or that needs an
// entailment regime other than those of RDFS and OWL 2 RL.
func readEntry(d description, entry term, suite string) (sparqlTest, bool) {
	file := func(of term, property string) []string {
		var names []string
		for _, t := range d.all(of, property) {
			names = append(names, strings.TrimPrefix(t.value, filesNS))
		}
		return names
	}
	kind, _ := d.one(entry, rdfNS+"type")
	test := sparqlTest{suite: suite, name: path.Base(strings.ReplaceAll(entry.value, "#", "/"))}
	test.kind = strings.TrimPrefix(kind.value, manifestNS)
	action, _ := d.one(entry, manifestNS+"action")
	if action.kind == iri {
		test.query = strings.TrimPrefix(action.value, filesNS)
	} else {
		test.query = strings.Join(file(action, queryNS+"query"), "")
		test.data = file(action, queryNS+"data")
		test.named = file(action, queryNS+"graphData")
	}
	test.want = strings.Join(file(entry, manifestNS+"result"), "")
	cardinality, _ := d.one(entry, manifestNS+"resultCardinality")
	test.lax = cardinality.value == manifestNS+"LaxCardinality"

	if suite == entailment {
		test.reason = true
		return test, isRuleRegime(d, action)
	}
	return test, true
}

// isRuleRegime reports whether a test's answer is based on RDF, RDFS or OWL 2 RL.
func isRuleRegime(d description, action term) bool {
	names := func(property string) []string {
		values := d.all(action, property)
		if len(values) == 1 && values[0].kind == blank {
			values = d.list(values[0])
		}
		var names []string
		for _, value := range values {
			names = append(names, path.Base(value.value))
		}
		return names
	}
	regimes := names(sparqlNS + "entailmentRegime")
	if slices.Contains(regimes, "RDF") || slices.Contains(regimes, "RDFS") {
		return true
	}
	return slices.Contains(regimes, "OWL-RDF-Based") && slices.Contains(names(sparqlNS+"EntailmentProfile"), "RL")
}

// format returns the name of a file's format, given its extension.
func format(name string) string {
	switch path.Ext(name) {
	case ".rdf":
		return "rdfxml"
	case ".nt":
		return "ntriples"
	}
	return "turtle"
}

// parse returns the facts of a file.
func (s sparqlSuite) parse(t *testing.T, name string) ([]triple, error) {
	t.Helper()
	content, ok := s.files[name]
	if !ok {
		return nil, fmt.Errorf("the suite has no file %s", name)
	}
	return parseFacts(t, content, format(name), filesNS+name)
}

// run runs a test, and returns why it failed.
func (s sparqlSuite) run(t *testing.T, test sparqlTest) string {
	t.Helper()
	query, ok := s.files[test.query]
	if !ok {
		return "the suite has no file " + test.query
	}
	store := newStore(t)
	if strings.Contains(test.kind, "Syntax") {
		_, err := store.sparql(string(query), filesNS+test.query, "json")
		switch isBad := isSyntaxError(err); {
		case strings.HasPrefix(test.kind, "Negative") && !isBad:
			return fmt.Sprintf("it is taken, with the error %v", err)
		case strings.HasPrefix(test.kind, "Positive") && isBad:
			return err.Error()
		}
		return ""
	}

	if err := s.load(t, store, test, string(query)); err != nil {
		return err.Error()
	}
	want, err := s.wanted(t, test, string(query))
	if err != nil {
		return "the suite's result: " + err.Error()
	}
	got, err := s.ask(store, test, string(query), want.isGraph)
	if err != nil {
		return err.Error()
	}
	return got.differs(want, test.lax)
}

// from finds the graphs named by a query itself.
var from = regexp.MustCompile(`(?i)\bFROM\s+(?:NAMED\s+)?<([^>]*)>`)

// load adds a test's data to a store, with the facts of the default graph and of named graphs.
func (s sparqlSuite) load(t *testing.T, store *store, test sparqlTest, query string) error {
	t.Helper()
	store.reason = test.reason
	named := slices.Clone(test.named)
	for _, match := range from.FindAllStringSubmatch(query, -1) {
		name := path.Join(path.Dir(test.query), match[1])
		if !slices.Contains(named, name) {
			named = append(named, name)
		}
	}
	for _, name := range test.data {
		if err := store.load(s.files[name], format(name), filesNS+name); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	for i, name := range named {
		facts, err := s.parse(t, name)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		var lines strings.Builder
		for _, fact := range facts {
			for _, t := range fact {
				lines.WriteString(writeTerm(t, i) + " ")
			}
			fmt.Fprintf(&lines, "<%s> .\n", filesNS+name)
		}
		if err := store.load([]byte(lines.String()), "nquads", filesNS+name); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return nil
}

// writeTerm returns a term in N-Quads, with a file-specific name for a blank node.
func writeTerm(t term, file int) string {
	escape := strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`, "\r", `\r`)
	switch {
	case t.kind == iri:
		return "<" + t.value + ">"
	case t.kind == blank:
		return fmt.Sprintf("_:f%d%s", file, t.value)
	case t.language != "":
		return `"` + escape.Replace(t.value) + `"@` + t.language
	}
	return `"` + escape.Replace(t.value) + `"^^<` + cmp.Or(t.datatype, xsdString) + ">"
}

var orderBy = regexp.MustCompile(`(?i)\bORDER\s+BY\b`)

// wanted reads the expected result from the suite.
func (s sparqlSuite) wanted(t *testing.T, test sparqlTest, query string) (answer, error) {
	t.Helper()
	content, ok := s.files[test.want]
	if !ok {
		return answer{}, fmt.Errorf("no file %q", test.want)
	}
	var want answer
	var err error
	switch path.Ext(test.want) {
	case ".srx":
		want, err = parseXML(content)
		want.ordered = orderBy.MatchString(query)
	case ".srj":
		want, err = parseJSON(content)
	case ".csv":
		want, err = parseCSV(content)
	case ".tsv":
		want, err = parseTSV(content)
	default:
		var facts []triple
		if facts, err = s.parse(t, test.want); err == nil {
			want = readResultSet(facts)
		}
	}
	return want, err
}

// ask runs the query in the format of the expected result.
func (s sparqlSuite) ask(store *store, test sparqlTest, query string, graph bool) (answer, error) {
	form := "json"
	switch ext := path.Ext(test.want); ext {
	case ".csv", ".tsv":
		form = ext[1:]
	case ".srx":
		form = "xml"
	}
	text, err := store.sparql(query, filesNS+test.query, form)
	if err != nil {
		return answer{}, err
	}
	switch {
	case graph:
		facts, err := parseNTriples(string(text))
		return answer{facts: facts, isGraph: true}, err
	case form == "csv":
		return parseCSV(text)
	case form == "tsv":
		return parseTSV(text)
	case form == "xml":
		return parseXML(text)
	}
	return parseJSON(text)
}

// sparqlResults runs the suite.
func sparqlResults(t *testing.T) []result {
	t.Helper()
	s := sparqlSuite{readSuite(t, "sparql")}
	var results []result
	for _, test := range s.tests(t) {
		results = append(results, result{test.suite, test.name, s.run(t, test)})
	}
	return results
}
