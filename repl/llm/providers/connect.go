package providers

import (
	"cmp"
	"context"
	"fmt"
	"net/url"
	"strings"

	"github.com/rlmhq/rlm/internal/keep/keyring"
	"github.com/rlmhq/rlm/repl/llm"
	"github.com/rlmhq/rlm/repl/llm/internal/anthropic"
	"github.com/rlmhq/rlm/repl/llm/internal/httpclient"
	"github.com/rlmhq/rlm/repl/llm/internal/kind"
	"github.com/rlmhq/rlm/repl/llm/internal/openai"
)

// connect makes the provider of a vendor.
func (b *builder) connect(v vendor) (server, error) {
	at, err := b.locate(v)
	if err != nil {
		return nil, err
	}
	return b.open(v, at)
}

// open makes the provider of a vendor with the address and the key in at.
func (b *builder) open(v vendor, at place) (server, error) {
	policy := b.HTTP
	policy.AtOnce = cmp.Or(policy.AtOnce, v.atOnce)

	if v.format == anthropicFormat {
		// Some addresses include the version, although the vendor's own clients add it.
		base := strings.TrimSuffix(strings.TrimSuffix(at.base, "/"), "/v1")
		return anthropic.New(anthropic.Options{
			Name: v.name, BaseURL: base, Key: at.key, KeyFrom: at.keyFrom, Learned: b.Learned, HTTP: policy,
		})
	}

	o := openai.Options{
		Name: v.name, BaseURL: at.base, Key: at.key, KeyFrom: at.keyFrom,
		OldTokenLimit: v.oldLimit, Unlisted: v.unlisted, Describes: v.describes,
		Local:   v.runs == atLoopback && at.isHere(),
		Learned: b.Learned, HTTP: policy,
	}
	if v.start != "" {
		o.Advice = "start it with " + v.start + ", or set " + v.urlVar
	}
	if v.format == azureFormat {
		o.Azure = true
		o.DeploymentVersion = cmp.Or(b.Env("AZURE_OPENAI_API_VERSION"), b.Env("OPENAI_API_VERSION"))
		o.BaseURL = strings.TrimSuffix(at.base, "/") + "/openai"
		if o.DeploymentVersion == "" {
			o.BaseURL += "/v1"
		}
	}
	return openai.New(o)
}

// place is the address of a vendor's server with the key for it.
type place struct {
	base    string
	isGiven bool // whether the caller or the environment set base
	key     llm.Secret
	keyFrom string // origin of the key, for people: a variable, "the settings" or a store
}

// isHere reports whether the server runs on this machine.
func (p place) isHere() bool {
	u, err := url.Parse(p.base)
	return err == nil && httpclient.IsLoopback(u.Hostname())
}

// locate returns the address and the key of a vendor, or an error that names the missing
// setting.
func (b *builder) locate(v vendor) (place, error) {
	at, err := b.address(v)
	if err != nil {
		return at, err
	}
	if b.Unasked {
		return at, nil
	}

	if at.key, at.keyFrom, err = b.key(v); err != nil {
		return at, &llm.Error{Kind: kind.ErrMisconfigured, Provider: v.name, Err: err}
	}
	isVendors := !at.isGiven || v.defaultURL == ""
	if at.key.Reveal() == "" && v.needsKey && isVendors {
		return at, &llm.Error{Kind: kind.ErrNoKey, Provider: v.name, Message: b.explainNoKey(v)}
	}
	return at, nil
}

// address returns the address of a vendor, without a key.
func (b *builder) address(v vendor) (place, error) {
	given := cmp.Or(b.BaseURLs[v.name], b.Env(v.urlVar))
	at := place{base: cmp.Or(given, v.defaultURL), isGiven: given != "" && given != v.defaultURL}
	if at.base == "" && b.Unasked {
		at.base = "https://" + v.name + ".invalid"
	}
	if at.base == "" {
		return at, &llm.Error{
			Kind: kind.ErrMisconfigured, Provider: v.name,
			Message: "set " + v.urlVar + " to the server's address",
		}
	}

	if v.parseURL == nil && !strings.Contains(at.base, "://") {
		shown := ""
		if !strings.ContainsAny(at.base, "@?#") { // otherwise it may have a password
			shown = fmt.Sprintf(", %q,", at.base)
		}
		return at, &llm.Error{
			Kind: kind.ErrMisconfigured, Provider: v.name,
			Message: fmt.Sprintf("the address in %s%s must begin with http:// or https://", v.urlVar, shown),
		}
	}
	if v.parseURL != nil {
		base, err := v.parseURL(at.base)
		if err != nil {
			return at, &llm.Error{
				Kind: kind.ErrMisconfigured, Provider: v.name, Message: v.urlVar, Err: err,
			}
		}
		at.base = base
	}
	return at, nil
}

// fromSettings is the origin of a key that the caller provided.
const fromSettings = "the settings"

// key returns the key of a vendor and its origin, or zero values if there is none.
func (b *builder) key(v vendor) (key llm.Secret, from string, err error) {
	if key := b.Keys[v.name]; key.Reveal() != "" {
		return key, fromSettings, nil
	}
	for _, name := range v.keyVars {
		if key := llm.NewSecret(b.Env(name)); key.Reveal() != "" {
			return key, name, nil
		}
	}

	stored, from, err := keyring.Ring{File: b.KeyFile}.Get(context.Background(), v.name)
	if err != nil {
		return key, from, fmt.Errorf("%w; or set %s", err, v.keyVars[0])
	}
	return llm.NewSecret(stored), from, nil
}

// explainNoKey explains how to set a vendor's key.
func (b *builder) explainNoKey(v vendor) string {
	text := "set " + strings.Join(v.keyVars, " or ")
	if b.KeyFile != "" {
		text += ", or run rlm keys set " + v.name
	}
	return text
}
