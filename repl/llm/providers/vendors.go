package providers

import (
	"errors"
	"net"
	"net/url"
	"slices"
	"strings"

	"github.com/rlmhq/rlm/repl/llm/internal/openai"
)

// format is the format of a vendor's server.
type format int

const (
	openAIFormat format = iota
	azureFormat
	anthropicFormat
)

// locality says where a vendor's models run, which determines their cost if no price is known.
type locality int

const (
	elsewhere  locality = iota // at the vendor or behind a proxy; the price is unknown
	atLoopback                 // on this machine, if the address is loopback
	atHome                     // on a machine of the user, at any address
)

// vendor describes a provider with a server.
type vendor struct {
	name        string
	title       string // for people
	example     string // a name of a model
	format      format
	keyVars     []string // the environment variables of the key; the first that is set wins
	urlVar      string   // the environment variable of the address
	addressNote string   // for the manual
	defaultURL  string   // empty if the user must set the address
	needsKey    bool     // at the default address; other addresses may need none
	unlisted    bool     // see openai.Options
	oldLimit    bool     // see openai.Options
	atOnce      int      // requests that the server handles concurrently; 0: many
	runs        locality
	start       string // how to start the user's own server; empty for other servers
	describes   openai.Description
	parseURL    func(string) (string, error)
	aka         []string // other names that users try
	families    []string // beginnings of the names of its models
}

// vendors holds all providers with a server. A provider with a supported format only needs an entry
// here. docs/reference/models.md has the same table.
var vendors = []vendor{
	{
		name: "openai", title: "OpenAI", example: "gpt-5",
		keyVars: []string{"OPENAI_API_KEY"}, urlVar: "OPENAI_BASE_URL",
		addressNote: "with `/v1`; then the key is optional",
		defaultURL:  "https://api.openai.com/v1", needsKey: true, runs: atLoopback,
		aka: []string{"gpt", "chatgpt"}, families: []string{"gpt-", "chatgpt-", "o1", "o3", "o4"},
	},
	{
		name: "anthropic", title: "Anthropic", example: "claude-sonnet-4-5", format: anthropicFormat,
		keyVars: []string{"ANTHROPIC_API_KEY"}, urlVar: "ANTHROPIC_BASE_URL",
		defaultURL: "https://api.anthropic.com", needsKey: true,
		aka: []string{"claude"}, families: []string{"claude-"},
	},
	{
		name: "gemini", title: "Google Gemini", example: "gemini-2.5-pro",
		keyVars: []string{"GEMINI_API_KEY", "GOOGLE_API_KEY"}, urlVar: "GEMINI_BASE_URL",
		defaultURL: "https://generativelanguage.googleapis.com/v1beta/openai", needsKey: true, oldLimit: true,
		aka: []string{"google", "googleai"}, families: []string{"gemini-", "gemma-"},
	},
	{
		name: "groq", title: "Groq", example: "llama-3.3-70b-versatile",
		keyVars: []string{"GROQ_API_KEY"}, urlVar: "GROQ_BASE_URL",
		defaultURL: "https://api.groq.com/openai/v1", parseURL: parseGroqURL, needsKey: true, oldLimit: true,
	},
	{
		name: "mistral", title: "Mistral", example: "mistral-large-latest",
		keyVars: []string{"MISTRAL_API_KEY"}, urlVar: "MISTRAL_BASE_URL",
		defaultURL: "https://api.mistral.ai/v1", needsKey: true, oldLimit: true,
		aka:      []string{"mistralai"},
		families: []string{"mistral-", "ministral-", "magistral-", "codestral-", "devstral-"},
	},
	{
		name: "deepseek", title: "DeepSeek", example: "deepseek-chat",
		keyVars: []string{"DEEPSEEK_API_KEY"}, urlVar: "DEEPSEEK_BASE_URL",
		defaultURL: "https://api.deepseek.com/v1", needsKey: true, oldLimit: true,
		families: []string{"deepseek-"},
	},
	{
		name: "openrouter", title: "OpenRouter", example: "anthropic/claude-sonnet-4.5",
		keyVars: []string{"OPENROUTER_API_KEY"}, urlVar: "OPENROUTER_BASE_URL",
		defaultURL: "https://openrouter.ai/api/v1", needsKey: true, oldLimit: true,
	},
	{
		name: "azure", title: "Azure OpenAI", example: "my-deployment", format: azureFormat,
		keyVars: []string{"AZURE_OPENAI_API_KEY"}, urlVar: "AZURE_OPENAI_ENDPOINT",
		needsKey: true, unlisted: true,
	},
	{
		name: "ollama", title: "Ollama", example: "llama3.2",
		keyVars: []string{"OLLAMA_API_KEY"}, urlVar: "OLLAMA_HOST",
		addressNote: "as `host:port` or a URL",
		defaultURL:  "http://127.0.0.1:11434", parseURL: parseOllamaHost, oldLimit: true,
		describes: openai.AtOllama, atOnce: 16, runs: atHome, start: "ollama serve",
		families: []string{"llama", "qwen", "gemma", "phi", "smollm", "gpt-oss"},
	},
	{
		name: "lmstudio", title: "LM Studio", example: "qwen/qwen3-4b-2507",
		keyVars: []string{"LM_API_TOKEN"}, urlVar: "LM_STUDIO_API_BASE",
		addressNote: "with `/v1`",
		defaultURL:  "http://127.0.0.1:1234/v1", oldLimit: true, runs: atHome, start: "lms server start",
		aka: []string{"lm-studio", "lm_studio"},
	},
	{
		name: "llamacpp", title: "llama.cpp", example: "qwen2.5-coder-1.5b",
		keyVars: []string{"LLAMACPP_API_KEY"}, urlVar: "LLAMACPP_BASE_URL",
		addressNote: "with `/v1`",
		defaultURL:  "http://127.0.0.1:8080/v1", oldLimit: true, runs: atHome,
		start: "llama-server -m MODEL.gguf",
		aka:   []string{"llama.cpp", "llama-cpp", "llama-server", "llamafile"},
	},
	{
		name: "vllm", title: "vLLM", example: "meta-llama/Llama-3.1-8B",
		keyVars: []string{"VLLM_API_KEY"}, urlVar: "VLLM_BASE_URL",
		addressNote: "with `/v1`",
		defaultURL:  "http://127.0.0.1:8000/v1", oldLimit: true, runs: atLoopback,
		start: "vllm serve MODEL",
	},
	{
		name: "litellm", title: "LiteLLM's proxy", example: "my-model",
		keyVars: []string{"LITELLM_PROXY_API_KEY"}, urlVar: "LITELLM_PROXY_API_BASE",
		defaultURL: "http://127.0.0.1:4000", unlisted: true, oldLimit: true,
		describes: openai.AtLiteLLM, start: "litellm --config FILE",
	},
}

