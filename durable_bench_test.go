package rlm_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/rlmhq/rlm"
	"github.com/rlmhq/rlm/internal/keep/snapshot"
	"github.com/rlmhq/rlm/internal/keep/store"
	"github.com/rlmhq/rlm/internal/keep/store/sqlitestore"
	"github.com/rlmhq/rlm/internal/testing/testcache"
	"github.com/rlmhq/rlm/repl"
	"github.com/rlmhq/rlm/repl/llm"
	"github.com/rlmhq/rlm/repl/run"
	runstore "github.com/rlmhq/rlm/store"
)

// changed returns a session with 10 MiB of incompressible changes.
func changed(b *testing.B, engine *rlm.Engine) *rlm.Session {
	b.Helper()
	session := openSession(b, engine)
	result, err := session.Run(b.Context(), "import os\ndata = [os.urandom(1 << 20) for _ in range(10)]")
	if err != nil || result.Exception != nil {
		b.Fatal(err, result.Exception)
	}
	return session
}

func openSession(b *testing.B, engine *rlm.Engine) *rlm.Session {
	b.Helper()
	session, err := engine.Open(b.Context(), rlm.SessionConfig{Policy: rlm.Policy{Pin: rlm.TierWasm}})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = session.Close() })
	return session
}

func newBenchEngine(b *testing.B, dir string) *rlm.Engine {
	b.Helper()
	engine, err := rlm.New(rlm.Options{CacheDir: testcache.Dir(), Store: runstore.Folder(dir)})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = engine.Close() })
	return engine
}

func BenchmarkSnapshot10MiB(b *testing.B) {
	session := changed(b, newBenchEngine(b, ""))
	var state bytes.Buffer
	for b.Loop() {
		state.Reset()
		if err := session.Snapshot(b.Context(), &state); err != nil || state.Len() < 10<<20 {
			b.Fatal(err, state.Len())
		}
	}
}

// BenchmarkSnapshotSmall reports the sizes, in bytes, of a small session's variables and of its
// pages.
func BenchmarkSnapshotSmall(b *testing.B) {
	session := openSession(b, newBenchEngine(b, ""))
	result, err := session.Run(b.Context(), "rows = list(range(1000))\ndef total(): return sum(rows)")
	if err != nil || result.Exception != nil {
		b.Fatal(err, result.Exception)
	}
	var state bytes.Buffer
	for b.Loop() {
		state.Reset()
		if err := session.Snapshot(b.Context(), &state); err != nil {
			b.Fatal(err)
		}
	}

	header, err := snapshot.ReadHeader(&state)
	if err != nil {
		b.Fatal(err)
	}
	b.ReportMetric(float64(header.Namespaces[0].Bytes), "portable-bytes")
	b.ReportMetric(float64(header.Namespaces[0].Exact), "exact-bytes")
}

func BenchmarkRestore10MiB(b *testing.B) {
	engine := newBenchEngine(b, "")
	var state bytes.Buffer
	if err := changed(b, engine).Snapshot(b.Context(), &state); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		session := openSession(b, engine)
		report, err := session.Restore(b.Context(), bytes.NewReader(state.Bytes()))
		if err != nil || len(report.Left) > 0 {
			b.Fatal(err, report)
		}
	}
}

func BenchmarkListRuns(b *testing.B) {
	dir := b.TempDir()
	s, err := sqlitestore.Open(dir)
	if err != nil {
		b.Fatal(err)
	}
	var writing errgroup.Group
	writing.SetLimit(256) // concurrent writes share one wait for the disk
	for i := range 10_000 {
		writing.Go(func() error {
			return s.Create(b.Context(), store.Log{
				ID: store.ID{Kind: store.Run, Name: fmt.Sprintf("run-%d", i)}, Title: fmt.Sprintf("question %d", i),
				State: store.State{Status: []string{"answered", "failed"}[i%2]},
			})
		})
	}
	if err := errors.Join(writing.Wait(), s.Close()); err != nil {
		b.Fatal(err)
	}

	engine := newBenchEngine(b, dir)
	for b.Loop() {
		runs, err := engine.Runs(b.Context(), rlm.RunFilter{Status: "failed", Text: "question 1", Limit: 100})
		if err != nil || len(runs) != 100 {
			b.Fatal(err, len(runs))
		}
	}
}

// resumed is a model that plays the turns of a run, and stops the run when it is asked for one
// more.
type resumed struct {
	turns int
	stop  func()
}

func (r *resumed) Resolve(name string) (llm.Model, error) {
	return llm.Model{Name: name, ID: name, Provider: r}, nil
}

func (r *resumed) Complete(ctx context.Context, q llm.Request, _ func(string)) (llm.Response, error) {
	turn := (len(q.Messages) - 2) / 2
	if turn >= r.turns {
		r.stop()
		<-ctx.Done()
		return llm.Response{}, ctx.Err()
	}
	text := fmt.Sprintf("```repl\nrows_%d = list(range(1000))\nprint(%d)\n```", turn, turn)
	return llm.Response{Text: text, Usage: llm.Usage{InputTokens: 10, OutputTokens: 1}}, nil
}

// BenchmarkResume100 measures the time from a new engine to the first call of turn 101.
func BenchmarkResume100(b *testing.B) {
	dir := b.TempDir()
	resume := func() (took time.Duration) {
		begun := time.Now()
		engine, err := rlm.New(rlm.Options{CacheDir: testcache.Dir(), Store: runstore.Folder(dir)})
		if err != nil {
			b.Fatal(err)
		}
		defer engine.Close()

		ctx, cancel := context.WithCancel(b.Context())
		defer cancel()
		_, err = engine.Ask(ctx, rlm.Task{
			Task: repl.Task{Name: "long"}, Contexts: []rlm.Context{rlm.Text("t", "five.")},
			Config: run.Config{
				Question: "why?", Model: "test/m", Bypass: -1, MaxTurns: 200,
				Models: &resumed{100, func() { took = time.Since(begun); cancel() }},
			},
		})
		if !errors.Is(err, context.Canceled) {
			b.Fatal(err)
		}
		return took
	}

	resume()
	var sum time.Duration
	n := 0
	for b.Loop() {
		sum += resume()
		n++
	}
	b.ReportMetric(float64(sum.Milliseconds())/float64(n), "ms/resume")
}
