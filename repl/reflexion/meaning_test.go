package reflexion_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/rlmhq/rlm/repl/ledger"
	"github.com/rlmhq/rlm/repl/llm"
	"github.com/rlmhq/rlm/repl/reflexion"
)

// concepts are words with the same meaning, one dimension per line.
var concepts = []string{
	"migrat move upgrade", "database schema tables", "bird fish", "push deploy",
}

// embed is an embedding model of the concepts. As with real models, all vectors have a common
// component.
func embed(r llm.Request) (llm.Response, error) {
	all := make([][]float64, len(r.Messages))
	for i, m := range r.Messages {
		all[i] = []float64{1}
		for _, words := range concepts {
			n := 0.0
			for word := range strings.FieldsSeq(words) {
				n += float64(strings.Count(strings.ToLower(m.Content), word))
			}
			all[i] = append(all[i], n)
		}
	}
	text, err := json.Marshal(all)
	return llm.Response{Text: string(text), Usage: llm.Usage{InputTokens: int64(10 * len(all))}}, err
}

// meaningful returns a run over files that use other words than the task, and its model.
func meaningful(t *testing.T) (reflexion.Config, *model) {
	t.Helper()
	dir := t.TempDir()
	write(t, dir, "guide.md", "Move the tables to a newer form by the wizard.\n")
	write(t, dir, "zoo.md", "The bird eats a fish.\n")
	write(t, dir, "farm.md", "A fish sees the bird.\n")
	m := &model{critiques: []string{faulty("major"), passes}, embed: embed}
	cfg := config(m)
	cfg.Memory, cfg.Paths, cfg.EmbedModel = reflexion.Memory{}, []string{dir}, "embedder"
	return cfg, m
}

func TestMeaningFindsOtherWords(t *testing.T) {
	cfg, m := meaningful(t)
	r := ended(t, cfg, reflexion.StatusPassed, 2)
	found := r.Iterations[0].Evidence
	if len(found) != 1 || !strings.HasPrefix(found[0].Content, "Move the tables") ||
		found[0].Relevance < 0.2 || found[0].Relevance > 1 || found[0].SupportsClaim != cfg.Task {
		t.Errorf("found %+v", found)
	}

	// No vector is requested twice, and the calls are charged to the budget.
	asked := map[string]int{}
	embeddings := m.asked("embedding")
	for _, r := range embeddings {
		for _, message := range r.Messages {
			asked[message.Content]++
		}
	}
	for text, n := range asked {
		if n > 1 {
			t.Errorf("%q is asked for %d times", text, n)
		}
	}
	if len(asked) < 5 || r.TotalLLMCalls != int64(4+len(embeddings)) {
		t.Errorf("%d texts in %d calls, %d calls in all", len(asked), len(embeddings), r.TotalLLMCalls)
	}

	cfg.EmbedModel = ""
	if r := ended(t, cfg, reflexion.StatusPassed, 1); len(r.Iterations[0].Evidence) != 0 {
		t.Errorf("by words alone: %+v", r.Iterations[0].Evidence)
	}
}

func TestMeaningIsAskedForInBatches(t *testing.T) {
	cfg, m := meaningful(t)
	for i := range 150 {
		write(t, cfg.Paths[0], fmt.Sprintf("more/%d.md", i), fmt.Sprintf("Number %d.", i))
	}
	ended(t, cfg, reflexion.StatusPassed, 2)
	var sizes []int
	for _, r := range m.asked("embedding") {
		sizes = append(sizes, len(r.Messages))
	}
	if !slices.Equal(sizes[:3], []int{64, 64, 26}) {
		t.Errorf("the calls have %v texts", sizes)
	}
}

func TestMeaningThatCannotBeHadIsAnError(t *testing.T) {
	cfg, m := meaningful(t)
	m.embed = func(llm.Request) (llm.Response, error) { return llm.Response{Text: "I am a chat model."}, nil }
	_, err := reflexion.Run(t.Context(), cfg)
	fails(t, err, "embedder gave no vectors for 4 texts: name a model for embeddings")
	m.embed = func(llm.Request) (llm.Response, error) {
		return llm.Response{Text: "[[1],[1],[1],[1,2]]"}, nil
	}
	_, err = reflexion.Run(t.Context(), cfg)
	fails(t, err, "with 1 and with 2 numbers")
	m.embed = func(llm.Request) (llm.Response, error) {
		return llm.Response{}, &llm.Error{Kind: llm.ErrServer, Model: "embedder"}
	}
	if _, err = reflexion.Run(t.Context(), cfg); !errors.Is(err, llm.ErrServer) {
		t.Error(err)
	}
	fails(t, err, "cannot search for evidence")

	cfg, _ = meaningful(t)
	cfg.Budget.Calls = 1
	if r := run(t, cfg); r.Status != ledger.StatusPartial || !strings.Contains(r.Reason, "budget of 1 calls") {
		t.Errorf("%s: %s", r.Status, r.Reason)
	}
	large := strings.Repeat(strings.Repeat("word ", 300)+"\n\n", 650)
	for i := range 8 {
		write(t, cfg.Paths[0], fmt.Sprintf("large%d.txt", i), large)
	}
	_, err = reflexion.Run(t.Context(), cfg)
	fails(t, err, "at most 4096 can be compared by meaning: search fewer files")
	cfg.Paths = nil
	_, err = reflexion.Run(t.Context(), cfg)
	fails(t, err, "has nothing to compare")
}

func fails(t *testing.T, err error, says string) {
	t.Helper()
	if err == nil || !strings.Contains(err.Error(), says) {
		t.Errorf("got %v, want %q", err, says)
	}
}

// TestVectorsOfZerosAreLikeNothing checks vectors of zeros, which have no direction.
func TestVectorsOfZerosAreLikeNothing(t *testing.T) {
	cfg, m := meaningful(t)
	m.embed = func(r llm.Request) (llm.Response, error) {
		zeros := strings.Repeat("[0,0],", len(r.Messages))
		return llm.Response{Text: "[" + strings.TrimSuffix(zeros, ",") + "]"}, nil
	}
	if r := ended(t, cfg, reflexion.StatusPassed, 2); len(r.Iterations[0].Evidence) != 0 {
		t.Errorf("%+v", r.Iterations[0].Evidence)
	}
}
