package memory_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/rlmhq/rlm/cmd/rlm/internal/memory"
	"github.com/rlmhq/rlm/graph"
	"github.com/rlmhq/rlm/internal/testing/testcache"
	"github.com/rlmhq/rlm/repl/ledger"
	"github.com/rlmhq/rlm/repl/run"
)

// Example records the answer of a run. The next run finds it by a word.
func Example() {
	if err := example(context.Background()); err != nil {
		fmt.Println(err)
	}
	// Output:
	// port 8443
}

func example(ctx context.Context) error {
	dir, err := os.MkdirTemp("", "memory")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	file, err := memory.Open(filepath.Join(dir, "memory.jsonl"))
	if err != nil {
		return err
	}
	outcome := run.Outcome{Status: ledger.StatusAnswered, Answer: []byte(`"port 8443"`)}
	if err := file.AddRun("which port is broken?", outcome); err != nil {
		return err
	}

	g, err := graph.Open(ctx, graph.Config{CacheDir: testcache.Dir()})
	if err != nil {
		return err
	}
	defer g.Close()
	if err := file.Load(ctx, g); err != nil {
		return err
	}
	views, err := g.View(ctx, "broken port", []string{"semantic"})
	if err != nil {
		return err
	}
	fmt.Println(views["semantic"][0]["node"].(map[string]any)["answer"])
	return nil
}
