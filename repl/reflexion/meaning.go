package reflexion

import (
	"context"
	"encoding/json"
	"fmt"
	"math"

	"github.com/rlmhq/rlm/internal/data/bm25"
	"github.com/rlmhq/rlm/repl/internal/calls"
	"github.com/rlmhq/rlm/repl/llm"
)

// Bounds of the comparison by meaning.
const (
	mostEmbedded = 4_096 // passages
	embedAtOnce  = 64    // strings in one call
)

// meanings holds the vectors of strings, from a model. A nil *meanings compares nothing.
type meanings struct {
	caller  *calls.Caller
	model   string
	known   map[string]vector // vectors by string, so that each is requested only once
	numbers int               // the length of each vector
}

// vector is a direction of length 1, or of length 0 if the model returned only zeros.
type vector []float32

// checkEmbedded rejects a library that is too large to be compared by meaning.
func checkEmbedded(library *bm25.Library) error {
	if n := library.Len(); n > mostEmbedded {
		return fmt.Errorf("the files have %d passages, and at most %d can be compared by meaning: "+
			"search fewer files, or leave out the model for embeddings", n, mostEmbedded)
	}
	return nil
}

// learn requests the vectors of strings that have none yet.
func (m *meanings) learn(ctx context.Context, turn int, texts []string) error {
	if m == nil {
		return nil
	}
	var unknown []string
	waits := map[string]bool{}
	for _, text := range texts {
		if m.known[text] == nil && !waits[text] {
			waits[text] = true
			unknown = append(unknown, text)
		}
	}

	for len(unknown) > 0 {
		n := min(len(unknown), embedAtOnce)
		if err := m.ask(ctx, turn, unknown[:n]); err != nil {
			return err
		}
		unknown = unknown[n:]
	}
	return nil
}

// ask requests the vectors of a few strings in one call.
func (m *meanings) ask(ctx context.Context, turn int, texts []string) error {
	messages := make([]llm.Message, len(texts))
	for i, text := range texts {
		messages[i] = llm.Message{Role: llm.RoleUser, Content: text}
	}
	response, err := m.caller.Complete(ctx, calls.Ask{
		Node: node, Turn: turn, Purpose: "embedding", Model: m.model, Messages: messages, Embed: true,
	})
	if err != nil {
		return err
	}

	var vectors []vector
	if err := json.Unmarshal([]byte(response.Text), &vectors); err != nil || len(vectors) != len(texts) {
		return fmt.Errorf("the model %s gave no vectors for %d texts: name a model for embeddings",
			m.model, len(texts))
	}
	for i, v := range vectors {
		if m.numbers == 0 {
			m.numbers = len(v)
		}
		if len(v) != m.numbers || len(v) == 0 {
			return fmt.Errorf("the model %s gave vectors with %d and with %d numbers",
				m.model, m.numbers, len(v))
		}
		m.known[texts[i]] = v.normalise()
	}
	return nil
}

// normalise returns the vector scaled to length 1.
func (v vector) normalise() vector {
	sum := 0.0
	for _, x := range v {
		sum += float64(x) * float64(x)
	}
	if sum > 0 {
		scale := float32(1 / math.Sqrt(sum))
		for i := range v {
			v[i] *= scale
		}
	}
	return v
}

// add adjusts the relevance of passages to a query, which is based on words, so that half of it
// depends on the similarity of meaning. The similarity is the cosine of the vectors, relative to
// the distance between the mean of all passages and a perfect match, because models differ in the
// cosine of unrelated strings.
func (m *meanings) add(relevance []float64, query string, passages []bm25.Passage) {
	if m == nil || len(passages) == 0 {
		return
	}
	asked := m.known[query]
	cosines, mean := make([]float64, len(passages)), 0.0
	for i := range passages {
		known := m.known[passages[i].Text]
		for j, x := range asked {
			cosines[i] += float64(x) * float64(known[j])
		}
		mean += cosines[i] / float64(len(passages))
	}

	for i, cosine := range cosines {
		similar := 0.0
		if mean < 1 {
			similar = min(1, max(0, (cosine-mean)/(1-mean)))
		}
		relevance[i] = (relevance[i] + similar) / 2
	}
}
