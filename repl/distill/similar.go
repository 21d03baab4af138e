package distill

import (
	"cmp"
	"context"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/rlmhq/rlm/internal/data/bm25"
)

// Bounds and weights of the comparison of errors.
const (
	mostCompared = 1_000 // different errors that are compared with one another
	sameCause    = 0.16  // least average similarity of errors with one cause
	kindWeight   = 2     // weight of a common kind, relative to a rare word
	rareWeight   = 0.25  // weight of a word that few other errors contain: at most one in rareShare
	rareShare    = 200
	typeWeight   = 1   // weight of the error's type
	partWeight   = 0.4 // weight of the component
)

// signature is a group of failures with the same words, type and component.
type signature struct {
	words   []string // sorted
	members []int
	vector  map[string]float64 // normalised to length 1
}

// signaturesOf returns the signatures of failures, the most frequent first.
func signaturesOf(failures []Failure) []*signature {
	known := map[string]*signature{}
	var all []*signature
	for i, f := range failures {
		words := wordsOf(f.Type + " " + f.Error)
		key := strings.Join(words, " ") + "\x00" + f.Type + "\x00" + f.Component
		s := known[key]
		if s == nil {
			s = &signature{words: words}
			known[key] = s
			all = append(all, s)
		}
		s.members = append(s.members, i)
	}

	weigh(all, failures)
	slices.SortStableFunc(all, func(a, b *signature) int { return len(b.members) - len(a.members) })
	return all
}

// weigh computes the vectors of signatures: the rarer a word, the greater its weight.
func weigh(all []*signature, failures []Failure) {
	count := map[string]float64{}
	terms := make([]map[string]float64, len(all))
	for i, s := range all {
		terms[i] = termsOf(s.words, &failures[s.members[0]])
		for term := range terms[i] {
			count[term]++
		}
	}

	rarest := math.Log(1 + float64(len(all)))
	for i, s := range all {
		s.vector = terms[i]
		sum := 0.0
		for _, term := range slices.Sorted(maps.Keys(s.vector)) {
			if s.vector[term] > 0 { // a word
				s.vector[term] *= math.Log(1+float64(len(all))/count[term]) / rarest
				if count[term] <= max(1, float64(len(all))/rareShare) { // such as a name
					s.vector[term] *= rareWeight
				}
			} else {
				s.vector[term] = -s.vector[term]
			}
			sum += s.vector[term] * s.vector[term]
		}
		for term := range s.vector {
			s.vector[term] /= math.Sqrt(sum)
		}
	}
}

// termsOf returns the terms of a failure with their weights. Weights of words are positive and must
// still be multiplied by the word's rarity; other weights are negative.
func termsOf(words []string, f *Failure) map[string]float64 {
	terms := map[string]float64{}
	for _, word := range words {
		terms[bm25.Stem(word)] = 1
	}
	text := f.Type + " " + f.Error
	for kind, pattern := range commonKinds {
		if pattern.MatchString(text[:min(len(text), mostToRead)]) {
			terms["kind "+kind] = -kindWeight
		}
	}
	if f.Type != "" {
		terms["type "+f.Type] = -typeWeight
	}
	if f.Component != "" {
		terms["component "+f.Component] = -partWeight
	}
	return terms
}

// group is a cluster under construction.
type group struct {
	signatures []*signature
	size       int // failures
}

func (g *group) add(s *signature) {
	g.signatures = append(g.signatures, s)
	g.size += len(s.members)
}

// mean returns the unit vector of the sum of a group's vectors, each weighted by its number of
// failures.
func (g *group) mean() map[string]float64 {
	sum, length := map[string]float64{}, 0.0
	for _, s := range g.signatures {
		for term, weight := range s.vector {
			sum[term] += weight * float64(len(s.members))
		}
	}
	for _, term := range slices.Sorted(maps.Keys(sum)) {
		length += sum[term] * sum[term]
	}
	for term := range sum {
		sum[term] /= math.Sqrt(length)
	}
	return sum
}

// similarity returns the cosine of two vectors of length 1.
func similarity(a, b map[string]float64) float64 {
	if len(a) > len(b) {
		a, b = b, a
	}
	sum := 0.0
	for term, weight := range a {
		sum += weight * b[term]
	}
	return sum
}

// groupSimilar groups signatures by average linkage: two groups merge if their errors are
// similar on average. It returns the groups, the largest first.
func groupSimilar(ctx context.Context, all []*signature) ([]*group, error) {
	n := len(all)
	near := make([][]float32, n) // near[i][j], j < i, is the similarity of two groups
	groups := make([]*group, n)
	for i := range all {
		if err := context.Cause(ctx); err != nil {
			return nil, err
		}
		near[i] = make([]float32, i)
		for j := range i {
			near[i][j] = float32(similarity(all[i].vector, all[j].vector))
		}
		groups[i] = &group{}
		groups[i].add(all[i])
	}
	at := func(i, j int) *float32 {
		if i < j {
			i, j = j, i
		}
		return &near[i][j]
	}

	// A chain of nearest neighbours ends at two groups that are nearest to each other.
	var chain []int
	final := make([]bool, n)
	for start := 0; start < n; {
		if len(chain) == 0 {
			if groups[start] == nil || final[start] {
				start++
				continue
			}
			chain = append(chain, start)
		}
		tip := chain[len(chain)-1]
		best := -1
		for j := range n {
			if j != tip && groups[j] != nil && (best < 0 || *at(tip, j) > *at(tip, best)) {
				best = j
			}
		}
		if best < 0 || *at(tip, best) < sameCause {
			final[tip] = true
			chain = chain[:len(chain)-1]
			continue
		}
		if len(chain) < 2 || *at(tip, best) > *at(tip, chain[len(chain)-2]) {
			chain = append(chain, best)
			continue
		}

		other := chain[len(chain)-2]
		chain = chain[:len(chain)-2]
		a, b := float32(len(groups[tip].signatures)), float32(len(groups[other].signatures))
		for j := range n {
			if j != tip && j != other && groups[j] != nil {
				*at(tip, j) = (a**at(tip, j) + b**at(other, j)) / (a + b)
			}
		}
		for _, s := range groups[other].signatures {
			groups[tip].add(s)
		}
		groups[other] = nil
	}

	groups = slices.DeleteFunc(groups, func(g *group) bool { return g == nil })
	sortGroups(groups)
	return groups, nil
}

// sortGroups puts the largest group first; among equals, the group with the earliest failure.
func sortGroups(groups []*group) {
	first := func(g *group) int {
		least := math.MaxInt
		for _, s := range g.signatures {
			least = min(least, s.members[0])
		}
		return least
	}
	slices.SortFunc(groups, func(a, b *group) int {
		return cmp.Or(b.size-a.size, first(a)-first(b))
	})
}
