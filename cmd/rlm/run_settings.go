package main

import (
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/rlmhq/rlm/cmd/rlm/internal/config"
	"github.com/rlmhq/rlm/repl"
	"github.com/rlmhq/rlm/repl/ledger"
	"github.com/rlmhq/rlm/repl/llm"
	"github.com/rlmhq/rlm/repl/llm/providers"
	loop "github.com/rlmhq/rlm/repl/run"
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
		Env: os.Getenv, Keys: keys, BaseURLs: c.BaseURLs, Default: c.DefaultProvider, Prices: c.Prices,
		Record: c.Record, Replay: c.Replay, Unasked: neverAsked,
		HTTP: providers.HTTP{
			Timeout: c.RequestTimeout, Attempts: int(c.RequestAttempts), AllowHTTP: c.AllowHTTP,
			Wait: func(err *llm.Error, pause time.Duration) {
				e.log.Info("the model call is tried again", "error", err, "pause", pause)
			},
		},
	})
}

// runConfig says by the settings how a run goes. The question is the caller's.
func runConfig(e *env, models ledger.Models) (loop.Config, error) {
	c := e.settings
	trace, err := traceFolder(c.Trace)
	cfg := loop.Config{
		Models: models, Model: c.Model, SubModel: c.SubModel, ByDepth: c.DepthModels, Allowed: c.AllowedModels, MaxReply: int(c.MaxReply),
		Limits: limits(c, repl.DefaultOutput), Deterministic: c.Deterministic,
		Budget: ledger.Budget{
			Calls: c.MaxCalls, Tokens: c.MaxTokens, InputTokens: c.MaxInputTokens, OutputTokens: c.MaxOutputTokens, USD: givenUSD(c), Wall: c.MaxTime,
		},
		MaxDepth: orNone(c.MaxDepth, loop.NoSubLoops), AllowDeep: c.AllowDeep, MaxTurns: int(c.MaxTurns), FeedbackChars: int(c.Feedback),
		CallsAtOnce: int(c.CallsAtOnce), LoopsAtOnce: int(c.LoopsAtOnce), Retries: orNone(c.Retries, loop.NoRetries), CompactAt: c.CompactAt,
		Bypass: c.Bypass, BypassShare: c.BypassShare, NoSynthesis: !c.Synthesis, Trace: trace,
	}
	return cfg, err
}

// givenUSD is the budget of dollars, 0 for the default: a guard against accidents,
// which lets models without a price pass.
func givenUSD(c *config.Loaded) float64 {
	if c.From("max_usd").Kind == config.FromDefault {
		return 0
	}
	return c.MaxUSD
}

// orNone turns a count of zero into what the library calls none.
func orNone(n int64, none int) int {
	if n == 0 {
		return none
	}
	return int(n)
}

// recorded says where the record is if the user left that to the program.
func (e *env) recorded(folder string, quiet bool) {
	if folder != "" && e.settings.Trace == "auto" && !quiet {
		_, _ = fmt.Fprintf(e.stderr, "rlm: the record is in %s\n", printable(folder))
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
			return "", fmt.Errorf("--trace auto: there is no cache directory, name a folder: %w", err)
		}
		dir = filepath.Join(dir, "rlm", "traces")
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return "", fmt.Errorf("--trace auto: %w", err)
		}
		return os.MkdirTemp(dir, time.Now().Format("20060102-150405-"))
	}
	return setting, nil
}
