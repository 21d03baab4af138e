package loops

import (
	"testing"

	"github.com/rlmhq/rlm"
	"github.com/rlmhq/rlm/cmd/rlm/internal/cli"
	"github.com/rlmhq/rlm/cmd/rlm/internal/config"
	"github.com/rlmhq/rlm/cmd/rlm/internal/wiring"
	"github.com/rlmhq/rlm/repl"
	"github.com/rlmhq/rlm/repl/ledger"
	loop "github.com/rlmhq/rlm/repl/run"
	"github.com/rlmhq/rlm/tiers"
)

// TestTheDefaultsOfSettingsAreThoseOfTheLibrary checks that a program that embeds the library
// without setting anything gets the manual's defaults.
func TestTheDefaultsOfSettingsAreThoseOfTheLibrary(t *testing.T) {
	c, err := config.Load(config.Sources{File: config.NoFile})
	if err != nil {
		t.Fatal(err)
	}
	var task rlm.Task
	if err := wiring.Configure(&cli.Env{Settings: c}, &task, nil); err != nil {
		t.Fatal(err)
	}
	setTriggers(c, &task)
	want := loop.Config{}.WithDefaults()
	got := task.Config.WithDefaults()
	for _, pair := range []struct {
		name      string
		got, want any
	}{
		{"budget", got.Budget, ledger.Budget{}.WithDefaults()},
		{"max_usd", c.MaxUSD, ledger.Budget{}.WithDefaults().USD},
		{"max_depth", got.MaxDepth, want.MaxDepth},
		{"max_turns", got.MaxTurns, want.MaxTurns},
		{"feedback", got.FeedbackChars, want.FeedbackChars},
		{"preview", got.NoPreview, want.NoPreview},
		{"calls_at_once", got.CallsAtOnce, want.CallsAtOnce},
		{"loops_at_once", got.LoopsAtOnce, want.LoopsAtOnce},
		{"retries", got.Retries, want.Retries},
		{"max_errors", got.MaxErrors, want.MaxErrors},
		{"max_reply", got.MaxReply, want.MaxReply},
		{"compact_at", got.CompactAt, want.CompactAt},
		{"bypass", got.Bypass, want.Bypass},
		{"synthesis", got.NoSynthesis, want.NoSynthesis},
		{"allow_deep", got.AllowDeep, want.AllowDeep},
		{"trace", got.Trace, want.Trace},
		{"max_output of runs", got.Limits.Output, int64(repl.DefaultOutput)},
		{"timeout", got.Limits.Wall, tiers.Limits{}.WithDefaults().Wall},
		{"judges", defaultJudges, 1},
		{"drafts", defaultDrafts, 3},
		{"clusters", defaultClusters, 20},
		{"no trigger", noTrigger, -1},
		{"triggers", got.Triggers, want.Triggers},
	} {
		if pair.got != pair.want {
			t.Errorf("%s is %v, and %v in the library", pair.name, pair.got, pair.want)
		}
	}
}
