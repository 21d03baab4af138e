package loops

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/rlmhq/rlm"
	"github.com/rlmhq/rlm/cmd/rlm/internal/cli"
	"github.com/rlmhq/rlm/cmd/rlm/internal/wiring"
	"github.com/rlmhq/rlm/internal/keep/store"
)

// maxUnnamed is the number of unnamed runs of a command that stay in the store.
const maxUnnamed = 20

// beginUnnamed generates a name for a run without --name, under which the run is kept, unless the
// user has disabled this.
func (n *nameFlag) beginUnnamed(e *cli.Env, cmd *cobra.Command, given, question string) error {
	if e.Settings.NoKeep {
		return nil
	}
	if dir, err := wiring.StoreFolder(e); err != nil || dir == "" {
		return nil //nolint:nilerr // without a folder for the user's state, nothing is kept
	}
	err := n.describe(e, cmd, given, RunSpec{Question: question, Unnamed: true})
	if err != nil {
		return nil //nolint:nilerr // the current folder is gone: the run itself says so if it matters
	}
	n.kept = unnamedPrefix(cmd.CommandPath()) + time.Now().Format("20060102-150405-") +
		strings.ToLower(rand.Text()[:6])
	return nil
}

// unnamedPrefix returns the beginning of the names of a command's runs, such as "ask-".
func unnamedPrefix(command string) string {
	words := strings.Fields(command)
	return words[min(1, len(words)-1)] + "-"
}

// endUnnamed prints how to continue an incomplete run, and removes the oldest unnamed runs. It
// keeps runs that are still running.
func (n *nameFlag) endUnnamed(ctx context.Context, e *cli.Env, engine *rlm.Engine, reached bool) {
	ctx = context.WithoutCancel(ctx)
	prefix, _, _ := strings.Cut(n.kept, "-")
	if err := removeUnnamed(ctx, engine, prefix+"-"); err != nil {
		e.Log.Warn("cannot remove runs that were kept", "error", err)
	}
	if !reached && !n.quiet && !readsStdin(n.begun) {
		if _, err := engine.ShowRun(ctx, n.kept); err == nil {
			TellResume(e, n.kept, n.more)
		}
	}
}

// readsStdin reports whether a run started with a context or another file from stdin, which another
// process cannot read.
func readsStdin(begun json.RawMessage) bool {
	var spec RunSpec
	if err := json.Unmarshal(begun, &spec); err != nil {
		return true
	}
	for _, arg := range spec.Args {
		if arg == "-" || strings.HasSuffix(arg, "=-") {
			return true
		}
	}
	return false
}

// removeUnnamed removes the unnamed runs with a prefix, except for the latest runs and those that
// wait for a person.
func removeUnnamed(ctx context.Context, engine *rlm.Engine, prefix string) error {
	runs, err := engine.Runs(ctx, rlm.RunFilter{Text: prefix}) // the latest first
	if err != nil {
		return err
	}

	kept := 0
	for i := range runs {
		var spec RunSpec
		isUnnamed := strings.HasPrefix(runs[i].Name, prefix) && json.Unmarshal(runs[i].Begun, &spec) == nil &&
			spec.Unnamed
		if !isUnnamed || len(runs[i].Waiting) > 0 {
			continue
		}
		if kept++; kept <= maxUnnamed {
			continue
		}

		if _, err := engine.ShowRun(ctx, runs[i].Name); errors.Is(err, store.ErrNotFound) {
			continue // another process has removed it
		}
		var owned *store.OwnedError // the run is still running
		err := engine.RemoveRun(ctx, runs[i].Name)
		if err != nil && !errors.Is(err, store.ErrNotFound) && !errors.As(err, &owned) {
			return fmt.Errorf("run %s: %w", runs[i].Name, err)
		}
	}
	return nil
}
