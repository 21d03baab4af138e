package distill

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/rlmhq/rlm/internal/text/lazyregexp"
	"github.com/rlmhq/rlm/internal/text/texts"
)

// Bounds of the description of a cluster.
const (
	shownWords   = 5
	shownName    = 100 // characters
	shownSummary = 300 // characters
)

// nameOfRest is the name of the cluster of failures that fit no other.
const nameOfRest = "other"

// clusterByKeywords clusters failures by the words, types and components of their errors. The
// largest groups, up to most, become clusters; the remaining failures form the last cluster.
func clusterByKeywords(ctx context.Context, failures []Failure, most int) ([]FailureCluster, error) {
	all := signaturesOf(failures)
	compared := min(len(all), mostCompared)
	groups, err := groupSimilar(ctx, all[:compared])
	if err != nil {
		return nil, err
	}

	rest := &group{}
	for _, g := range groups[min(len(groups), most):] {
		for _, s := range g.signatures {
			rest.add(s)
		}
	}
	groups = groups[:min(len(groups), most)]
	if err := placeRare(ctx, groups, rest, all[compared:]); err != nil {
		return nil, err
	}
	sortGroups(groups)

	clusters := make([]FailureCluster, 0, len(groups)+1)
	for _, g := range groups {
		clusters = append(clusters, describeCluster(failures, g, all))
	}
	if rest.size > 0 {
		c := describeCluster(failures, rest, all)
		c.Name, c.Summary = nameOfRest, "Failures that are like none of the others."
		clusters = append(clusters, c)
	}
	return clusters, nil
}

// placeRare adds each signature to the most similar group, or to the rest.
func placeRare(ctx context.Context, groups []*group, rest *group, rare []*signature) error {
	means := make([]map[string]float64, len(groups))
	if len(rare) > 0 {
		for i, g := range groups {
			means[i] = g.mean()
		}
	}
	for _, s := range rare {
		if err := context.Cause(ctx); err != nil {
			return err
		}
		best, most := rest, float64(sameCause)
		for i, g := range groups {
			if like := similarity(s.vector, means[i]); like >= most {
				best, most = g, like
			}
		}
		best.add(s)
	}
	return nil
}

// digits matches numbers, which differ between failures of the same kind.
var digits = lazyregexp.New(`[0-9]+`)

// describeCluster makes a cluster from a group. The name is a sentence with its most frequent
// error; the keywords are words that are frequent in the group and rare elsewhere.
func describeCluster(failures []Failure, g *group, all []*signature) FailureCluster {
	typical := g.signatures[0]
	var members []int
	for _, s := range g.signatures {
		members = append(members, s.members...)
		if len(s.members) > len(typical.members) ||
			len(s.members) == len(typical.members) && s.members[0] < typical.members[0] {
			typical = s
		}
	}
	slices.Sort(members)

	text := failures[typical.members[0]].Error
	text = strings.ToValidUTF8(
		strings.Join(strings.Fields(text[:min(len(text), mostToRead)]), " "), "\uFFFD",
	)

	return FailureCluster{
		Name: nameCluster(componentsOf(failures, members), text), Keywords: keywordsOf(g, all),
		members: members, Summary: texts.Truncate(text, shownSummary),
	}
}

// keywordsOf returns the words that are frequent in a group and rare elsewhere.
func keywordsOf(g *group, all []*signature) []string {
	inside, everywhere := map[string]float64{}, map[string]float64{}
	for _, s := range all {
		for _, word := range s.words {
			everywhere[word] += float64(len(s.members))
		}
	}
	for _, s := range g.signatures {
		for _, word := range s.words {
			inside[word] += float64(len(s.members))
		}
	}

	words := slices.SortedFunc(maps.Keys(inside), func(a, b string) int {
		return cmp.Or(
			cmp.Compare(inside[b]*inside[b]/everywhere[b], inside[a]*inside[a]/everywhere[a]),
			cmp.Compare(len(b), len(a)), strings.Compare(a, b),
		)
	})
	return words[:min(shownWords, len(words))]
}

// nameCluster returns a sentence that states what fails and how.
func nameCluster(components []string, text string) string {
	subject := ""
	switch n := len(components); {
	case n == 1:
		subject = cutText(components[0], shownName/3) + " fails: "
	case n > 1:
		subject = fmt.Sprintf("%d components fail: ", n)
	}

	text = digits.ReplaceAllString(text, "N")
	if subject == "" {
		first, size := utf8.DecodeRuneInString(text)
		if rest := text[size:]; rest == "" || !unicode.IsUpper(firstOf(rest)) {
			text = string(unicode.ToUpper(first)) + rest
		}
	}

	name := cutText(subject+strings.TrimRight(text, " .:;,"), shownName-1)
	if strings.HasSuffix(name, "…") || strings.HasSuffix(name, "!") || strings.HasSuffix(name, "?") {
		return name
	}
	return name + "."
}

func firstOf(text string) rune {
	first, _ := utf8.DecodeRuneInString(text)
	return first
}

// cutText truncates text to at most that many characters.
func cutText(text string, most int) string {
	if runes := []rune(text); len(runes) > most {
		return string(runes[:most-1]) + "…"
	}
	return text
}
