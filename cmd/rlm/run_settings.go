package main

import (
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/rlmhq/rlm"
	"github.com/rlmhq/rlm/cmd/rlm/internal/config"
	"github.com/rlmhq/rlm/repl/ledger"
	"github.com/rlmhq/rlm/repl/llm"
	"github.com/rlmhq/rlm/repl/llm/providers"
)

// registry makes the registry of models by the settings. Close it. Models that are
// never asked need no key.
func registry(e *env, neverAsked bool) (*providers.Registry, error) {
	c := e.settings
	keys := map[string]llm.Secret{}
	for provider, key := range c.Keys {
		keys[provider] = llm.NewSecret(key)
	}
	return providers.New(providers.Options{
		Env:      os.Getenv,
		Keys:     keys,
		BaseURLs: c.BaseURLs,
		Default:  c.DefaultProvider,
		Prices:   c.Prices,
		Record:   c.Record,
		Replay:   c.Replay,
		Unasked:  neverAsked,
		HTTP: providers.HTTP{
			Timeout: c.RequestTimeout, Attempts: int(c.RequestAttempts), AllowHTTP: c.AllowHTTP,
			Wait: func(err *llm.Error, pause time.Duration) {
				e.log.Info("the model call is tried again", "error", err, "pause", pause)
			},
		},
	})
}

// runOutput is how many bytes of a snippet's output a run keeps.
const runOutput = 1 << 20

// configure gives a task what the settings say of runs.
func configure(e *env, task *rlm.AnswerTask, models ledger.Models) (err error) {
	c, cfg := e.settings, &task.Config
	cfg.Models, cfg.Model, cfg.SubModel = models, c.Model, c.SubModel
	cfg.ByDepth, cfg.Allowed, cfg.MaxReply = c.DepthModels, c.AllowedModels, int(c.MaxReply)
	cfg.Limits, cfg.Deterministic = limits(c, runOutput), c.Deterministic
	cfg.Budget = budget(c)
	cfg.MaxDepth, cfg.AllowDeep = zeroToNone(c.MaxDepth), c.AllowDeep
	cfg.MaxTurns, cfg.FeedbackChars = int(c.MaxTurns), int(c.Feedback)
	cfg.CallsAtOnce, cfg.LoopsAtOnce = int(c.CallsAtOnce), int(c.LoopsAtOnce)
	cfg.Retries, cfg.CompactAt = zeroToNone(c.Retries), c.CompactAt
	cfg.Bypass, cfg.BypassShare, cfg.NoSynthesis = c.Bypass, c.BypassShare, !c.Synthesis
	cfg.Trace, err = traceFolder(c.Trace)
	return err
}

// budget returns the bounds of a whole run.
func budget(c *config.Loaded) ledger.Budget {
	return ledger.Budget{
		Calls:        c.MaxCalls,
		Tokens:       c.MaxTokens,
		InputTokens:  c.MaxInputTokens,
		OutputTokens: c.MaxOutputTokens,
		USD:          usdBudget(c),
		Wall:         c.MaxTime,
	}
}

// usdBudget is the budget of dollars, 0 for the default: a guard against accidents,
// which lets models without a price pass.
func usdBudget(c *config.Loaded) float64 {
	if c.From("max_usd").Kind == config.FromDefault {
		return 0
	}
	return c.MaxUSD
}

// zeroToNone turns a count of zero into -1, which the library takes for none: its zero is the
// default.
func zeroToNone(n int64) int {
	if n == 0 {
		return -1
	}
	return int(n)
}

// recorded says where the record is if the user left that to the program.
func (e *env) noteRecord(folder string, quiet bool) {
	if folder != "" && e.settings.Trace == "auto" && !quiet {
		_, _ = fmt.Fprintf(e.stderr, "rlm: the record is in %s\n", escape(folder))
	}
}

// traceFolder is where a run's record goes, empty for nowhere.
func traceFolder(setting string) (string, error) {
	switch setting {
	case "", "none":
		return "", nil
	case "auto":
		dir, err := os.UserCacheDir()
		if err != nil {
			return "", fmt.Errorf("--trace auto: there is no cache directory, name a folder: %w",
				err)
		}
		dir = filepath.Join(dir, "rlm", "traces")
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return "", fmt.Errorf("--trace auto: %w", err)
		}
		return os.MkdirTemp(dir, time.Now().Format("20060102-150405-"))
	}

	return setting, nil
}
