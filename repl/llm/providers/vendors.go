package providers

import (
	"cmp"
	"errors"
	"net"
	"net/url"
	"strings"

	"github.com/rlmhq/rlm/repl/llm"
	"github.com/rlmhq/rlm/repl/llm/internal/anthropic"
	"github.com/rlmhq/rlm/repl/llm/internal/kind"
	"github.com/rlmhq/rlm/repl/llm/internal/openai"
)

// format is the format of a vendor's server.
type format int

const (
	openAIFormat format = iota
	azureFormat
	anthropicFormat
)

// vendor describes a provider with a server.
type vendor struct {
	name       string
	format     format
	keyVar     string // the environment variable of the key
	urlVar     string // the environment variable of the address
	defaultURL string // empty if the address has to be set
	needsKey   bool   // at the default address; other addresses may do without
	unlisted   bool   // see openai.Options
	oldLimit   bool   // see openai.Options
	atOnce     int    // requests that the server works on at once; 0: many
	describes  openai.Description
	parseURL   func(string) (string, error)
}

// vendors are all providers with a server. To add one that speaks a known format, add it
// here.
var vendors = []vendor{
	{
		name: "openai", keyVar: "OPENAI_API_KEY", urlVar: "OPENAI_BASE_URL",
		defaultURL: "https://api.openai.com/v1", needsKey: true,
	},
	{
		name: "openrouter", keyVar: "OPENROUTER_API_KEY", urlVar: "OPENROUTER_BASE_URL",
		defaultURL: "https://openrouter.ai/api/v1", needsKey: true, oldLimit: true,
	},
	{
		name: "ollama", keyVar: "OLLAMA_API_KEY", urlVar: "OLLAMA_HOST",
		defaultURL: "http://127.0.0.1:11434", parseURL: parseOllamaHost, oldLimit: true,
		describes: openai.AtOllama, atOnce: 16,
	},
	{
		name: "vllm", keyVar: "VLLM_API_KEY", urlVar: "VLLM_BASE_URL",
		defaultURL: "http://127.0.0.1:8000/v1", oldLimit: true,
	},
	{
		name: "litellm", keyVar: "LITELLM_PROXY_API_KEY", urlVar: "LITELLM_PROXY_API_BASE",
		defaultURL: "http://127.0.0.1:4000", unlisted: true, oldLimit: true,
		describes: openai.AtLiteLLM,
	},
	{
		name: "azure", format: azureFormat,
		keyVar: "AZURE_OPENAI_API_KEY", urlVar: "AZURE_OPENAI_ENDPOINT",
		needsKey: true, unlisted: true,
	},
	{
		name: "anthropic", format: anthropicFormat,
		keyVar: "ANTHROPIC_API_KEY", urlVar: "ANTHROPIC_BASE_URL",
		defaultURL: "https://api.anthropic.com", needsKey: true,
	},
}

// connect makes the provider of a vendor.
func (b *builder) connect(v vendor) (server, error) {
	base, key, err := b.locate(v)
	if err != nil {
		return nil, err
	}

	policy := b.HTTP
	policy.AtOnce = cmp.Or(policy.AtOnce, v.atOnce)
	if v.format == anthropicFormat {
		// Some addresses include the version, though the vendor's own clients add it.
		base = strings.TrimSuffix(strings.TrimSuffix(base, "/"), "/v1")
		return anthropic.New(anthropic.Options{
			Name: v.name, BaseURL: base, Key: key, HTTP: policy,
		})
	}

	o := openai.Options{
		Name: v.name, BaseURL: base, Key: key,
		OldTokenLimit: v.oldLimit, Unlisted: v.unlisted, Describes: v.describes,
		HTTP: policy,
	}
	if v.format == azureFormat {
		o.Azure = true
		o.DeploymentVersion = cmp.Or(b.Env("AZURE_OPENAI_API_VERSION"), b.Env("OPENAI_API_VERSION"))
		o.BaseURL = strings.TrimSuffix(base, "/") + "/openai"
		if o.DeploymentVersion == "" {
			o.BaseURL += "/v1"
		}
	}
	return openai.New(o)
}

// locate returns the address and the key of a vendor, or an error that names the missing
// setting.
func (b *builder) locate(v vendor) (base string, key llm.Secret, err error) {
	base = cmp.Or(b.BaseURLs[v.name], b.Env(v.urlVar), v.defaultURL)
	if base == "" && b.Unasked {
		base = "https://" + v.name + ".invalid"
	}
	if base == "" {
		return "", key, &llm.Error{
			Kind: kind.ErrMisconfigured, Provider: v.name,
			Message: "set " + v.urlVar + " to the server's address",
		}
	}

	key = b.Keys[v.name]
	if key.Reveal() == "" {
		key = llm.NewSecret(b.Env(v.keyVar))
	}
	isVendors := base == v.defaultURL || v.defaultURL == ""
	if key.Reveal() == "" && v.needsKey && isVendors && !b.Unasked {
		return "", key, &llm.Error{
			Kind: kind.ErrNoKey, Provider: v.name, Message: "set " + v.keyVar,
		}
	}

	if v.parseURL != nil {
		if base, err = v.parseURL(base); err != nil {
			return "", key, &llm.Error{
				Kind: kind.ErrMisconfigured, Provider: v.name, Message: v.urlVar, Err: err,
			}
		}
	}
	return base, key, nil
}

// ollamaPort is the port on which Ollama listens.
const ollamaPort = "11434"

// parseOllamaHost returns the address of Ollama's OpenAI interface from the value of Ollama's
// own variable: a host with or without scheme and port. The value may be the address on which
// the server listens, which is not always one to connect to.
func parseOllamaHost(host string) (string, error) {
	if !strings.Contains(host, "://") {
		host = "http://" + host
	}
	u, err := url.Parse(host)
	if err != nil {
		return "", errors.New("cannot parse the value as host:port")
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
