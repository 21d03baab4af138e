package wiring

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/rlmhq/rlm"
	"github.com/rlmhq/rlm/cmd/rlm/internal/cli"
	"github.com/rlmhq/rlm/cmd/rlm/internal/config"
	"github.com/rlmhq/rlm/repl/ledger"
	"github.com/rlmhq/rlm/repl/llm"
	"github.com/rlmhq/rlm/repl/llm/providers"
	"github.com/rlmhq/rlm/repl/run"
)

// OpenModels makes the registry of models from the settings. The caller must close it. If
// neverAsked is set, models need no key.
func OpenModels(e *cli.Env, neverAsked bool) (*providers.Registry, error) {
	options, err := ModelOptions(e)
	if err != nil {
		return nil, err
	}
	options.Unasked = neverAsked
	return providers.New(options)
}

// ModelOptions returns the options of the registry of models from the settings.
func ModelOptions(e *cli.Env) (providers.Options, error) {
	c := e.Settings
	keys := map[string]llm.Secret{}
	for provider, key := range c.Keys {
		keys[provider] = llm.NewSecret(key)
	}
	outage := c.Outage
	if outage == 0 {
		outage = -1
	}

	samplings, err := c.Samplings()
	if err != nil {
		return providers.Options{}, err
	}
	windows, rates, err := facts(c)
	if err != nil {
		return providers.Options{}, err
	}

	return providers.Options{
		Env:      os.Getenv,
		Keys:     keys,
		BaseURLs: c.BaseURLs,
		KeyFile:  config.KeysFile(),
		Default:  c.DefaultProvider,
		Prices:   c.Prices,
		Windows:  windows,
		Rates:    rates,
		Sampling: samplings,
		Record:   c.Record,
		Replay:   c.Replay,
		Learned:  learnedFolder(e),
		HTTP: providers.HTTP{
			Timeout: c.RequestTimeout, Attempts: int(c.RequestAttempts), AllowHTTP: c.AllowHTTP,
			Outage: outage,
			Wait: func(err *llm.Error, pause time.Duration) {
				e.Log.Info("retrying the model call", "error", err, "pause", pause)
			},
		},
	}, nil
}

// learnedFolder returns the folder for records of what servers refuse, or "" if there is none.
func learnedFolder(e *cli.Env) string {
	dir := cacheFolder(e)
	if dir == "" {
		return ""
	}
	return filepath.Join(dir, "servers")
}

// cacheFolder returns the folder for caches, or "" if there is none.
func cacheFolder(e *cli.Env) string {
	dir := e.Settings.CacheDir
	if dir == "none" {
		return ""
	}
	user, err := os.UserCacheDir()
	if dir == "" && err == nil {
		dir = filepath.Join(user, "rlm")
	}
	return dir
}

// facts returns the windows and prices in the settings.
func facts(c *config.Loaded) (map[string]int64, map[string]llm.Price, error) {
	windows, rates := map[string]int64{}, map[string]llm.Price{}
	for model, text := range c.Windows {
		window, err := config.ParseWindow(text)
		if err != nil {
			return nil, nil, err
		}
		windows[model] = window
	}
	for model, text := range c.Rates {
		in, out, err := config.ParseRate(text)
		if err != nil {
			return nil, nil, err
		}
		rates[model] = llm.Price{Input: in, Output: out}
	}
	return windows, rates, nil
}

// RunOutput is the default limit of a snippet's output in a run, in bytes.
const RunOutput = 1 << 20

