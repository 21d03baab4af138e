package distill

import (
	"cmp"
	"context"
	"maps"
	"math"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"github.com/rlmhq/rlm/internal/bm25"
	"github.com/rlmhq/rlm/internal/texts"
)

// Bounds of clustering by words.
const (
	mostTerms    = 40    // different words of an error to compare
	readError    = 2_000 // bytes of an error to search for words
	sameCause    = 0.5   // least weighted Jaccard index of two errors with one cause
	shownWords   = 5
	shownName    = 60  // characters
	shownSummary = 300 // characters
)

// group is a cluster in the making.
type group struct {
	words   []string // of its first error, sorted
	members []int
}

// clusterByKeywords clusters failures by the words of their errors: each goes to the
// group whose first error is most similar, by the Jaccard index weighted with the rarity
// of the words, or begins a group. Failures beyond the limit of groups form the last
// group.
func clusterByKeywords(ctx context.Context, failures []Failure, most int) ([]FailureCluster, error) {
	words := make([][]string, len(failures))
	count := map[string]int{}
	for i, f := range failures {
		words[i] = wordsOf(f.Error)
		for _, word := range words[i] {
			count[word]++
		}
	}

	weight := func(word string) float64 {
		return math.Log(1 + float64(len(failures))/float64(count[word]))
	}
	var groups []*group
	known := map[string]*group{} // by their exact words
	rest := &group{}
	for i := range failures {
		if err := context.Cause(ctx); err != nil {
			return nil, err
		}
		key := strings.Join(words[i], " ")
		g := known[key]
		if g == nil {
			g = findNearest(groups, words[i], weight)
		}

		switch {
		case g != nil:
		case len(groups) < most-1:
			g = &group{words: words[i]}
			groups = append(groups, g)
		default:
			g = rest
		}
		known[key] = g
		g.members = append(g.members, i)
	}

	clusters := make([]FailureCluster, 0, len(groups)+1)
	for _, g := range groups {
		clusters = append(clusters, describeCluster(failures, words, g.members, weight))
	}
	if len(rest.members) > 0 {
		c := describeCluster(failures, words, rest.members, weight)
		c.Name, c.Summary = "other", "Failures that are like none of the others."
		clusters = append(clusters, c)
	}

	return clusters, nil
}

// wordsOf returns the different words of an error, sorted. It skips words with digits:
// they differ between failures of the same kind.
func wordsOf(text string) []string {
	seen := map[string]bool{}
	for term := range bm25.Terms(text[:min(len(text), readError)]) {
		if len(term) > 1 && !strings.ContainsFunc(term, unicode.IsDigit) {
			if seen[term] = true; len(seen) == mostTerms {
				break
			}
		}
	}
	return slices.Sorted(maps.Keys(seen))
}

// findNearest returns the group most similar to some words, nil if none is similar.
func findNearest(groups []*group, words []string, weight func(string) float64) *group {
	var best *group
	most := sameCause
	for _, g := range groups {
		if like := likeness(g.words, words, weight); like >= most && (best == nil || like > most) {
			best, most = g, like
		}
	}
	return best
}

// likeness returns the weighted Jaccard index of two sorted lists.
func likeness(a, b []string, weight func(string) float64) float64 {
	both, either := 0.0, 0.0
	for len(a) > 0 || len(b) > 0 {
		switch {
		case len(b) == 0 || len(a) > 0 && a[0] < b[0]:
			either, a = either+weight(a[0]), a[1:]
		case len(a) == 0 || b[0] < a[0]:
			either, b = either+weight(b[0]), b[1:]
		default:
			w := weight(a[0])
			both, either, a, b = both+w, either+w, a[1:], b[1:]
		}
	}
	if either == 0 {
		return 1 // both have no word at all
	}
	return both / either
}

// digits differ between failures of the same kind.
var digits = regexp.MustCompile(`[0-9]+`)

// describeCluster makes a cluster of its members. Its name is its first error without
// numbers, its keywords those of its words that are frequent in it and rare elsewhere.
func describeCluster(
	failures []Failure, words [][]string, members []int, weight func(string) float64,
) FailureCluster {
	count := map[string]float64{}
	for _, i := range members {
		for _, word := range words[i] {
			count[word]++
		}
	}

	keywords := slices.SortedFunc(maps.Keys(count), func(a, b string) int {
		return cmp.Or(
			cmp.Compare(count[b]*weight(b), count[a]*weight(a)), cmp.Compare(len(b), len(a)),
			strings.Compare(a, b),
		)
	})

	first := failures[members[0]].Error
	first = strings.ToValidUTF8(
		strings.Join(strings.Fields(first[:min(len(first), readError)]), " "), "\uFFFD",
	)
	name := []rune(digits.ReplaceAllString(first, "N"))
	if len(name) > shownName {
		name = append(name[:shownName-1], '…')
	}

	return FailureCluster{
		Name: string(name), Keywords: keywords[:min(shownWords, len(keywords))], members: members,
		Summary: texts.Truncate(first, shownSummary),
	}
}
