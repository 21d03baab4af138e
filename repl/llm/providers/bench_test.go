package providers_test

import (
	"fmt"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/rlmhq/rlm/internal/testing/llmtest"
	"github.com/rlmhq/rlm/repl/llm"
	"github.com/rlmhq/rlm/repl/llm/providers"
)

// benchModel returns a model whose server answers after the latency.
func benchModel(b *testing.B, format string, latency time.Duration) llm.Model {
	b.Helper()
	server := llmtest.Start(func(llm.Request) (llm.Response, error) {
		time.Sleep(latency)
		return llm.Response{Text: "true", Usage: llm.Usage{InputTokens: 500, OutputTokens: 1}}, nil
	})
	b.Cleanup(server.Close)
	registry, err := providers.New(providers.Options{Env: server.Env})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		if err := registry.Close(); err != nil {
			b.Error(err)
		}
	})

	model, err := registry.Resolve(format + "/any")
	if err != nil {
		b.Fatal(err)
	}
	return model
}

// BenchmarkFanOut makes 1,000 calls, 64 at a time, to a server that answers in 50 ms. It
// reports the ratio of the time to the ideal of 16 rounds. Client and server share the
// machine.
func BenchmarkFanOut(b *testing.B) {
	const calls, width, latency = 1000, 64, 50 * time.Millisecond
	const ideal = (calls + width - 1) / width * latency
	for _, format := range []string{"openai", "anthropic"} {
		for _, stream := range []bool{false, true} {
			b.Run(fmt.Sprintf("%s/stream=%v", format, stream), func(b *testing.B) {
				model := benchModel(b, format, latency)
				for b.Loop() {
					var group errgroup.Group
					group.SetLimit(width)

					for i := range calls {
						group.Go(func() error {
							return benchCall(b, model,
								fmt.Sprint("question ", i), stream)
						})
					}

					if err := group.Wait(); err != nil {
						b.Fatal(err)
					}
				}

				b.ReportMetric(float64(b.Elapsed())/float64(b.N)/float64(ideal), "x-ideal")
			})
		}
	}
}

// BenchmarkCall measures one call without the model's own time: the client and the server
// on loopback together.
func BenchmarkCall(b *testing.B) {
	for _, format := range []string{"openai", "anthropic"} {
		for _, stream := range []bool{false, true} {
			b.Run(fmt.Sprintf("%s/stream=%v", format, stream), func(b *testing.B) {
				model := benchModel(b, format, 0)
				b.ReportAllocs()

				for b.Loop() {
					if err := benchCall(b, model, "question", stream); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}

// benchCall makes one call.
func benchCall(b *testing.B, model llm.Model, question string, stream bool) error {
	b.Helper()
	var give func(string)
	if stream {
		give = func(string) {}
	}
	_, err := model.Provider.Complete(b.Context(), llm.Request{
		Model: model.ID, Messages: []llm.Message{{Role: llm.RoleUser, Content: question}},
	}, give)

	return err
}
