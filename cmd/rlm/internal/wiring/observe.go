package wiring

import (
	"context"
	"fmt"
	"os"
	"strings"

	"github.com/rlmhq/rlm/cmd/rlm/internal/cli"
	"github.com/rlmhq/rlm/cmd/rlm/internal/config"
	"github.com/rlmhq/rlm/internal/keep/keyring"
	"github.com/rlmhq/rlm/repl/ledger"
	"github.com/rlmhq/rlm/repl/llm"
	"github.com/rlmhq/rlm/repl/otel"
)

// Observe turns a loop's events into spans if the settings enable them, and passes the events to
// next. The caller must call done after the run, even after a failure, to send the remaining spans.
// Spans that cannot be sent are only logged. conversation is empty if the loop does not belong to
// one.
func Observe(
	ctx context.Context, e *cli.Env, loop, conversation string, next func(ledger.Event),
) (progress func(ledger.Event), done func(), err error) {
	to := otel.Destination(e.Settings.OTel)
	secrets := findSecrets(e.Settings.Keys, os.Environ())
	if to == otel.OTLP || to == otel.Opik {
		stored, err := readStoredKeys(ctx)
		if err != nil {
			return nil, nil, fmt.Errorf("cannot keep stored keys out of the spans (otel): %w", err)
		}
		secrets = append(secrets, stored...)
	}

	log := func(err error) { e.Log.Warn("spans were not sent", "error", err) }
	observer, err := otel.New(ctx, otel.Config{
		To:   to,
		Loop: loop,
		Env:  os.Getenv,

		Conversation: conversation,
		AllowHTTP:    e.Settings.AllowHTTP,
		Secrets:      secrets,
		Log:          log,
		Version:      e.Version,
	})
	if err != nil {
		return nil, nil, fmt.Errorf("cannot observe the run (otel): %w", err)
	}
	if observer == nil {
		return next, func() {}, nil
	}

	return func(event ledger.Event) {
			observer.Event(event)
			next(event)
		}, func() {
			if err := observer.Close(context.WithoutCancel(ctx)); err != nil {
				log(err)
			}
		}, nil
}

// minSecret is the minimum length of a key, in bytes. A shorter value is a placeholder such as "x";
// masking it would make all output unreadable.
const minSecret = 8

// findSecrets returns the keys in the settings and in variables named *_API_KEY or *_API_TOKEN.
func findSecrets(keys map[string]string, environ []string) []llm.Secret {
	var all []llm.Secret
	add := func(value string) {
		if len(value) >= minSecret {
			all = append(all, llm.NewSecret(value))
		}
	}

	for _, key := range keys {
		add(key)
	}
	for _, entry := range environ {
		name, value, _ := strings.Cut(entry, "=")
		if strings.HasSuffix(name, "_API_KEY") || strings.HasSuffix(name, "_API_TOKEN") {
			add(value)
		}
	}

	return all
}

// readStoredKeys returns the keys of rlm keys set.
func readStoredKeys(ctx context.Context) ([]llm.Secret, error) {
	ring := keyring.Ring{File: config.KeysFile()}
	stored, err := ring.List()
	if err != nil {
		return nil, err
	}

	all := make([]llm.Secret, 0, len(stored))
	for _, entry := range stored {
		key, _, err := ring.Get(ctx, entry.Provider)
		if err != nil {
			return nil, err
		}
		all = append(all, llm.NewSecret(key))
	}
	return all, nil
}