// Configure copies the run settings into a task.
func Configure(e *cli.Env, task *rlm.Task, models ledger.Models) (err error) {
	c, cfg := e.Settings, &task.Config
	cfg.Models, cfg.Model, cfg.SubModel = models, c.Model, c.SubModel
	cfg.System, cfg.Agents = c.System, c.ReplAgents()
	cfg.DepthModels, cfg.AllowedModels, cfg.MaxReply = c.DepthModels, c.AllowedModels, int(c.MaxReply)
	cfg.Limits, cfg.Deterministic = Limits(c, RunOutput), c.Deterministic
	cfg.Budget = Budget(c)
	cfg.MaxDepth, cfg.AllowDeep = zeroToNone(c.MaxDepth), c.AllowDeep
	cfg.MaxTurns, cfg.FeedbackChars = int(c.MaxTurns), int(c.Feedback)
	cfg.NoPreview = !c.Preview
	cfg.CallsAtOnce, cfg.LoopsAtOnce = int(c.CallsAtOnce), int(c.LoopsAtOnce)
	cfg.ErrorTexts = c.ErrorTexts
	cfg.Retries, cfg.MaxErrors, cfg.CompactAt = zeroToNone(c.Retries), zeroToNone(c.MaxErrors), c.CompactAt
	cfg.Bypass, cfg.NoSynthesis = zeroToNone(c.Bypass), !c.Synthesis
	cfg.Trace, err = TraceFolder(c.Trace)
	return err
}

// Budget returns the budget of a whole run.
func Budget(c *config.Loaded) ledger.Budget {
	return ledger.Budget{
		Calls:        c.MaxCalls,
		ToolCalls:    c.MaxToolCalls,
		Tokens:       c.MaxTokens,
		InputTokens:  c.MaxInputTokens,
		OutputTokens: c.MaxOutputTokens,
		USD:          usdBudget(c),
		Wall:         c.MaxTime,
	}
}

// usdBudget returns the budget in US dollars, or 0 if it is the default, which only guards against
// accidents and must not exclude models without a price.
func usdBudget(c *config.Loaded) float64 {
	if c.From("max_usd").Kind == config.FromDefault {
		return 0
	}
	return c.MaxUSD
}

// zeroToNone turns 0 into -1, because in the library -1 means none, and 0 means the default.
func zeroToNone(n int64) int {
	if n == 0 {
		return -1
	}
	return int(n)
}

// NoteRecord prints the folder of the record, if the program chose it.
func NoteRecord(e *cli.Env, folder string, quiet bool) {
	if folder != "" && e.Settings.Trace == "auto" && !quiet {
		_, _ = fmt.Fprintf(e.Stderr, "rlm: the record is in %s\n", cli.Escape(folder))
	}
}

// TraceFolder returns the folder for a run's record, or "" for none.
func TraceFolder(setting string) (string, error) {
	switch setting {
	case "", "none":
		return "", nil
	case "auto":
		dir, err := os.UserCacheDir()
		if err != nil {
			return "", fmt.Errorf("--trace auto: cannot find the cache directory: %w; name a folder", err)
		}
		dir = filepath.Join(dir, "rlm", "traces")
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return "", fmt.Errorf("--trace auto: %w", err)
		}
		return os.MkdirTemp(dir, time.Now().Format("20060102-150405-"))
	}

	return setting, nil
}

// HasModel reports whether the settings name a model.
func HasModel(e *cli.Env) bool {
	return e.Settings.Model != "" || len(e.Settings.DepthModels) > 0
}

// ErrNoModel is the error of a command that needs a model.
var ErrNoModel = errors.New(
	"no model: give --model, such as openai/gpt-5, or set model in the configuration; " +
		"rlm models lists those that are available here")

// RequireModel refuses a run without a usable model before an engine is created. The run itself
// checks later that the servers are available.
func RequireModel(task *rlm.Task) error {
	cfg := &task.Config
	if cfg.Model == "" && len(cfg.DepthModels) == 0 {
		return ErrNoModel
	}

	return CheckModels(cfg.Models, ModelNames(cfg))
}

// ModelNames returns the names of all models of a run; some may be empty.
func ModelNames(cfg *run.Config) []string {
	names := slices.Concat([]string{cfg.Model, cfg.SubModel}, cfg.DepthModels, cfg.AllowedModels)
	for _, agent := range cfg.Agents {
		names = append(names, agent.Model)
	}
	return names
}

// CheckModels returns an error for the first unknown model. It ignores empty names.
func CheckModels(models ledger.Models, names []string) error {
	for _, name := range names {
		if name == "" {
			continue
		}
		if _, err := models.Resolve(name); err != nil {
			return fmt.Errorf("cannot use model %s: %w", name, err)
		}
	}

	return nil
}
