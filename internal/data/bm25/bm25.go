package bm25

import (
	"math"
	"slices"
	"sort"
)

// The score is BM25 from Robertson and Zaragoza, "The Probabilistic Relevance Framework: BM25 and
// Beyond" (Foundations and Trends in Information Retrieval 3(4), 2009), with the usual constants.
// The weight of a term is that of Lucene, ln(1 + (N - n + 0.5) / (n + 0.5)), which is never
// negative.
const (
	k1 = 1.2
	b  = 0.75
)

// These bounds apply to a query. Further terms are ignored.
const (
	maxQuery      = 64       // distinct terms
	maxQueryBytes = 64 << 10 // more than any person or model writes
)

// posting counts the occurrences of a term in a passage.
type posting struct{ passage, count int32 }

// index is an inverted index of passages.
type index struct {
	postings map[string][]posting
	stems    map[string]string
	lengths  []int32 // the length of each passage, in terms
	total    int64
}

// add adds a passage under the next number.
func (x *index) add(number int, text string) {
	length := int32(0)
	for term := range Terms(text) {
		term = x.stem(term)
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

// stem returns the stem of a term of the library.
func (x *index) stem(term string) string {
	stem, known := x.stems[term]
	if !known {
		stem = Stem(term)
		x.stems[term] = stem
	}
	return stem
}

// weight returns the weight of a term that occurs in n passages. An unknown term has weight 0: a
// small library lacks most words of a question, which must not count against a passage.
func (x *index) weight(n int) float64 {
	if n == 0 {
		return 0
	}
	return math.Log(1 + (float64(len(x.lengths)-n)+0.5)/(float64(n)+0.5))
}

// Hit is a passage that matches a query.
type Hit struct {
	*Passage
	// Relevance is the passage's BM25 score relative to the highest possible score for the query:
	// above 0, below 1. So hits of different queries are comparable. [Library.Best] keeps the
	// relevance that it was given.
	Relevance float64
}

// Search returns the best passages for a query, up to most, best first. Equal scores keep the
// order in which the passages were read.
func (l *Library) Search(query string, most int) []Hit { return l.Best(l.Relevance(query), most) }

// Relevance returns the relevance of each passage to the words of a query, from 0 to 1.
func (l *Library) Relevance(query string) []float64 {
	x := &l.index
	average := max(1, float64(x.total)/max(1, float64(len(x.lengths))))
	scores := make([]float64, len(x.lengths))
	highest := 0.0
	seen := map[string]bool{}

	for term := range Terms(query[:min(len(query), maxQueryBytes)]) {
		if term = Stem(term); seen[term] {
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
			length := float64(x.lengths[p.passage]) / average
			scores[p.passage] += weight * count * (k1 + 1) / (count + k1*(1-b+b*length))
		}
	}

	for i := range scores {
		if scores[i] > 0 {
			scores[i] /= highest
		}
	}
	return scores
}

// Best returns the passages with the highest relevance above 0, up to most, best first. The slice
// relevance contains a number for each passage.
func (l *Library) Best(relevance []float64, most int) []Hit {
	var hits []Hit
	for i, score := range relevance {
		if score <= 0 || most <= 0 || len(hits) == most && score <= hits[most-1].Relevance {
			continue
		}
		at := sort.Search(len(hits), func(j int) bool { return hits[j].Relevance < score })
		hits = slices.Insert(hits, at, Hit{&l.passages[i], score})
		hits = hits[:min(most, len(hits))]
	}

	return hits
}
