package bm25

import (
	"github.com/blevesearch/snowballstem"
	"github.com/blevesearch/snowballstem/english"
)

// Stem returns the stem of an English term in lower case, so that refund, refunds and refunded are
// one term. Terms in other alphabets, and with digits, are returned unchanged.
func Stem(term string) string {
	for i := range len(term) {
		if term[i] < 'a' || term[i] > 'z' {
			return term
		}
	}
	env := snowballstem.NewEnv(term)
	english.Stem(env)
	return env.Current()
}
