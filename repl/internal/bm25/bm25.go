package bm25

import (
	"math"
	"slices"
	"sort"
)

// The score is BM25 as Robertson and Zaragoza give it in "The Probabilistic
// Relevance Framework: BM25 and Beyond" (Foundations and Trends in Information
// Retrieval 3(4), 2009), with its customary constants, and with the weight of a
// term as Lucene has it, ln(1 + (N - n + 0.5) / (n + 0.5)), which is never negative.
const (
	k1 = 1.2
	b  = 0.75
)

// maxQuery bounds the different terms of a query; further ones are not looked at.
const maxQuery = 64

// posting says how often a term stands in a passage.
type posting struct{ passage, count int32 }

// index is an inverted index of passages.
type index struct {
	postings map[string][]posting
	lengths  []int32 // of each passage, in terms
	total    int64
}

// add takes in the passage with the next number.
func (x *index) add(number int, text string) {
	length := int32(0)
	for term := range Terms(text) {
		length++
		list := x.postings[term]
		if n := len(list); n > 0 && int(list[n-1].passage) == number {
			list[n-1].count++
			continue
		}

		x.postings[term] = append( //nolint:gosec // Bounds.Bytes keeps it far below
			list, posting{int32(number), 1},
		)
	}

	x.lengths = append(x.lengths, length)
	x.total += int64(length)
}

// weight is how telling a term is that stands in n passages. One that stands nowhere
// counts as if it stood once: of a small library most words of a question are not
// there, and say nothing against a passage.
func (x *index) weight(n int) float64 {
	n = max(n, 1)
	return math.Log(1 + (float64(len(x.lengths)-n)+0.5)/(float64(n)+0.5))
}

// Hit is a passage that fits a query.
type Hit struct {
	*Passage
	// Relevance is above 0 and below 1: the passage's BM25 score as a share of the
	// highest score that any passage could have for the query, so that hits of
	// different queries can be compared.
	Relevance float64
}

// Search returns the passages that fit a query best, at most so many, the best
// first; of equals the one that was read first.
func (l *Library) Search(query string, most int) []Hit {
	x := &l.index
	if len(x.lengths) == 0 || most <= 0 {
		return nil
	}
	average := max(1, float64(x.total)/float64(len(x.lengths)))
	scores := make([]float64, len(x.lengths))
	highest := 0.0
	seen := map[string]bool{}

	for term := range Terms(query) {
		if seen[term] {
			continue
		}
		if seen[term] = true; len(seen) > maxQuery {
			break
		}

		list := x.postings[term]
		weight := x.weight(len(list))
		highest += weight * (k1 + 1)
		for _, p := range list {
			count := float64(p.count)
			scores[p.passage] += weight * count * (k1 + 1) / (count + k1*(1-b+b*float64(x.lengths[p.passage])/average))
		}
	}

	var hits []Hit
	for i, score := range scores {
		relevance := score / highest
		if score == 0 || len(hits) == most && relevance <= hits[most-1].Relevance {
			continue
		}
		at := sort.Search(len(hits), func(j int) bool { return hits[j].Relevance < relevance })
		hits = slices.Insert(hits, at, Hit{&l.passages[i], relevance})
		hits = hits[:min(most, len(hits))]
	}

	return hits
}
