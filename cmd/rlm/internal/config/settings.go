package config

import (
	"slices"
	"strings"
	"time"

	"github.com/rlmhq/rlm/repl/llm/providers"
)

// Config holds the value of every setting.
type Config struct {
	Tier, MinIsolation, Engine, Python, CacheDir string
	AllowLocal, Deterministic                    bool
	AllowSampled                                 bool
	AllowHost, LocalFolder, With                 []string
	ContextServer                                []string
	IndexURL, Image                              string
	Timeout                                      time.Duration
	Memory, MaxOutput, Fuel                      int64
	Durability                                   string

	Model, SubModel            string
	DepthModels, AllowedModels []string
	DefaultProvider            string
	Keys, BaseURLs             map[string]string
	Prices, Record, Replay     string
	Windows, Rates             map[string]string
	RequestTimeout, Outage     time.Duration
	RequestAttempts, MaxReply  int64
	Temperature, TopP, Seed    []string
	ReasoningEffort            []string
	ExtraBody                  string
	AllowHTTP                  bool

	MaxDepth, MaxTurns                                   int64
	AllowDeep                                            bool
	MaxCalls, MaxTokens, MaxInputTokens, MaxOutputTokens int64
	MaxToolCalls                                         int64
	MaxUSD                                               float64
	MaxTime                                              time.Duration
	CallsAtOnce, LoopsAtOnce, Retries, MaxErrors         int64
	Feedback                                             int64
	Bypass                                               int64
	CompactAt                                            float64
	Preview, Synthesis, ErrorTexts                       bool
	Trace, OTel                                          string
	System                                               string
	Agents                                               map[string]Agent

	Graph                              []string
	GraphErrors, GraphWrite, Remember  string
	GraphRows, GraphBytes, GraphMemory int64
	GraphTimeout                       time.Duration

	MaxIterations, MaxLLMCalls, MaxContextChars, MaxOutputChars int64
	EnableLLMQuery, EnableSubagent                              bool
	SubagentMaxTokens                                           int64
	SubagentTemperature                                         float64
	SubagentSystemPrompt                                        string

	Always, OnLongHorizon, OnLargeOutput, OnManyTraces, OnManyNodes bool
	LargeOutput, ManyTraces, ManyNodes                              int64

	LogLevel, Store string
	NoKeep          bool
	Pictures        string
}

// Group is the topic of a setting, which determines the commands that have its flag.
type Group string

// The groups, in the order of the manual.
const (
	Routing  Group = "routing"
	Limits   Group = "limits"
	Sessions Group = "sessions"
	Models   Group = "models"
	Run      Group = "run"
	Graphs   Group = "graphs"
	Reflect  Group = "reflect"
	Triggers Group = "triggers"
	Program  Group = "program"
)

// Setting is a row of the table.
type Setting struct {
	// Key is the name in a file. The other two spellings are derived from it.
	Key   string
	Group Group
	// Value is the setting's storage.
	Value Value
	// Default is the default value as a string.
	Default string
	// Doc is a one-line description for the manual and for --help.
	Doc string
	// NoFlag keeps the setting off the command line, where other users could read it.
	NoFlag bool
}

// Flag returns the setting's name on the command line, without the dashes.
func (s Setting) Flag() string { return strings.ReplaceAll(s.Key, "_", "-") }

// Variable returns the setting's name in the environment.
func (s Setting) Variable() string { return prefix + strings.ToUpper(s.Key) }

const prefix = "RLM_"

// most is the maximum of counts without a specific maximum.
const most = 1 << 40

// leastMemory is enough memory, in bytes, for a sandbox's interpreter and a few additional
// megabytes.
const leastMemory = 40 << 20

// providerNames are the providers with configurable keys and addresses.
var providerNames = providers.Names()

// The words that some settings accept.
var (
	isolations = []string{"none", "process", "container", "wasm", "kernel"}
	engines    = []string{"auto", "wazero", "aot"}
	// must match package server
	durabilities = []string{"kept", "idle"}
	// must match package pictures
	pictureWays = []string{"auto", "kitty", "iterm", "sixel", "none"}
	logLevels   = []string{"trace", "debug", "info", "warn", "error"}
)

