package reflexion

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/rlmhq/rlm/internal/data/bm25"
	"github.com/rlmhq/rlm/internal/text/quantity"
	"github.com/rlmhq/rlm/schema"
)

// critiqueSchema is the contract of a judge's reply. Further members, such as a verdict,
// are allowed and ignored.
const critiqueSchema = `{
	"type": "object",
	"required": ["issues", "confidence"],
	"properties": {
		"issues": {"type": "array", "maxItems": 50, "items": {
			"type": "object",
			"required": ["type", "description", "severity"],
			"properties": {
				"type": {"enum": ["missing", "unsupported", "incorrect"]},
				"description": {"type": "string", "minLength": 1, "maxLength": 4000},
				"severity": {"enum": ["minor", "major", "critical"]},
				"suggested_fix": {"type": "string", "maxLength": 4000}
			}
		}},
		"confidence": {"type": "number", "minimum": 0, "maximum": 1}
	}
}`

var critiqueContract = sync.OnceValues(func() (*schema.Contract, error) {
	return schema.Compile(json.RawMessage(critiqueSchema))
})

// decodeCritiques merges the values of a judge's reply that meet the contract. Normally there is
// one. If the judge also quotes a critique from a draft or a file, the issues of both are kept, so
// that a quotation cannot hide the judge's findings.
func decodeCritiques(values []json.RawMessage) (Critique, error) {
	all := make([]Critique, len(values))
	for i, value := range values {
		if err := json.Unmarshal(value, &all[i]); err != nil {
			return Critique{}, fmt.Errorf("cannot read a critique: %w", err)
		}
		all[i] = Critique{Issues: all[i].Issues, Confidence: all[i].Confidence}
	}
	return mergeCritiques(all, 0), nil
}

// mergeCritiques merges the critiques of several judges and decides whether the draft
// passes. The order of the critiques does not matter.
//
// It keeps the issues of all judges, the severest first and at most fifty: even an issue that only
// one judge found may be real. Issues of two judges are the same if they share a type and the
// Jaccard index of their words is at least 0.7; the severer one is kept, with the first suggested
// fix. The confidence is the lowest of the confidences. The draft passes if every critique is
// readable and no issue is above minor; unreadable counts the critiques that cannot be read.
func mergeCritiques(critiques []Critique, unreadable int) Critique {
	critiques = slices.SortedFunc(slices.Values(critiques), func(a, b Critique) int {
		return strings.Compare(fmt.Sprintf("%+v", a), fmt.Sprintf("%+v", b))
	})
	merged := Critique{Issues: []Issue{}, Unreadable: unreadable}
	var words []map[string]bool // the words of each issue
	for i, c := range critiques {
		if i == 0 || c.Confidence < merged.Confidence {
			merged.Confidence = c.Confidence
		}
		others := len(merged.Issues)
		for _, issue := range c.Issues {
			own := wordsOf(issue.Description)
			if at := findSame(merged.Issues[:others], words, issue.Type, own); at >= 0 {
				merged.Issues[at] = joinIssues(merged.Issues[at], issue)
				continue
			}
			merged.Issues, words = append(merged.Issues, issue), append(words, own)
		}
	}

	slices.SortStableFunc(
		merged.Issues, func(a, b Issue) int { return rank(b.Severity) - rank(a.Severity) },
	)
	merged.Issues = merged.Issues[:min(len(merged.Issues), mostIssues)]
	merged.Passes = unreadable == 0 && len(critiques) > 0 && !merged.isBlocked()

	return merged
}

// mostIssues bounds the issues of a critique, as its contract does. There may be several judges,
// but all issues must fit in one prompt.
const mostIssues = 50

// findSame returns the index of the same issue, or -1 if it is new.
func findSame(issues []Issue, words []map[string]bool, kind string, own map[string]bool) int {
	for i := range issues {
		if issues[i].Type == kind && areAlike(words[i], own) {
			return i
		}
	}
	return -1
}

// joinIssues merges two descriptions of the same issue.
func joinIssues(a, b Issue) Issue {
	if a.SuggestedFix == "" {
		a.SuggestedFix = b.SuggestedFix
	}
	if rank(b.Severity) > rank(a.Severity) {
		b.SuggestedFix = a.SuggestedFix
		return b
	}
	return a
}

func wordsOf(text string) map[string]bool {
	words := map[string]bool{}
	for word := range bm25.Terms(text) {
		words[word] = true
	}
	return words
}

// sameIssue is the minimum Jaccard index of two descriptions of the same issue.
const sameIssue = 0.7

func areAlike(a, b map[string]bool) bool {
	both := 0
	for word := range a {
		if b[word] {
			both++
		}
	}

	either := len(a) + len(b) - both
	return either > 0 && float64(both) >= sameIssue*float64(either)
}

// isBlocked reports whether an issue keeps the draft from passing.
func (c *Critique) isBlocked() bool {
	return slices.ContainsFunc(c.Issues, func(i Issue) bool { return rank(i.Severity) > 0 })
}

// String returns the verdict as a sentence.
func (c *Critique) String() string {
	verdict := "does not pass"
	if c.Passes {
		verdict = "passes"
	}
	var found []string
	for _, severity := range []string{severityCritical, severityMajor, severityMinor} {
		n := 0
		for _, issue := range c.Issues {
			if rank(issue.Severity) == rank(severity) {
				n++
			}
		}

		if n > 0 {
			found = append(found, quantity.Plural(n, severity+" issue", ""))
		}
	}

	if c.Unreadable > 0 {
		found = append(found, quantity.Plural(c.Unreadable, "critique", "")+" that cannot be read")
	}
	if len(found) == 0 {
		found = []string{"no issue"}
	}

	return verdict + ": " + strings.Join(found, ", ")
}
