package reflect_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/rlmhq/rlm/internal/testing/llmtest"
	"github.com/rlmhq/rlm/repl/internal/answers"
	"github.com/rlmhq/rlm/repl/llm"
	"github.com/rlmhq/rlm/repl/llm/providers"
	"github.com/rlmhq/rlm/repl/reflect"
)

// TestOverHTTP asks the reflector in one vendor's format and the sub-agent in another's, on a
// server that fails occasionally.
func TestOverHTTP(t *testing.T) {
	var mu sync.Mutex
	var helpers []llm.Request
	server := llmtest.Start(func(r llm.Request) (llm.Response, error) {
		mu.Lock()
		defer mu.Unlock()
		if system(r) != "" {
			helpers = append(helpers, r)
			return llm.Response{Text: "helped"}, nil
		}
		replies := []string{
			code("print(trace.summary())"), code("print(ask_llm('why?', traces['feedback']))"),
			code(good),
		}
		return llm.Response{Text: replies[len(r.Messages)/2]}, nil
	})
	t.Cleanup(server.Close)
	server.Fail(
		llmtest.Status(429, "rate_limit_error", "slow down", "0"),
		llmtest.Status(500, "server_error", "oops", ""),
	)
	registry, err := providers.New(providers.Options{Env: server.Env})
	if err != nil {
		t.Fatal(err)
	}
	cfg := config(nil)
	cfg.Models, cfg.Model, cfg.SubModel = registry, "openai/gpt-4o", "anthropic/claude-sonnet-4-5"
	outcome := answered(t, cfg)
	if err := registry.Close(); err != nil {
		t.Error(err)
	}
	if len(helpers) != 1 || helpers[0].MaxTokens != 8192 ||
		helpers[0].Temperature == nil || *helpers[0].Temperature != 0.3 ||
		system(helpers[0]) != answers.ModePrompt("analysis") ||
		last(helpers[0]) != "why?\n\nContext:\nWrong." {
		t.Errorf("the sub-agent was asked %+v", helpers)
	}
	calls := record(t, outcome).SubagentCalls
	if len(calls) != 1 || calls[0].ResponseLength != len("helped") || outcome.Spent.Calls != 4 {
		t.Errorf("the record has %+v, spent %+v", calls, outcome.Spent)
	}
}

func TestReflectionsAtOnce(t *testing.T) {
	var group sync.WaitGroup
	for i := range 20 {
		group.Go(func() {
			m := &models{script: []string{
				code("mine = traces['question']"), code("notes = llm_query_batched([mine] * 3)"),
				code("FINAL({'reasoning': mine, 'extracted_learnings': notes})"),
			}}
			question := fmt.Sprintf("question %d", i)
			outcome, err := reflect.Run(
				t.Context(), config(m), subjectOf(agentOutput{Question: question, Reasoning: "r"}),
			)
			o := outcome.Output
			if err != nil || o.Reasoning != question || len(o.ExtractedLearnings) != 3 ||
				!strings.HasSuffix(o.ExtractedLearnings[2].Learning, question) {
				t.Errorf("reflection %d: %+v, %v", i, outcome, err)
			}
		})
	}
	group.Wait()
}