// Settings returns the table of all settings, bound to the fields of c.
func Settings(c *Config) []Setting {
	return slices.Concat(
		routingSettings(c),
		limitSettings(c),
		sessionSettings(c),
		modelSettings(c),
		runSettings(c),
		graphSettings(c),
		reflectSettings(c),
		triggerSettings(c),
		programSettings(c),
	)
}

// row returns a setting of a group. Settings without a default accept an empty value.
func row(group Group, key string, value Value, standard, doc string) Setting {
	return Setting{Key: key, Group: group, Value: value, Default: standard, Doc: doc}
}

// hideFlag keeps a setting off the command line.
func hideFlag(s Setting) Setting {
	s.NoFlag = true
	return s
}

func routingSettings(c *Config) []Setting {
	return []Setting{
		row(Routing, "tier", text{&c.Tier}, "auto",
			"tier that runs code: auto, or a name that rlm tiers lists"),
		row(Routing, "min_isolation", choice{&c.MinIsolation, isolations}, "none",
			"weakest isolation to accept: none, process, container, wasm, kernel"),
		row(Routing, "engine", choice{&c.Engine, engines}, "auto",
			"WebAssembly engine of tier wasm: auto, wazero, aot"),
		row(Routing, "allow_local", toggle{&c.AllowLocal}, "false",
			"also allow tier local: this host's Python in a jail"),
		row(Routing, "allow_host", list{&c.AllowHost}, "",
			"HOST:PORT that snippets may connect to, in tiers docker and local"),
		row(Routing, "context_server", list{&c.ContextServer}, "",
			"servers that --context may name by https:// and s3://, as HOST or HOST:PORT, and no others; "+
				"they may be private (default: all public servers)"),
		row(Routing, "python", text{&c.Python}, "",
			"Python of tier local, as a path or a name (default python3)"),
		row(Routing, "local_folder", list{&c.LocalFolder}, "",
			"further folders that tier local shows to snippets, read-only"),
		row(Routing, "allow_sampled", toggle{&c.AllowSampled}, "false",
			"also allow tier local without a cgroup; rlm then samples its memory"),
		row(Routing, "with", list{&c.With}, "",
			"pure-Python packages for snippets, fetched from PyPI; each as NAME or NAME==VERSION"),
		row(Routing, "image", text{&c.Image}, "",
			"image of tier docker: the name of one built with rlm images build --with, or an ID"),
		row(Routing, "index_url", text{&c.IndexURL}, "",
			"package index to use instead of PyPI (default: PIP_INDEX_URL, as for pip)"),
		row(Routing, "cache_dir", text{&c.CacheDir}, "",
			"folder for compiled code and packages, or none (default: the user's cache directory)"),
	}
}

func limitSettings(c *Config) []Setting {
	return []Setting{
		row(Limits, "timeout", span{&c.Timeout, false}, "30s",
			"time limit of each snippet; waiting for host calls does not count"),
		row(Limits, "memory", size{&c.Memory, false, leastMemory}, "512MiB",
			"memory limit of a sandbox, at least 40MiB"),
		row(Limits, "max_output", size{&c.MaxOutput, true, 0}, "",
			"bytes of output to keep per snippet (default 20000, in runs 1MiB)"),
		row(Limits, "fuel", whole{&c.Fuel, 0, 1 << 62}, "0",
			"work limit of each snippet, in the unit of usage.fuel (--json); 0 for none"),
		row(Limits, "deterministic", toggle{&c.Deterministic}, "false",
			"give snippets a fixed clock and randomness, so that every run has the same result"),
	}
}

func sessionSettings(c *Config) []Setting {
	return []Setting{
		row(Sessions, "durability", choice{&c.Durability, durabilities}, "kept",
			"what sessions of rlm serve keep if the server is killed: kept for all that was answered, "+
				"idle for what was saved at rest"),
	}
}

