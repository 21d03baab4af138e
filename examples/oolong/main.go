// Command oolong compares three ways to answer questions that require counting over many records,
// in the style of the benchmark OOLONG: a model that receives the whole text, a recursive language
// model, and one that labels the records with map_llm(cover=True). It generates its tasks from a
// seed, and prints a table of the mean scores.
//
//	make eval MODEL=openai/gpt-5-mini
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strconv"
	"strings"

	"github.com/rlmhq/rlm"
	"github.com/rlmhq/rlm/repl/llm/providers"
	"github.com/rlmhq/rlm/standard"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := start(ctx, os.Args[1:], os.Stdout, os.Stderr); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1) //nolint:gocritic // the process ends, and the signal with it
	}
}

func start(ctx context.Context, args []string, stdout, stderr io.Writer) (err error) {
	e := Evaluation{Progress: stderr}
	flags := flag.NewFlagSet("oolong", flag.ContinueOnError)
	flags.StringVar(&e.Model, "model", "", "the model, such as openai/gpt-5-mini")
	flags.StringVar(&e.Root, "root", "", "another model for the root loop, such as scripted/examples/oolong/root.yaml")
	flags.IntVar(&e.Tasks, "tasks", 12, "tasks of each size")
	flags.Uint64Var(&e.Seed, "seed", 1, "seed of the tasks")
	sizes := flags.String("records", "50,200", "numbers of records of a task")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if e.Model == "" {
		return errors.New("no model: pass -model, such as openai/gpt-5-mini; for make, MODEL=")
	}
	for text := range strings.SplitSeq(*sizes, ",") {
		size, err := strconv.Atoi(text)
		if err != nil || size < 20 {
			return fmt.Errorf("-records: %q is not a number of at least 20", text)
		}
		e.Sizes = append(e.Sizes, size)
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

	e.Engine, e.Models = engine, registry
	table, err := e.Run(ctx)
	if err != nil {
		return err
	}
	_, err = fmt.Fprint(stdout, table)
	return err
}