// vendorOf returns the vendor with a name, or false.
func vendorOf(name string) (vendor, bool) {
	i := slices.IndexFunc(vendors, func(v vendor) bool { return v.name == name })
	if i < 0 {
		return vendor{}, false
	}
	return vendors[i], true
}

// KeyVariables returns the environment variables that may hold the key of a provider; the first
// that is set wins. It returns nil for an unknown provider.
func KeyVariables(provider string) []string {
	v, _ := vendorOf(provider)
	return slices.Clone(v.keyVars)
}

// Names returns the names of all providers with a server, hosted services first.
func Names() []string {
	names := make([]string, len(vendors))
	for i := range vendors {
		names[i] = vendors[i].name
	}
	return names
}

// ollamaPort is the port on which Ollama listens.
const ollamaPort = "11434"

// parseOllamaHost returns the address of Ollama's OpenAI interface from the value of Ollama's
// own variable: a host with or without scheme and port. The value may be the address on which the
// server listens, which is not always an address to connect to.
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

// parseGroqURL adds the path of Groq's OpenAI interface to an address without one, as Groq's own
// clients do.
func parseGroqURL(base string) (string, error) {
	u, err := url.Parse(base)
	if err != nil {
		return "", errors.New("cannot parse the value as a URL")
	}
	if strings.Trim(u.Path, "/") == "" {
		u.Path = "/openai/v1"
	}
	return u.String(), nil
}