func modelSettings(c *Config) []Setting {
	return []Setting{
		row(Models, "model", text{&c.Model}, "", "model of the root loop, as provider/name"),
		row(Models, "sub_model", text{&c.SubModel}, "",
			"model of sub-loops and of snippets' calls (default: the value of model)"),
		row(Models, "depth_models", list{&c.DepthModels}, "",
			"model of the loop at each depth from 0; overrides model and sub_model"),
		row(Models, "allowed_models", list{&c.AllowedModels}, "",
			"further models that snippets may name"),
		row(Models, "default_provider", text{&c.DefaultProvider}, "openai",
			"provider of model names without a provider"),
		hideFlag(row(Models, "keys", pairs{&c.Keys, providerNames, hidden}, "",
			"API keys by provider; override the vendors' environment variables")),
		hideFlag(row(Models, "base_urls", pairs{&c.BaseURLs, providerNames, address}, "",
			"server addresses by provider; override the vendors' environment variables")),
		row(Models, "prices", text{&c.Prices}, "",
			"price table file that overrides the built-in prices"),
		row(Models, "window", byModel{&c.Windows, checkWindow}, "",
			"tokens of the models' windows, as TOKENS for all or MODEL=TOKENS; overrides price tables and servers"),
		row(Models, "price", byModel{&c.Rates, checkRate}, "",
			"US dollars per million tokens, as IN:OUT for all or MODEL=IN:OUT; overrides price tables and servers"),
		row(Models, "temperature", byDepth{&c.Temperature, checkTemperature}, "",
			"temperature, 0 to 2; a list with commas sets one for each depth, the root first"),
		row(Models, "top_p", byDepth{&c.TopP, checkTopP}, "",
			"total probability of the likeliest tokens to choose from, up to 1; a list sets one for each depth"),
		row(Models, "seed", byDepth{&c.Seed, checkInteger}, "",
			"seed for the choice of tokens; a list sets one for each depth"),
		row(Models, "reasoning_effort", byDepth{&c.ReasoningEffort, checkWord}, "",
			"reasoning effort of the models, such as low or high; a list sets one for each depth"),
		row(Models, "extra_body", objects{&c.ExtraBody}, "",
			"JSON object whose members are added to each request; a list sets one for each depth, null for none"),
		row(Models, "record", text{&c.Record}, "", "file to write every model call to"),
		row(Models, "replay", text{&c.Replay}, "",
			"file of recorded calls, or run log of rlm runs export, that answers in place of all models"),
		row(Models, "request_timeout", span{&c.RequestTimeout, false}, "10m",
			"time limit of one attempt of a model call"),
		row(Models, "request_attempts", whole{&c.RequestAttempts, 1, 100}, "5",
			"maximum attempts per model call whose replies are late, broken or malformed"),
		row(Models, "outage", span{&c.Outage, true}, "5m",
			"how long to retry a model call while its server is unavailable; 0 for no retries"),
		row(Models, "allow_http", toggle{&c.AllowHTTP}, "false",
			"allow sending a key unencrypted to a server on another host"),
		row(Models, "max_reply", whole{&c.MaxReply, 1, most}, "8192",
			"maximum tokens per reply; doubled in each retry of a sub-call after a cut or empty reply"),
	}
}

