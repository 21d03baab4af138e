package run_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/rlmhq/rlm/repl/ledger"
	"github.com/rlmhq/rlm/repl/llm"
)

// TestCallsThatShouldRunAtOnceDo checks concurrent calls with a model that answers none of them
// until three have arrived.
func TestCallsThatShouldRunAtOnceDo(t *testing.T) {
	const pool = "from concurrent.futures import ThreadPoolExecutor\nwith ThreadPoolExecutor(3) as pool:\n    "
	for name, source := range map[string]string{
		"gather": "import asyncio\nr = await asyncio.gather(*[llm_query(p) for p in 'abc'])",
		"gather typed": "import asyncio\nr = await asyncio.gather(*[llm_query(p, " +
			"schema=str) for p in 'abc'])",
		"TaskGroup": "import asyncio\nasync with asyncio.TaskGroup() as g:\n" +
			"    r = [g.create_task(llm_query(p)) for p in 'abc']",
		"batched":              "r = llm_query_batched(list('abc'))",
		"map_llm":              "r = map_llm('p', list('abc'))",
		"executor":             pool + "r = list(pool.map(llm_query, 'abc'))",
		"executor of a lambda": pool + "r = list(pool.map(lambda p: llm_query(p), 'abc'))",
		"submit of a lambda": pool + "fs = [pool.submit(lambda p, k: llm_query(p, **k), " +
			"p, {}) for p in 'abc']\n    r = [f.result() for f in fs]",
		"parallel_map":               "r = parallel_map(llm_query, 'abc')",
		"parallel_map of a lambda":   "r = parallel_map(lambda p: ask_llm('what?', p), 'abc')",
		"parallel_map of coroutines": "async def f(p):\n    return await llm_query(p)\nr = parallel_map(f, 'abc')",
		"sub-loops":                  "r = rlm_query_batched(list('abc'))",
	} {
		t.Run(name, func(t *testing.T) {
			var arrived sync.WaitGroup
			arrived.Add(3)
			together := make(chan struct{})
			go func() { arrived.Wait(); close(together) }()
			m := &models{script: []string{code(source + "\nFINAL(len(r))")}}
			m.complete = func(ctx context.Context, r llm.Request) (llm.Response, error) {
				if r.Metadata.Purpose == "root" {
					return llm.Func(m.reply).Complete(ctx, r, nil)
				}
				arrived.Done()
				select {
				case <-together:
				case <-time.After(time.Minute):
					return llm.Response{}, errors.New("the others did not come")
				}
				return llm.Response{Text: "FINAL('x')"}, nil
			}
			answered(t, config(m), "3")
		})
	}
}

// TestSubLoopsAndCallsKeepTheirLimits checks how many sub-loops of one loop, and how many model
// calls of the whole tree, are in flight.
func TestSubLoopsAndCallsKeepTheirLimits(t *testing.T) {
	for name, source := range map[string]string{
		"gather":   "import asyncio\nr = await asyncio.gather(*[rlm_query(str(i)) for i in range(12)])",
		"batched":  "r = rlm_query_batched([str(i) for i in range(12)])",
		"parallel": "r = run_parallel_sub_calls([{'prompt': str(i)} for i in range(12)])",
	} {
		t.Run(name, func(t *testing.T) {
			var mu sync.Mutex
			loops, calls, peakLoops, peakCalls := 0, 0, 0, 0
			m := &models{script: []string{code(source + "\nFINAL(len(r))")}}
			m.complete = func(ctx context.Context, r llm.Request) (llm.Response, error) {
				if r.Metadata.Purpose == "root" {
					return llm.Func(m.reply).Complete(ctx, r, nil)
				}
				mu.Lock()
				calls++
				peakCalls = max(peakCalls, calls)
				mu.Unlock()
				defer func() { mu.Lock(); calls--; mu.Unlock() }()
				if r.Metadata.Purpose == "sub" {
					return llm.Response{
						Text: code("FINAL(len(llm_query_batched(list('abcdefgh'))))"),
					}, nil
				}
				time.Sleep(time.Millisecond)
				return llm.Response{Text: "leaf"}, nil
			}
			cfg := config(m)
			cfg.LoopsAtOnce, cfg.CallsAtOnce = 3, 5
			cfg.Progress = func(e ledger.Event) {
				mu.Lock()
				defer mu.Unlock()
				switch e.Kind { //nolint:exhaustive // the others do not count
				case ledger.EventLoopStarted:
					loops++
					peakLoops = max(peakLoops, loops)
				case ledger.EventLoopEnded:
					loops--
				}
			}
			answered(t, cfg, "12")
			if peakLoops > 3 || peakCalls > 5 || peakLoops == 0 {
				t.Errorf("%d sub-loops and %d calls at once", peakLoops, peakCalls)
			}
		})
	}
}
