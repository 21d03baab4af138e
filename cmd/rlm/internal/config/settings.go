package config

import (
	"strings"
	"time"
)

// Config has the value of every setting.
type Config struct {
	Tier, MinIsolation, Python, CacheDir string
	AllowLocal, Deterministic            bool
	AllowHost                            []string
	Timeout                              time.Duration
	Memory, MaxOutput, Fuel              int64

	Model, SubModel            string
	DepthModels, AllowedModels []string
	DefaultProvider            string
	Keys, BaseURLs             map[string]string
	Prices, Record, Replay     string
	RequestTimeout             time.Duration
	RequestAttempts, MaxReply  int64
	AllowHTTP                  bool

	MaxDepth, MaxTurns                                   int64
	AllowDeep                                            bool
	MaxCalls, MaxTokens, MaxInputTokens, MaxOutputTokens int64
	MaxUSD                                               float64
	MaxTime                                              time.Duration
	CallsAtOnce, LoopsAtOnce, Retries                    int64
	Feedback                                             int64
	CompactAt, BypassShare                               float64
	Bypass, Synthesis                                    bool
	Trace, OTel                                          string

	MaxIterations, MaxLLMCalls, MaxContextChars, MaxOutputChars int64
	EnableLLMQuery, EnableSubagent                              bool
	SubagentMaxTokens                                           int64
	SubagentTemperature                                         float64
	SubagentSystemPrompt                                        string

	Always, OnLongHorizon, OnLargeOutput, OnManyTraces, OnManyNodes bool
	LargeOutput, ManyTraces, ManyNodes                              int64

	LogLevel string
}

// Group says what a setting is about, and so which commands have its flag.
type Group string

// The groups, in the order of the manual.
const (
	Routing  Group = "routing"
	Limits   Group = "limits"
	Models   Group = "models"
	Run      Group = "run"
	Reflect  Group = "reflect"
	Triggers Group = "triggers"
	Program  Group = "program"
)

// Setting is a row of the table.
type Setting struct {
	// Key is the name in a file. The other two spellings follow from it.
	Key   string
	Group Group
	// Value is where it is kept.
	Value Value
	// Default is the text of the value that holds if nothing else is given.
	Default string
	// Doc is a line for the manual and for --help.
	Doc string
	// NoFlag keeps it off the command line, where other users could read it.
	NoFlag bool
}

// Flag is the setting's name on the command line, without the dashes.
func (s Setting) Flag() string { return strings.ReplaceAll(s.Key, "_", "-") }

// Variable is the setting's name in the environment.
func (s Setting) Variable() string { return prefix + strings.ToUpper(s.Key) }

const prefix = "RLM_"

// most bounds counts that have no other bound.
const most = 1 << 40

// leastMemory is what a sandbox needs for its interpreter and a few megabytes more.
const leastMemory = 40 << 20

// providers are whose keys and addresses can be set.
var providers = []string{"anthropic", "azure", "litellm", "ollama", "openai", "openrouter", "vllm"}

