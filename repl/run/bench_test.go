package run_test

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/rlmhq/rlm/repl/ledger"
	"github.com/rlmhq/rlm/repl/llm"
	"github.com/rlmhq/rlm/repl/run"
)

// BenchmarkTurn measures a turn without its model call and snippet: extraction, storing the output,
// feedback, messages.
func BenchmarkTurn(b *testing.B) {
	const turns = 50
	m := &models{}
	cfg := config(m, text("input"))
	cfg.MaxTurns = turns + 1
	var overhead time.Duration
	cfg.Progress = func(e ledger.Event) {
		if e.Kind == ledger.EventSnippet {
			overhead -= e.Elapsed
		}
	}
	for b.Loop() {
		m.script, m.requests = nil, nil
		for i := range turns {
			m.script = append(m.script, code(fmt.Sprintf("x = %d\nprint(x)", i)))
		}
		m.script = append(m.script, "FINAL(1)")
		outcome, err := run.Run(b.Context(), cfg)
		if err != nil || outcome.Turns != turns+1 {
			b.Fatalf("%+v %v", outcome, err)
		}
		overhead += outcome.Elapsed
	}
	b.ReportMetric(float64(overhead)/float64(b.N)/turns/1e6, "ms/turn")
}

// BenchmarkSubLoop measures starting a sub-loop: session, contract, prompt, and one reply with a
// typed answer.
func BenchmarkSubLoop(b *testing.B) {
	const loops = 20
	m := &models{byPurpose: func(r llm.Request) (llm.Response, bool) {
		return llm.Response{Text: "FINAL(true)"}, r.Metadata.Depth == 1
	}}
	cfg := config(m, text("input"))
	var took time.Duration
	for b.Loop() {
		m.script = []string{
			code(
				fmt.Sprintf(
					"FINAL([rlm_query('is it?', 'a part', schema=bool) for i in range(%d)].count(True))",
					loops,
				),
			),
		}
		outcome, err := run.Run(b.Context(), cfg)
		if err != nil || outcome.Loops != loops {
			b.Fatalf("%+v %v", outcome, err)
		}
		took += outcome.Elapsed
	}
	b.ReportMetric(float64(took)/float64(b.N)/loops/1e6, "ms/loop")
}

// BenchmarkRunsAtOnce keeps 100 runs in flight, holds each at its second turn until all have
// reached it, and reports the memory per run.
func BenchmarkRunsAtOnce(b *testing.B) {
	const runs = 100
	for b.Loop() {
		var before, during runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&before)
		var arrived, done sync.WaitGroup
		arrived.Add(runs)
		release := make(chan struct{})
		for range runs {
			done.Go(func() {
				m := &models{}
				m.complete = func(ctx context.Context, r llm.Request) (llm.Response, error) {
					if r.Metadata.Turn == 1 {
						return llm.Response{Text: code("rows = list(range(1000))")}, nil
					}
					arrived.Done()
					<-release
					return llm.Response{Text: "FINAL(1)"}, ctx.Err()
				}
				if outcome, err := run.Run(b.Context(), config(m, text("input"))); err != nil {
					b.Errorf("%+v %v", outcome, err)
				}
			})
		}
		arrived.Wait()
		runtime.ReadMemStats(&during)
		b.ReportMetric(
			float64(
				during.HeapInuse+during.StackInuse-before.HeapInuse-before.StackInuse,
			)/runs/1024,
			"KiB/run",
		)
		close(release)
		done.Wait()
	}
}