func runSettings(c *Config) []Setting {
	return []Setting{
		row(Run, "system", lines{&c.System}, "",
			"instructions for the root model, added to its system prompt"),
		hideFlag(row(Run, "agents", agents{&c.Agents}, "",
			"agents that snippets ask with sub_agent_call; as a variable, in JSON")),
		row(Run, "max_depth", whole{&c.MaxDepth, 0, 100}, "1",
			"maximum depth of sub-loops; 0 for none, above 3 only with allow_deep"),
		row(Run, "allow_deep", toggle{&c.AllowDeep}, "false", "allow a max_depth above 3"),
		row(Run, "max_turns", whole{&c.MaxTurns, 1, 100_000}, "30", "maximum turns per loop"),
		row(Run, "max_calls", whole{&c.MaxCalls, 1, most}, "2000",
			"maximum number of model calls in the whole run"),
		row(Run, "max_tool_calls", whole{&c.MaxToolCalls, 1, most}, "1000",
			"maximum number of tool calls in the whole run"),
		row(Run, "max_tokens", whole{&c.MaxTokens, 1, most}, "55000000",
			"maximum number of tokens in the whole run, prompts and replies together"),
		row(Run, "max_input_tokens", whole{&c.MaxInputTokens, 1, most}, "50000000",
			"maximum number of tokens in all prompts of the run"),
		row(Run, "max_output_tokens", whole{&c.MaxOutputTokens, 1, most}, "5000000",
			"maximum number of tokens in all replies of the run"),
		row(Run, "max_usd", amount{&c.MaxUSD}, "25",
			"maximum cost of the whole run in US dollars; if set, models without a known price are refused"),
		row(Run, "max_time", span{&c.MaxTime, false}, "1h", "time limit of the whole run"),
		row(Run, "calls_at_once", whole{&c.CallsAtOnce, 1, 10_000}, "64",
			"maximum number of concurrent model calls in the whole run"),
		row(Run, "loops_at_once", whole{&c.LoopsAtOnce, 1, 1_000}, "4",
			"maximum number of concurrent sub-loops per loop"),
		row(Run, "retries", whole{&c.Retries, 0, 100}, "2",
			"maximum retries after an answer that breaks its contract, or that is cut or empty"),
		row(Run, "error_texts", toggle{&c.ErrorTexts}, "false",
			"if a single model call in a snippet fails, return the text Error: ... and raise no exception"),
		row(Run, "max_errors", whole{&c.MaxErrors, 0, 100}, "3",
			"end a loop after this many turns in a row with the same failure; 0 for never"),
		row(Run, "feedback", whole{&c.Feedback, 200, 10_000_000}, "20000",
			"characters of a turn's output to show to the model"),
		row(Run, "preview", toggle{&c.Preview}, "true",
			"show the first 200 characters of each input to the root model"),
		row(Run, "compact_at", amount{&c.CompactAt}, "0.7",
			"share of the model's window above which messages are summarised"),
		row(Run, "bypass", whole{&c.Bypass, 0, most}, "4096",
			"answer without a loop if the inputs have at most this many tokens and "+
				"fill at most half of the model's window; 0 for never"),
		row(Run, "synthesis", toggle{&c.Synthesis}, "true",
			"after the last turn, ask once more for the best answer so far"),
		row(Run, "trace", text{&c.Trace}, "none",
			"new folder for the run's record; auto: a folder below the cache directory; none: no record"),
		row(Run, "otel", choice{&c.OTel, []string{"none", "otlp", "opik"}}, "none",
			"destination of the run's spans: none, otlp (set OTEL_EXPORTER_OTLP_*) or opik (set OPIK_*)"),
	}
}

func graphSettings(c *Config) []Setting {
	return []Setting{
		row(Graphs, "graph", list{&c.Graph}, "",
			"knowledge graphs that snippets query: files, or folders of files; repeatable"),
		row(Graphs, "graph_errors", choice{&c.GraphErrors, []string{"return", "raise"}}, "return",
			"effect of a failed graph query in a snippet: return the error, or raise it"),
		row(Graphs, "graph_write", text{&c.GraphWrite}, "",
			"let snippets change the graph, and write all of it to this file at the end"),
		row(Graphs, "graph_rows", whole{&c.GraphRows, 1, 10_000_000}, "10000",
			"maximum rows of a query's result; further rows are cut"),
		row(Graphs, "graph_bytes", size{&c.GraphBytes, false, 1 << 10}, "16MiB",
			"maximum size of a query's result; a larger result is cut"),
		row(Graphs, "graph_timeout", span{&c.GraphTimeout, false}, "30s",
			"time limit of a query"),
		row(Graphs, "graph_memory", size{&c.GraphMemory, false, leastMemory}, "2GiB",
			"memory limit of a graph, 40MiB to 4GiB"),
		row(Graphs, "remember", text{&c.Remember}, "",
			"memory file (.jsonl): the run reads it and adds its findings for later runs"),
	}
}