// Settings is the table of all settings, bound to the fields of c.
func Settings(c *Config) []Setting {
	return []Setting{
		{Key: "tier", Group: Routing, Value: text{&c.Tier}, Default: "auto", Doc: "where code runs: auto, or one that rlm tiers lists"},
		{Key: "min_isolation", Group: Routing, Value: choice{&c.MinIsolation, []string{"none", "process", "container", "wasm", "kernel"}}, Default: "none", Doc: "weakest wall to accept: none, process, container, wasm, kernel"},
		{Key: "allow_local", Group: Routing, Value: toggle{&c.AllowLocal}, Default: "false", Doc: "also use tier local: this host's Python in a jail"},
		{Key: "allow_host", Group: Routing, Value: list{&c.AllowHost}, Doc: "HOST:PORT that snippets may connect to, where the tier has a way out"},
		{Key: "python", Group: Routing, Value: text{&c.Python}, Doc: "the Python of tier local, a path or a name (default python3)"},
		{Key: "cache_dir", Group: Routing, Value: text{&c.CacheDir}, Doc: "where compiled code is kept, none for nowhere (default: the user's cache directory)"},
		{Key: "timeout", Group: Limits, Value: span{&c.Timeout}, Default: "30s", Doc: "time each snippet may take; waiting for host calls is free"},
		{Key: "memory", Group: Limits, Value: size{&c.Memory, false, leastMemory}, Default: "512MiB", Doc: "memory of a sandbox, at least 40MiB"},
		{Key: "max_output", Group: Limits, Value: size{&c.MaxOutput, true, 0}, Doc: "bytes of output kept of each snippet (default 20000, in runs 1MiB)"},
		{Key: "fuel", Group: Limits, Value: whole{&c.Fuel, 0, 1 << 62}, Default: "0", Doc: "work each snippet may do, as --json counts it; 0 for no such bound"},
		{Key: "deterministic", Group: Limits, Value: toggle{&c.Deterministic}, Default: "false", Doc: "fixed clock and randomness in snippets: the same result in every run"},

		{Key: "model", Group: Models, Value: text{&c.Model}, Doc: "the root loop's model, as provider/name"},
		{Key: "sub_model", Group: Models, Value: text{&c.SubModel}, Doc: "the model of sub-loops and of snippets' calls (default: model)"},
		{Key: "depth_models", Group: Models, Value: list{&c.DepthModels}, Doc: "the loop's model for each depth from 0, over model and sub_model"},
		{Key: "allowed_models", Group: Models, Value: list{&c.AllowedModels}, Doc: "further models that snippets may ask by name"},
		{Key: "default_provider", Group: Models, Value: text{&c.DefaultProvider}, Default: "openai", Doc: "the provider of model names without one"},
		{Key: "keys", Group: Models, Value: pairs{&c.Keys, providers, hidden}, NoFlag: true, Doc: "keys by provider, over the variables that the vendors named"},
		{Key: "base_urls", Group: Models, Value: pairs{&c.BaseURLs, providers, address}, NoFlag: true, Doc: "servers' addresses by provider, over the vendors' variables"},
		{Key: "prices", Group: Models, Value: text{&c.Prices}, Doc: "a price table that goes before the built-in one"},
		{Key: "record", Group: Models, Value: text{&c.Record}, Doc: "a file that every model call is written to"},
		{Key: "replay", Group: Models, Value: text{&c.Replay}, Doc: "such a file, which answers in place of all models"},
		{Key: "request_timeout", Group: Models, Value: span{&c.RequestTimeout}, Default: "10m", Doc: "time one attempt of a model call may take"},
		{Key: "request_attempts", Group: Models, Value: whole{&c.RequestAttempts, 1, 100}, Default: "5", Doc: "how often a model call is tried at most"},
		{Key: "allow_http", Group: Models, Value: toggle{&c.AllowHTTP}, Default: "false", Doc: "let a key go unencrypted to a server on another host"},
		{Key: "max_reply", Group: Models, Value: whole{&c.MaxReply, 1, most}, Default: "8192", Doc: "tokens of one reply"},

		{Key: "max_depth", Group: Run, Value: whole{&c.MaxDepth, 0, 100}, Default: "1", Doc: "how deep sub-loops may nest; 0 for none, above 3 only with allow_deep"},
		{Key: "allow_deep", Group: Run, Value: toggle{&c.AllowDeep}, Default: "false", Doc: "allow a max_depth above 3"},
		{Key: "max_turns", Group: Run, Value: whole{&c.MaxTurns, 1, 100_000}, Default: "30", Doc: "turns of each loop"},
		{Key: "max_calls", Group: Run, Value: whole{&c.MaxCalls, 1, most}, Default: "2000", Doc: "model calls of the whole run"},
		{Key: "max_tokens", Group: Run, Value: whole{&c.MaxTokens, 1, most}, Default: "55000000", Doc: "tokens of the whole run, in and out together"},
		{Key: "max_input_tokens", Group: Run, Value: whole{&c.MaxInputTokens, 1, most}, Default: "50000000", Doc: "tokens of all prompts of the run"},
		{Key: "max_output_tokens", Group: Run, Value: whole{&c.MaxOutputTokens, 1, most}, Default: "5000000", Doc: "tokens of all replies of the run"},
		{Key: "max_usd", Group: Run, Value: amount{&c.MaxUSD}, Default: "25", Doc: "US dollars of the whole run; if it is given, models without a known price are refused"},
		{Key: "max_time", Group: Run, Value: span{&c.MaxTime}, Default: "1h", Doc: "time of the whole run"},
		{Key: "calls_at_once", Group: Run, Value: whole{&c.CallsAtOnce, 1, 10_000}, Default: "16", Doc: "model calls in flight in the whole run"},
		{Key: "loops_at_once", Group: Run, Value: whole{&c.LoopsAtOnce, 1, 1_000}, Default: "4", Doc: "sub-loops that one loop has under way"},
		{Key: "retries", Group: Run, Value: whole{&c.Retries, 0, 100}, Default: "2", Doc: "how often an answer that breaks its contract is asked for again"},
		{Key: "feedback", Group: Run, Value: whole{&c.Feedback, 200, 10_000_000}, Default: "20000", Doc: "characters of a turn's output that a model is shown"},
		{Key: "compact_at", Group: Run, Value: amount{&c.CompactAt}, Default: "0.7", Doc: "share of the model's window at which messages are summed up"},
		{Key: "bypass", Group: Run, Value: toggle{&c.Bypass}, Default: "false", Doc: "answer by one call, without a loop, if the input fits the model's window"},
		{Key: "bypass_share", Group: Run, Value: amount{&c.BypassShare}, Default: "0.5", Doc: "share of the window that the input may fill for that"},
		{Key: "synthesis", Group: Run, Value: toggle{&c.Synthesis}, Default: "true", Doc: "at the end of the turns ask once more, for the best answer so far"},
		{Key: "trace", Group: Run, Value: text{&c.Trace}, Default: "none", Doc: "a new folder for the run's record; auto makes one below the cache directory, none keeps none"},
		{Key: "otel", Group: Run, Value: choice{&c.OTel, []string{"none", "otlp", "opik"}}, Default: "none", Doc: "send the run's spans: otlp by the OTEL_EXPORTER_OTLP_* variables, opik by the OPIK_* variables"},

		{Key: "max_iterations", Group: Reflect, Value: whole{&c.MaxIterations, 1, 100_000}, Default: "20", Doc: "iterations of a reflection"},
		{Key: "max_llm_calls", Group: Reflect, Value: whole{&c.MaxLLMCalls, 1, most}, Default: "30", Doc: "model calls of a reflection, the sub-agent's included"},
		{Key: "max_context_chars", Group: Reflect, Value: whole{&c.MaxContextChars, 1, most}, Default: "50000", Doc: "characters from which on the messages of a reflection are trimmed"},
		{Key: "max_output_chars", Group: Reflect, Value: whole{&c.MaxOutputChars, 200, 10_000_000}, Default: "20000", Doc: "characters of an iteration's output that the model of a reflection is shown"},
		{Key: "enable_llm_query", Group: Reflect, Value: toggle{&c.EnableLLMQuery}, Default: "true", Doc: "let snippets of a reflection call llm_query and what is built on it"},
		{Key: "enable_subagent", Group: Reflect, Value: toggle{&c.EnableSubagent}, Default: "true", Doc: "let ask_llm ask sub_model; otherwise it says that it is disabled"},
		{Key: "subagent_max_tokens", Group: Reflect, Value: whole{&c.SubagentMaxTokens, 1, most}, Default: "8192", Doc: "tokens of a sub-agent's reply"},
		{Key: "subagent_temperature", Group: Reflect, Value: within{&c.SubagentTemperature, 0, 2}, Default: "0.3", Doc: "temperature of the sub-agent, 0 to 2"},
		{Key: "subagent_system_prompt", Group: Reflect, Value: text{&c.SubagentSystemPrompt}, Doc: "the sub-agent's in modes other than analysis and deep_dive (default: that of analysis)"},

		{Key: "trigger_always", Group: Triggers, Value: toggle{&c.Always}, Default: "false", Doc: "every output triggers a run"},
		{Key: "trigger_on_long_horizon", Group: Triggers, Value: toggle{&c.OnLongHorizon}, Default: "true", Doc: "a task that is marked as long triggers a run"},
		{Key: "trigger_on_large_output", Group: Triggers, Value: toggle{&c.OnLargeOutput}, Default: "true", Doc: "a large output triggers a run"},
		{Key: "trigger_on_many_traces", Group: Triggers, Value: toggle{&c.OnManyTraces}, Default: "true", Doc: "many failure traces trigger a run"},
		{Key: "trigger_on_many_nodes", Group: Triggers, Value: toggle{&c.OnManyNodes}, Default: "true", Doc: "a query that returns many nodes triggers a run"},
		{Key: "large_output_threshold", Group: Triggers, Value: whole{&c.LargeOutput, 1, most}, Default: "50000", Doc: "characters above which an output is large"},
		{Key: "trace_threshold", Group: Triggers, Value: whole{&c.ManyTraces, 1, most}, Default: "500", Doc: "traces above which they are many"},
		{Key: "node_threshold", Group: Triggers, Value: whole{&c.ManyNodes, 1, most}, Default: "1000", Doc: "nodes above which they are many"},

		{Key: "log_level", Group: Program, Value: choice{&c.LogLevel, []string{"trace", "debug", "info", "warn", "error"}}, Default: "warn", Doc: "how much to log on stderr: trace, debug, info, warn, error"},
	}
}

// keys are the names of a table's settings.
func keys(table []Setting) []string {
	all := make([]string, len(table))
	for i, s := range table {
		all[i] = s.Key
	}
	return all
}
