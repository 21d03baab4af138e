// Package providers wires the providers of this program into one registry,
// with keys and addresses from the environment or from the caller.
//
// A further provider is a folder beside this one, and a line in [New].
package providers

import (
	"cmp"
	"errors"
	"net"
	"net/url"
	"strings"
	"sync"

	"github.com/rlmhq/rlm/repl/llm"
	"github.com/rlmhq/rlm/repl/llm/anthropic"
	"github.com/rlmhq/rlm/repl/llm/openai"
	"github.com/rlmhq/rlm/repl/llm/record"
	"github.com/rlmhq/rlm/repl/llm/scripted"
)

// Config says where models are and who asks them.
type Config struct {
	// Env looks up a variable of the environment, os.Getenv in the command.
	// The variables have the names that the vendors gave them; see docs/models.md.
	Env      func(name string) string
	Keys     map[string]llm.Secret // by provider; over the environment
	BaseURLs map[string]string     // by provider; over the environment
	Default  string                // the provider of names without one; "openai" if empty
	Prices   *llm.PriceTable       // looked into before the table of the program; may be nil
	HTTP     llm.HTTP              // for all providers
	Record   string                // a file that every call is written to, empty for none
	// Replay is a record that answers in place of all models. Keys are not
	// needed then, and no server is asked.
	Replay string
	// Unasked says that no model is going to be asked, only looked up: then what a
	// server needs, an address and a key, may be missing.
	Unasked bool
}

// New returns the registry of all providers. It fails only for a record that
// cannot be opened; what a provider lacks is said when one of its models is
// resolved. Close the registry.
func New(c Config) (*llm.Registry, error) {
	if c.Env == nil {
		c.Env = func(string) string { return "" }
	}
	prices := llm.DefaultPrices()
	if c.Prices != nil {
		prices = c.Prices.Over(prices)
	}
	b := &builder{Config: c, registry: llm.NewRegistry(cmp.Or(c.Default, "openai"), prices)}
	if err := b.openFiles(); err != nil {
		return nil, err
	}
	b.compatible("openai", vendor{key: "OPENAI_API_KEY", url: "OPENAI_BASE_URL", standard: "https://api.openai.com/v1", needsKey: true})
	b.compatible("openrouter", vendor{
		key: "OPENROUTER_API_KEY", url: "OPENROUTER_BASE_URL", standard: "https://openrouter.ai/api/v1", needsKey: true, oldLimit: true,
	})
	b.compatible("ollama", vendor{key: "OLLAMA_API_KEY", url: "OLLAMA_HOST", standard: "http://127.0.0.1:11434", address: ollamaURL, oldLimit: true})
	b.compatible("vllm", vendor{key: "VLLM_API_KEY", url: "VLLM_BASE_URL", standard: "http://127.0.0.1:8000/v1", oldLimit: true})
	b.compatible("litellm", vendor{
		key: "LITELLM_PROXY_API_KEY", url: "LITELLM_PROXY_API_BASE", standard: "http://127.0.0.1:4000", unlisted: true, oldLimit: true,
	})
	b.compatible("azure", vendor{
		key: "AZURE_OPENAI_API_KEY", url: "AZURE_OPENAI_ENDPOINT", needsKey: true, unlisted: true, azure: true,
	})
	b.claude("anthropic", vendor{key: "ANTHROPIC_API_KEY", url: "ANTHROPIC_BASE_URL", standard: "https://api.anthropic.com", needsKey: true})
	b.scripts("scripted")
	return b.registry, nil
}

// vendor is what sets a provider apart.
type vendor struct {
	key, url string // the names of the variables
	standard string // the address if none is set; empty if one must be
	needsKey bool   // at that address; another one may do without
	unlisted bool
	oldLimit bool
	azure    bool
	address  func(string) (string, error) // makes the base URL of what the variable holds
}

// builder fills a registry.
type builder struct {
	Config
	registry *llm.Registry
	log      *record.Log
	replay   *record.Replay
}

// openFiles opens the records.
func (b *builder) openFiles() (err error) {
	if b.Replay != "" {
		if b.replay, err = record.Load(b.Replay); err != nil {
			return err
		}
	}
	if b.Record != "" {
		if b.log, err = record.Open(b.Record); err != nil {
			return err
		}
		b.registry.Own(b.log)
	}
	return nil
}

// server is a provider with connections.
type server interface {
	llm.Provider
	Close() error
}

