// Command reflexion runs the loop of package reflexion from Go. Its model is a script of replies in
// this folder, so it needs neither a key nor a network. To ask a real model, name one such as
// openai/gpt-5.
//
//	go run ./examples/reflexion -model scripted/examples/reflexion/migrations.yaml \
//	    -evidence examples/reflexion/project "How do I set up database migrations?"
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"

	"github.com/rlmhq/rlm/repl/ledger"
	"github.com/rlmhq/rlm/repl/llm/providers"
	"github.com/rlmhq/rlm/repl/reflexion"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout, os.Stderr); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1) //nolint:gocritic // the process ends, and the signal with it
	}
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) (err error) {
	flags := flag.NewFlagSet("reflexion", flag.ContinueOnError)
	model := flags.String("model", "", "the model, such as scripted/FILE.yaml or openai/gpt-5")
	evidence := flags.String("evidence", "", "a file or folder to search for evidence")
	if err := flags.Parse(args); err != nil {
		return err
	}

	registry, err := providers.New(providers.Options{Env: os.Getenv})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, registry.Close()) }()

	cfg := reflexion.Config{
		Task: flags.Arg(0),
		Memory: reflexion.Memory{
			Facts: []reflexion.Fact{{Content: "Use drizzle-kit for migrations", Confidence: 0.85}},
		},
		Models: registry, Model: *model,
		MaxIterations: 3,
		Budget:        ledger.Budget{Calls: 20},
		Stream:        true,
		Progress: func(e ledger.Event) {
			switch e.Kind {
			case ledger.EventDelta:
				text := e.Text
				if text == "" {
					text = "\n(the reply broke off; it starts again)\n"
				}
				fmt.Fprint(stderr, text)
			case ledger.EventVerdict:
				fmt.Fprintf(stderr, "\n(%d: %s)\n\n", e.Turn, e.Status)
			default:
			}
		},
	}

	if *evidence != "" {
		cfg.Paths = []string{*evidence}
	}
	result, err := reflexion.Run(ctx, cfg)
	if err != nil {
		return err
	}

	fmt.Fprintf(
		stdout, "success: %v (%s), %d iterations, %d calls, %d tokens\n%s\n", result.Success,
		result.Status, len(result.Iterations), result.TotalLLMCalls, result.TotalTokens,
		result.FinalDraft,
	)

	return nil
}
