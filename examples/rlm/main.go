// Command rlm answers a question about a file with the loop of recursive language models, from Go.
// Its model is a script of replies in this folder, so it needs neither a key nor a network. To ask
// a real model, name one such as openai/gpt-5.
//
//	go run ./examples/rlm -model scripted/examples/rlm/csv-outliers.yaml \
//	    -context examples/rlm/orders.csv "Find the outliers."
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"sync"

	"github.com/rlmhq/rlm"
	"github.com/rlmhq/rlm/repl/ledger"
	"github.com/rlmhq/rlm/repl/llm/providers"
	"github.com/rlmhq/rlm/repl/run"
	"github.com/rlmhq/rlm/standard"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := answer(ctx, os.Args[1:], os.Stdout, os.Stderr); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1) //nolint:gocritic // the process ends, and the signal with it
	}
}

func answer(ctx context.Context, args []string, stdout, stderr io.Writer) (err error) {
	flags := flag.NewFlagSet("rlm", flag.ContinueOnError)
	model := flags.String("model", "", "the model, such as scripted/FILE.yaml or openai/gpt-5")
	file := flags.String("context", "", "the file to work on")
	contract := flags.String("type", "", "the type of the answer, such as bool")
	if err := flags.Parse(args); err != nil {
		return err
	}

	registry, err := providers.New(providers.Options{Env: os.Getenv})
	if err != nil {
		return err
	}
	engine, err := rlm.New(rlm.Options{Tiers: standard.Tiers(standard.Options{})})
	if err != nil {
		return errors.Join(err, registry.Close())
	}
	defer func() { err = errors.Join(err, engine.Close(), registry.Close()) }()

	var line sync.Mutex // sub-loops report at the same time
	cfg := run.Config{
		Question: flags.Arg(0), Models: registry, Model: *model,
		Budget: ledger.Budget{Calls: 200},
		Bypass: -1, // the files are small, and this demonstrates the loop
		Progress: func(e ledger.Event) {
			line.Lock()
			defer line.Unlock()
			fmt.Fprintf(stderr, "%-4s %-13s %s %s\n", e.Node, e.Kind, e.Status, e.Error)
		},
	}

	if *contract != "" {
		if cfg.Schema, err = json.Marshal(*contract); err != nil {
			return err
		}
	}

	outcome, err := engine.Ask(ctx, rlm.Task{
		Contexts: []rlm.Context{rlm.File(*file)}, Config: cfg,
	})

	fmt.Fprintf(
		stdout, "%s: %s (%d turns, %d sub-loops, %d calls)\n", outcome.Status, outcome.Text(),
		outcome.Turns, outcome.Loops, outcome.Spent.Calls,
	)

	return err
}
