package otel

import (
	"net/url"
	"strings"

	"github.com/rlmhq/rlm/repl/llm"
)

// clean returns text as valid UTF-8 without secrets.
func (o *Observer) clean(text string) string {
	for _, secret := range o.hidden {
		if value := secret.Reveal(); value != "" {
			text = strings.ReplaceAll(text, value, secret.String())
		}
	}
	return strings.ToValidUTF8(text, "\uFFFD")
}

// secrets returns the strings that no attribute or message may contain: the caller's secrets and
// the exporter's credentials.
func (c *Config) secrets() []llm.Secret {
	all := append([]llm.Secret{}, c.Secrets...)
	all = append(all, llm.NewSecret(c.Env("OPIK_API_KEY")))
	for _, name := range []string{
		"OTEL_EXPORTER_OTLP_HEADERS",
		"OTEL_EXPORTER_OTLP_TRACES_HEADERS",
	} {
		for pair := range strings.SplitSeq(c.Env(name), ",") {
			header, value, _ := strings.Cut(pair, "=")
			if !secretive(header) {
				continue
			}
			all = append(all, llm.NewSecret(value))
			if plain, err := url.PathUnescape(value); err == nil {
				all = append(all, llm.NewSecret(plain))
				if _, bare, ok := strings.Cut(plain, " "); ok { // "Bearer KEY"
					all = append(all, llm.NewSecret(bare))
				}
			}
		}
	}

	return all
}

// secretive reports whether the name of a header marks its value as a secret.
func secretive(header string) bool {
	header = strings.ToLower(header)
	for _, sign := range []string{"auth", "key", "token", "secret", "password", "cookie"} {
		if strings.Contains(header, sign) {
			return true
		}
	}
	return false
}