func reflectSettings(c *Config) []Setting {
	return []Setting{
		row(Reflect, "max_iterations", whole{&c.MaxIterations, 1, 100_000}, "20",
			"maximum iterations per reflection"),
		row(Reflect, "max_llm_calls", whole{&c.MaxLLMCalls, 1, most}, "30",
			"maximum model calls per reflection, including the sub-agent's"),
		row(Reflect, "max_context_chars", whole{&c.MaxContextChars, 1, most}, "50000",
			"trim the messages of a reflection above this many characters"),
		row(Reflect, "max_output_chars", whole{&c.MaxOutputChars, 200, 10_000_000}, "20000",
			"characters of an iteration's output to show to the model of a reflection"),
		row(Reflect, "enable_llm_query", toggle{&c.EnableLLMQuery}, "true",
			"let snippets of a reflection call llm_query and the functions built on it"),
		row(Reflect, "enable_subagent", toggle{&c.EnableSubagent}, "true",
			"let snippets ask sub_model with ask_llm; if false, ask_llm returns a notice"),
		row(Reflect, "subagent_max_tokens", whole{&c.SubagentMaxTokens, 1, most}, "8192",
			"maximum tokens per reply of the sub-agent"),
		row(Reflect, "subagent_temperature", within{&c.SubagentTemperature, 0, 2}, "0.3",
			"temperature of the sub-agent, 0 to 2"),
		row(Reflect, "subagent_system_prompt", text{&c.SubagentSystemPrompt}, "",
			"the sub-agent's prompt in modes other than analysis and deep_dive (default: as in analysis)"),
	}
}

func triggerSettings(c *Config) []Setting {
	return []Setting{
		row(Triggers, "trigger_always", toggle{&c.Always}, "false",
			"let every output trigger a run"),
		row(Triggers, "trigger_on_long_horizon", toggle{&c.OnLongHorizon}, "true",
			"let a task of many steps (--long-horizon) trigger a run"),
		row(Triggers, "trigger_on_large_output", toggle{&c.OnLargeOutput}, "true",
			"let a large output trigger a run"),
		row(Triggers, "trigger_on_many_traces", toggle{&c.OnManyTraces}, "true",
			"let many failure traces trigger a run"),
		row(Triggers, "trigger_on_many_nodes", toggle{&c.OnManyNodes}, "true",
			"let a query that returns many nodes trigger a run"),
		row(Triggers, "large_output_threshold", whole{&c.LargeOutput, 1, most}, "50000",
			"treat output with more characters than this as large"),
		row(Triggers, "trace_threshold", whole{&c.ManyTraces, 1, most}, "500",
			"treat more traces than this as many"),
		row(Triggers, "node_threshold", whole{&c.ManyNodes, 1, most}, "1000",
			"treat more nodes than this as many"),
	}
}

func programSettings(c *Config) []Setting {
	return []Setting{
		row(Program, "log_level", choice{&c.LogLevel, logLevels}, "warn",
			"lowest level to log on stderr: trace, debug, info, warn, error"),
		row(Program, "store", text{&c.Store}, "",
			"folder that keeps named runs and sessions, or none (default: rlm/store in the user's folder for state)"),
		row(Program, "no_keep", toggle{&c.NoKeep}, "false",
			"do not keep the run in the store; otherwise the last 20 runs without --name stay there"),
		row(Program, "pictures", choice{&c.Pictures, pictureWays}, "auto",
			"how to draw pictures on a terminal: auto, kitty, iterm, sixel, none"),
	}
}

// settingKeys returns the keys of a table's settings.
func settingKeys(table []Setting) []string {
	all := make([]string, len(table))
	for i, s := range table {
		all[i] = s.Key
	}
	return all
}
