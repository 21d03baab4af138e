package reflexion

import (
	"cmp"
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/rlmhq/rlm/internal/data/bigtext"
	"github.com/rlmhq/rlm/internal/data/bm25"
	"github.com/rlmhq/rlm/internal/text/lazyregexp"
)

// Bounds of the evidence from files. A prompt shows at most mostPassages, which is about twenty
// thousand characters.
const (
	mostPassages = 12
	mostClaims   = 60   // sentences of a draft to look up
	minRelevance = 0.15 // minimum, except for the best passages for the task and the issues
	minClaim     = 20   // bytes; a shorter sentence claims nothing
	maxClaim     = 400  // bytes; longer text is not a sentence
)

// evidence finds facts and passages to check a draft against.
type evidence struct {
	task    string
	memory  []Evidence
	library *bm25.Library // nil if no paths were given
	meaning *meanings     // nil to search only by words
}

func newEvidence(task string, m *Memory, library *bm25.Library, meaning *meanings) *evidence {
	e := &evidence{task: task, library: library, meaning: meaning}
	for _, f := range m.Facts {
		e.memory = append(
			e.memory, Evidence{Source: sourceMemory, Content: f.Content, Relevance: f.Confidence},
		)
	}

	for _, p := range m.Procedures {
		e.memory = append(e.memory, Evidence{
			Source:    sourceMemory,
			Relevance: p.SuccessRate,
			Content: fmt.Sprintf(
				"Procedure with a success rate of %.2f: %s", p.SuccessRate, p.Content,
			),
		})
	}

	return e
}

// gather returns the whole memory, and the passages that best fit the task, the issues of a
// critique (nil for none) and the sentences of a draft. Call it again whenever one of them
// changes.
func (e *evidence) gather(
	ctx context.Context, turn int, draft string, critique *Critique,
) ([]Evidence, error) {
	if e.library == nil {
		return append([]Evidence{}, e.memory...), nil
	}
	claims := e.listClaims(draft, critique)
	if err := e.learn(ctx, turn, claims); err != nil {
		return nil, fmt.Errorf("cannot search for evidence: %w", err)
	}
	return append(append([]Evidence{}, e.memory...), e.search(claims)...), nil
}

// learn embeds the passages and the claims.
func (e *evidence) learn(ctx context.Context, turn int, claims []claim) error {
	if e.meaning == nil {
		return nil
	}
	var texts []string
	for _, p := range e.library.Passages() {
		texts = append(texts, p.Text)
	}
	for _, c := range claims {
		texts = append(texts, c.query)
	}
	return e.meaning.learn(ctx, turn, texts)
}

// claim is a query for evidence.
type claim struct {
	query  string
	urgent bool // ranks before the sentences of the draft
	most   int  // passages
}

// found is a passage and the claim that it fits best.
type found struct {
	bm25.Hit
	claim
}

// search looks up claims. Passages for the task and for issues come first, even if they fit less
// well; then the other passages follow in order of relevance.
func (e *evidence) search(claims []claim) []Evidence {
	best := map[*bm25.Passage]found{}
	for _, c := range claims {
		relevance := e.library.Relevance(c.query)
		e.meaning.add(relevance, c.query, e.library.Passages())
		for i, hit := range e.library.Best(relevance, c.most) {
			old, known := best[hit.Passage]
			better := !known || c.urgent && !old.urgent ||
				c.urgent == old.urgent && hit.Relevance > old.Relevance
			if better && (c.urgent && i == 0 || hit.Relevance >= minRelevance) {
				best[hit.Passage] = found{hit, c}
			}
		}
	}

	list := make([]found, 0, len(best))
	for _, f := range best {
		list = append(list, f)
	}
	slices.SortFunc(list, func(a, b found) int {
		if a.urgent != b.urgent {
			if a.urgent {
				return -1
			}
			return 1
		}

		return cmp.Or(
			cmp.Compare(b.Relevance, a.Relevance), strings.Compare(a.Path, b.Path),
			cmp.Compare(a.Line, b.Line),
		)
	})

	out := make([]Evidence, 0, mostPassages)
	for _, f := range list[:min(mostPassages, len(list))] {
		out = append(out, Evidence{
			Source: sourceOf(f.Passage), Content: f.Text, Relevance: f.Relevance,
			SupportsClaim: f.query,
			Location:      fmt.Sprintf("%s:%d", strings.ToValidUTF8(f.Path, "\uFFFD"), f.Line),
		})
	}

	return out
}

// listClaims returns the queries: the issues that keep the draft from passing, the task,
// and sentences of the draft.
func (e *evidence) listClaims(draft string, critique *Critique) []claim {
	var list []claim
	if critique != nil {
		for _, issue := range critique.Issues {
			list = append(list, claim{
				clipText(issue.Description + " " + issue.SuggestedFix), rank(issue.Severity) > 0, 1,
			})
		}
	}

	list = append(list, claim{clipText(e.task), true, 3})
	for _, s := range splitSentences(draft) {
		list = append(list, claim{clipText(s), false, 1})
	}
	return list
}

// clipText returns at most maxClaim bytes of text, on one line.
func clipText(text string) string {
	text = strings.Join(strings.Fields(text), " ")
	if len(text) <= maxClaim {
		return text
	}
	n := maxClaim
	for !utf8.RuneStart(text[n]) {
		n--
	}
	return text[:n]
}

// sentence matches text up to the end of its line, or up to a full stop before a space.
var sentence = lazyregexp.New(`(?m)\S[^\n]*?(?:[.!?](?:\s|$)|[。！？]|$)`)

// splitSentences returns the first sentences of a text that are long enough to make a claim.
func splitSentences(text string) []string {
	var list []string
	for _, s := range sentence.FindAllString(text, 4*mostClaims) {
		if len(s) >= minClaim && len(list) < mostClaims {
			list = append(list, s)
		}
	}
	return list
}

// documents are the extensions of documentation files.
var documents = []string{
	".md", ".markdown", ".rst", ".txt", ".adoc", ".org", ".tex", ".html", ".htm", ".xhtml",
}

// sourceOf distinguishes documentation from code by the file's name: by its extension or,
// without one, by capital letters, as in README.
func sourceOf(p *bm25.Passage) string {
	base := filepath.Base(p.Path)
	ending := strings.ToLower(filepath.Ext(base))
	switch {
	case p.Kind == bigtext.KindHTML, slices.Contains(documents, ending):
		return sourceDocumentation
	case ending == "" && p.Kind == bigtext.KindText && base == strings.ToUpper(base):
		return sourceDocumentation
	}
	return sourceCodebase
}