// register adds a provider that is made once, when its first model is resolved.
func (b *builder) register(name string, open func() (server, error)) {
	once := sync.OnceValues(func() (llm.Provider, error) {
		if b.replay != nil {
			return b.recorded(name, b.replay.Provider(name)), nil
		}
		p, err := open()
		if err != nil {
			return nil, err
		}
		b.registry.Own(p)
		return b.recorded(name, p), nil
	})
	b.registry.Register(name, func(id string) (llm.Provider, string, error) {
		p, err := once()
		return p, id, err
	})
}

// recorded returns the provider, with its calls written down if that is wanted.
func (b *builder) recorded(name string, p llm.Provider) llm.Provider {
	if b.log == nil {
		return p
	}
	return b.log.Wrap(name, p)
}

// reach returns the address and the key of a provider, or an error that says
// what to set.
func (b *builder) reach(name string, v vendor) (base string, key llm.Secret, err error) {
	base = cmp.Or(b.BaseURLs[name], b.Env(v.url), v.standard)
	if base == "" && b.Unasked {
		base = "https://" + name + ".invalid"
	}
	if base == "" {
		return "", key, &llm.Error{Kind: llm.ErrMisconfigured, Provider: name, Message: "set " + v.url + " to the server's address"}
	}
	key = b.Keys[name]
	if key.IsZero() {
		key = llm.NewSecret(b.Env(v.key))
	}
	if key.IsZero() && v.needsKey && !b.Unasked && (base == v.standard || v.standard == "") {
		return "", key, &llm.Error{Kind: llm.ErrNoKey, Provider: name, Message: "set " + v.key}
	}
	if v.address != nil {
		if base, err = v.address(base); err != nil {
			return "", key, &llm.Error{Kind: llm.ErrMisconfigured, Provider: name, Message: v.url, Err: err}
		}
	}
	return base, key, nil
}

// compatible adds a provider that speaks OpenAI's format.
func (b *builder) compatible(name string, v vendor) {
	b.register(name, func() (server, error) {
		base, key, err := b.reach(name, v)
		if err != nil {
			return nil, err
		}
		c := openai.Config{Name: name, BaseURL: base, Key: key, Azure: v.azure, OldTokenLimit: v.oldLimit, Unlisted: v.unlisted, HTTP: b.HTTP}
		if v.azure {
			c.Deployments = cmp.Or(b.Env("AZURE_OPENAI_API_VERSION"), b.Env("OPENAI_API_VERSION"))
			c.BaseURL = strings.TrimSuffix(base, "/") + "/openai"
			if c.Deployments == "" {
				c.BaseURL += "/v1"
			}
		}
		return openai.New(c)
	})
}

// claude adds a provider that speaks Anthropic's format.
func (b *builder) claude(name string, v vendor) {
	b.register(name, func() (server, error) {
		base, key, err := b.reach(name, v)
		if err != nil {
			return nil, err
		}
		base = strings.TrimSuffix(strings.TrimSuffix(base, "/"), "/v1") // some write it, though the vendor's own clients do not
		return anthropic.New(anthropic.Config{Name: name, BaseURL: base, Key: key, HTTP: b.HTTP})
	})
}

// scripts adds the provider whose models are files.
func (b *builder) scripts(name string) {
	b.registry.Register(name, func(path string) (llm.Provider, string, error) {
		if b.replay != nil {
			return b.recorded(name, b.replay.Provider(name)), path, nil
		}
		s, err := scripted.Load(path)
		if err != nil {
			return nil, "", err
		}
		return b.recorded(name, s), path, nil
	})
}

// ollamaPort is where Ollama listens.
const ollamaPort = "11434"

// ollamaURL returns the address of Ollama's OpenAI interface from what its own
// variable holds: a host, with or without scheme and port, and possibly the
// address that the server listens on rather than one to connect to.
func ollamaURL(host string) (string, error) {
	if !strings.Contains(host, "://") {
		host = "http://" + host
	}
	u, err := url.Parse(host)
	if err != nil {
		return "", errors.New("it cannot be parsed as host:port")
	}
	name, port := u.Hostname(), u.Port()
	if ip := net.ParseIP(name); name == "" || ip != nil && ip.IsUnspecified() {
		name = "127.0.0.1"
	}
	if port == "" && u.Scheme == "http" {
		port = ollamaPort
	}
	u.Host = name
	if port != "" {
		u.Host = net.JoinHostPort(name, port)
	}
	u.Path = strings.TrimSuffix(strings.TrimSuffix(u.Path, "/"), "/v1") + "/v1"
	return u.String(), nil
}
