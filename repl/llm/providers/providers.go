// Package providers connects to model servers: those of vendors, such as OpenAI and Anthropic, and
// local ones, such as Ollama's. Keys and addresses are from the environment, the caller, or the
// file of `rlm keys set`.
//
// [New] returns a [Registry], which turns the name of a model, such as
// "anthropic/claude-sonnet-4-5", into a model that can be called. [Offers] lists what can be used
// here. docs/reference/models.md lists the providers and their variables.
package providers

import (
	"cmp"
	"context"
	"io"
	"sync"

	"github.com/rlmhq/rlm/repl/llm"
	"github.com/rlmhq/rlm/repl/llm/internal/agents"
	"github.com/rlmhq/rlm/repl/llm/internal/calllog"
	"github.com/rlmhq/rlm/repl/llm/internal/httpclient"
	"github.com/rlmhq/rlm/repl/llm/internal/prices"
	"github.com/rlmhq/rlm/repl/llm/scripted"
)

// HTTP sets timeouts, retries and limits of requests to a model server. Zero values mean the
// defaults.
type HTTP = httpclient.HTTP

// Options configure the available models and the access to them.
type Options struct {
	// Env looks up an environment variable, usually os.Getenv. The variables have the names that
	// the vendors use.
	Env      func(name string) string
	Keys     map[string]llm.Secret // by provider; they take precedence over Env
	BaseURLs map[string]string     // by provider; they take precedence over Env
	// KeyFile is the file that `rlm keys set` writes, usually rlm/keys.json in os.UserConfigDir.
	// The file contains keys, or names keys in the system's keyring; Keys and Env take precedence.
	// If KeyFile is empty, no key is read.
	KeyFile string
	Default string // the provider of names without one; "openai" if empty
	HTTP    HTTP   // for all providers
	Prices  string // a price table that takes precedence over servers and the built-in one
	// Windows and Rates take precedence over Prices. Their keys are full names of models, in which
	// * matches any string. A window is in tokens, and only the prices of input and output tokens
	// must be set.
	Windows map[string]int64
	Rates   map[string]llm.Price
	// Sampling applies to requests that do not set their own, by depth: at 0 to the root's own
	// turns, and at each further depth to the calls of its snippets and sub-loops. The last
	// entry also applies to all greater depths.
	Sampling []llm.Sampling
	Record   string // a file to which every call is appended
	// Learned is a folder, such as rlm/servers in os.UserCacheDir, in which the registry stores
	// which parameters servers refuse, so that the next process does not send them. If it is empty,
	// each registry learns them again.
	Learned string
	// Replay is a call log that answers instead of all models, without servers and keys.
	Replay string
	// Unasked means that models are only looked up and never asked. Addresses and keys may then be
	// missing.
	Unasked bool
}

// New returns the registry of all providers. Close it after use.
//
// It fails only for a file that cannot be read. Missing settings of a provider are reported when
// one of its models is resolved.
func New(o Options) (*Registry, error) {
	if o.Env == nil {
		o.Env = func(string) string { return "" }
	}
	if err := checkSampling(o.Sampling); err != nil {
		return nil, err
	}
	own, err := o.table()
	if err != nil {
		return nil, err
	}

	b := &builder{Options: o, registry: &Registry{
		fallback: cmp.Or(o.Default, "openai"), own: own, sampling: o.Sampling, openers: map[string]opener{},
	}}
	if err := b.openFiles(); err != nil {
		return nil, err
	}

	for _, v := range vendors {
		b.addServer(v)
	}
	b.registry.knowsOwn = b.isVendors(b.registry.fallback)
	b.addScripts("scripted")
	b.addAgents("acp")
	return b.registry, nil
}

// table returns the caller's price table.
func (o *Options) table() (*prices.Table, error) {
	own, err := prices.Given(o.Windows, o.Rates)
	if err != nil || o.Prices == "" {
		return own, err
	}
	file, err := prices.Load(o.Prices)
	if err != nil {
		return nil, err
	}
	return own.Over(file), nil
}

// builder fills a registry.
type builder struct {
	Options
	registry *Registry
	log      *calllog.Log
	replay   *calllog.Replay
}

// openFiles opens the call logs.
func (b *builder) openFiles() (err error) {
	if b.Replay != "" {
		if b.replay, err = calllog.Load(b.Replay); err != nil {
			return err
		}
	}

	if b.Record != "" {
		if b.log, err = calllog.Open(b.Record); err != nil {
			return err
		}
		b.registry.keep(b.log)
	}
	return nil
}

// isVendors reports whether the vendor's own server answers for a provider's models.
func (b *builder) isVendors(provider string) bool {
	v, ok := vendorOf(provider)
	if !ok || b.replay != nil {
		return false
	}
	at, err := b.address(v)
	return err == nil && !at.isGiven && !at.isHere()
}

// server is a provider with connections.
type server interface {
	llm.Provider
	io.Closer
	Models(ctx context.Context) ([]string, error)
}

// addServer adds a provider that is created once, when its first model is resolved.
func (b *builder) addServer(v vendor) {
	open := sync.OnceValues(func() (llm.Provider, error) {
		if b.replay != nil {
			return b.wrap(v.name, b.replay.Provider(v.name)), nil
		}
		s, err := b.connect(v)
		if err != nil {
			return nil, err
		}
		b.registry.keep(s)
		return b.wrap(v.name, s), nil
	})
	b.registry.openers[v.name] = func(string) (llm.Provider, error) { return open() }
}

// addScripts adds the provider whose models are files.
func (b *builder) addScripts(name string) {
	b.registry.openers[name] = func(path string) (llm.Provider, error) {
		if b.replay != nil {
			return b.wrap(name, b.replay.Provider(name)), nil
		}
		script, err := scripted.Load(path)
		if err != nil {
			return nil, err
		}
		return b.wrap(name, script), nil
	}
}

// addAgents adds the provider whose models are agent programs, named by their commands. Each
// program is started once, when it is first asked.
func (b *builder) addAgents(name string) {
	var mu sync.Mutex
	known := map[string]llm.Provider{}
	b.registry.openers[name] = func(command string) (llm.Provider, error) {
		if b.replay != nil {
			return b.wrap(name, b.replay.Provider(name)), nil
		}
		mu.Lock()
		defer mu.Unlock()
		if p := known[command]; p != nil {
			return p, nil
		}

		agent, err := agents.New(name, command, b.HTTP.Timeout)
		if err != nil {
			return nil, err
		}
		b.registry.keep(agent)
		known[command] = b.wrap(name, agent)
		return known[command], nil
	}
}

// wrap returns the provider, which records its calls if the caller requested that.
func (b *builder) wrap(name string, p llm.Provider) llm.Provider {
	if b.log == nil {
		return p
	}
	return b.log.Wrap(name, p)
}
