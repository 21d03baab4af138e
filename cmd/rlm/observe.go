package main

import (
	"context"
	"fmt"
	"os"
	"strings"

	"github.com/rlmhq/rlm/repl/ledger"
	"github.com/rlmhq/rlm/repl/llm"
	"github.com/rlmhq/rlm/repl/otel"
)

// observe makes spans of a loop's events where the settings say so, and passes the
// events on. The function that it returns sends what is left; a run ends with it,
// whatever became of the run. That spans cannot be sent is logged and no more.
func observe(
	ctx context.Context, e *env, loop otel.Loop, next func(ledger.Event),
) (progress func(ledger.Event), done func(), err error) {
	log := func(err error) { e.log.Warn("spans were not sent", "error", err) }
	observer, err := otel.New(ctx, otel.Config{
		To:        otel.Destination(e.settings.OTel),
		Loop:      loop,
		Env:       os.Getenv,
		AllowHTTP: e.settings.AllowHTTP,
		Secrets:   secrets(e.settings.Keys, os.Environ()),
		Log:       log,
		Version:   version(),
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

// minSecret is how many bytes a key has at least: a placeholder such as "x" is none,
// and to take it out would spoil every text.
const minSecret = 8

// secrets are the keys of the settings and of the variables that are named like one.
func secrets(keys map[string]string, environ []string) []llm.Secret {
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
		if name, value, _ := strings.Cut(entry, "="); strings.HasSuffix(name, "_API_KEY") {
			add(value)
		}
	}

	return all
}
