package graphtruth

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const (
	owlNS     = "http://www.w3.org/2002/07/owl#"
	owlTestNS = "http://www.w3.org/2007/OWL/testOntology#"
	rl        = "OWL 2 RL"
)

var singleQuoted = regexp.MustCompile(`(<!ENTITY \w+ )'([^']*)'`)

// owlResults runs the approved tests of the profile RL with ontologies in RDF. A case may consist
// of several tests: of entailments, of non-entailments, and of contradictions.
func owlResults(t *testing.T) []result {
	t.Helper()
	// The engine requires the entities of a document in double quotes.
	catalogue := singleQuoted.ReplaceAll(readSuite(t, "owl")["all.rdf"], []byte(`$1"$2"`))
	facts, err := parseFacts(t, catalogue, "rdfxml", filesNS+"all.rdf")
	if err != nil {
		t.Fatal(err)
	}
	d := newDescription(facts)
	isOf := func(test term, property, value string) bool {
		return slices.Contains(d.all(test, owlTestNS+property), term{kind: iri, value: owlTestNS + value})
	}

	var results []result
	for _, test := range d.instances(term{kind: iri, value: owlTestNS + "TestCase"}) {
		premise, ok := d.one(test, owlTestNS+"rdfXmlPremiseOntology")
		if !ok || !isOf(test, "profile", "RL") || !isOf(test, "semantics", "RDF-BASED") {
			continue
		}
		name, _ := d.one(test, owlTestNS+"identifier")
		o := owlTest{premise: premise.value}
		for _, imported := range d.all(test, owlTestNS+"importedOntology") {
			if text, ok := d.one(imported, owlTestNS+"rdfXmlInputOntology"); ok {
				o.imported = append(o.imported, text.value)
			}
		}
		checks := o.checks(t, d, test)
		for _, kind := range slices.Sorted(maps.Keys(checks)) {
			if slices.Contains(d.all(test, rdfNS+"type"), term{kind: iri, value: owlTestNS + kind + "Test"}) {
				results = append(results, result{
					rl + ", " + owlKinds[kind], name.value, checks[kind](),
				})
			}
		}
	}
	return results
}

// owlKinds maps the suite's terms to the lines of the tally.
var owlKinds = map[string]string{
	"PositiveEntailment": "what follows",
	"NegativeEntailment": "what does not follow",
	"Consistency":        "no contradiction",
	"Inconsistency":      "contradictions",
}

// owlTest is a case: an ontology with its imports.
type owlTest struct {
	premise  string
	imported []string
}

// open returns a graph that reasons over the ontology.
func (o owlTest) open(t *testing.T) (*store, error) {
	t.Helper()
	store := newStore(t)
	store.reason = true
	for i, text := range append([]string{o.premise}, o.imported...) {
		if err := store.load([]byte(text), "rdfxml", fmt.Sprintf("%spremise%d", filesNS, i)); err != nil {
			return nil, err
		}
	}
	return store, nil
}

// checks returns the check for each kind of test.
func (o owlTest) checks(t *testing.T, d description, test term) map[string]func() string {
	t.Helper()
	follows := func(property string, want bool) func() string {
		return func() string {
			conclusion, _ := d.one(test, owlTestNS+property)
			got, err := o.entails(t, conclusion.value)
			switch {
			case err != nil:
				return err.Error()
			case got != want && want:
				return "the conclusion does not follow"
			case got != want:
				return "what should not follow does"
			}
			return ""
		}
	}
	contradicts := func(want bool) func() string {
		return func() string {
			store, err := o.open(t)
			if err != nil {
				return err.Error()
			}
			found, err := store.contradictions()
			switch {
			case err != nil:
				return err.Error()
			case want && len(found) == 0:
				return "the contradiction is not found"
			case !want && len(found) > 0:
				return "a contradiction is found: " + found[0]
			}
			return ""
		}
	}
	return map[string]func() string{
		"PositiveEntailment": follows("rdfXmlConclusionOntology", true),
		"NegativeEntailment": follows("rdfXmlNonConclusionOntology", false),
		"Consistency":        contradicts(false),
		"Inconsistency":      contradicts(true),
	}
}

// entails reports whether all facts of a conclusion follow. Blank nodes match any node. The line
// that declares a document to be an ontology is not a fact about the world.
func (o owlTest) entails(t *testing.T, conclusion string) (bool, error) {
	t.Helper()
	facts, err := parseFacts(t, []byte(conclusion), "rdfxml", filesNS+"conclusion")
	if err != nil {
		return false, err
	}
	var patterns strings.Builder
	variables := map[string]string{}
	for _, fact := range spreadDifferences(facts) {
		if fact[2].value == owlNS+"Ontology" {
			continue
		}
		for _, part := range fact {
			if part.kind != blank {
				patterns.WriteString(writeTerm(part, 0) + " ")
				continue
			}
			if variables[part.value] == "" {
				variables[part.value] = fmt.Sprintf("?v%d", len(variables))
			}
			patterns.WriteString(variables[part.value] + " ")
		}
		patterns.WriteString(".\n")
	}

	store, err := o.open(t)
	if err != nil {
		return false, err
	}
	text, err := store.sparql("ASK {\n"+patterns.String()+"}", "", "json")
	if err != nil {
		return false, err
	}
	got, err := parseJSON(text)
	if err != nil || got.truth == nil {
		return false, fmt.Errorf("no truth value: %w", err)
	}
	return *got.truth, nil
}

// spreadDifferences replaces each list of different individuals with the pairs that it stands for.
func spreadDifferences(facts []triple) []triple {
	d := newDescription(facts)
	var pairs []triple
	var spread []term // the nodes of the lists
	for _, all := range d.instances(term{kind: iri, value: owlNS + "AllDifferent"}) {
		head, ok := d.one(all, owlNS+"members")
		if !ok {
			continue
		}
		members := d.list(head)
		for i, a := range members {
			for _, b := range members[i+1:] {
				pairs = append(pairs, triple{a, term{kind: iri, value: owlNS + "differentFrom"}, b})
			}
		}

		spread = append(spread, all)
		for range members {
			spread = append(spread, head)
			head, _ = d.one(head, rdfNS+"rest")
		}
	}
	others := slices.DeleteFunc(slices.Clone(facts), func(f triple) bool { return slices.Contains(spread, f[0]) })
	return append(others, pairs...)
}
