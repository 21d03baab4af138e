package rlm_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/rlmhq/rlm"
	"github.com/rlmhq/rlm/internal/testing/llmtest"
	"github.com/rlmhq/rlm/internal/testing/testcache"
	"github.com/rlmhq/rlm/repl/llm"
	"github.com/rlmhq/rlm/repl/llm/providers"
	"github.com/rlmhq/rlm/repl/run"
)

const (
	subCalls = 1_000
	// subCallTime is how long the server takes for each sub-call.
	subCallTime = 50 * time.Millisecond
	// earlierWidth is a former default for the number of calls in flight.
	earlierWidth = 16
)

// BenchmarkSubCalls runs a snippet that makes 1,000 sub-calls over HTTP to a server on loopback,
// alternating between the default width and the earlier one. "ideal" is the ratio of the time at
// the default width to the ideal time, in which waves of calls cost only the server's time.
func BenchmarkSubCalls(b *testing.B) {
	server := llmtest.Start(answerAfterAWhile)
	defer server.Close()
	registry, err := providers.New(providers.Options{Env: server.Env})
	if err != nil {
		b.Fatal(err)
	}
	defer registry.Close()
	engine, err := rlm.New(rlm.Options{CacheDir: testcache.Dir()})
	if err != nil {
		b.Fatal(err)
	}
	defer engine.Close()

	answer := func(width int) time.Duration {
		begun := time.Now()
		outcome, err := engine.Ask(b.Context(), rlm.Task{Config: run.Config{
			Question: "how many?", Models: registry, Model: "openai/gpt-5", SubModel: "openai/gpt-5",
			Bypass: -1, CallsAtOnce: width,
		}})
		if err != nil || outcome.Text() != fmt.Sprint(subCalls) {
			b.Fatalf("%s %s %v", outcome.Status, outcome.Answer, err)
		}
		return time.Since(begun)
	}

	answer(0) // the first call prepares the tiers
	var usual, earlier time.Duration
	for b.Loop() {
		usual += answer(0)
		earlier += answer(earlierWidth)
	}

	width := run.Config{}.WithDefaults().CallsAtOnce
	ideal := time.Duration((subCalls+width-1)/width) * subCallTime
	b.ReportMetric(float64(usual)/float64(b.N)/float64(ideal), "ideal")
	b.ReportMetric(usual.Seconds()*1e3/float64(b.N), "ms/usual")
	b.ReportMetric(earlier.Seconds()*1e3/float64(b.N), "ms/earlier")
}

// answerAfterAWhile plays both the model whose snippet makes the sub-calls and the model that
// answers them.
func answerAfterAWhile(r llm.Request) (llm.Response, error) {
	if strings.HasPrefix(r.Messages[len(r.Messages)-1].Content, "item ") {
		time.Sleep(subCallTime)
		return llm.Response{Text: "done"}, nil
	}
	return llm.Response{Text: fmt.Sprintf("```repl\nr = llm_query_batched([f'item {i}' for i in range(%d)])\n"+
		"FINAL(r.count('done'))\n```", subCalls)}, nil
}
