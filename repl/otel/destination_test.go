package otel_test

import (
	"context"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rlmhq/rlm/repl/ledger"
	"github.com/rlmhq/rlm/repl/otel"
)

// arrives sends a few events under an environment and returns the requests that arrived.
func arrives(
	t *testing.T, r *receiver, cfg otel.Config, variables map[string]string,
) []*http.Request {
	t.Helper()
	cfg.Env = environment(t, variables)
	cfg.Log = func(err error) { t.Error(err) }
	o, err := otel.New(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	o.Event(ledger.Event{Kind: ledger.EventRunStarted, Node: "0"})
	o.Event(ledger.Event{Kind: ledger.EventRunEnded, Node: "0"})
	if err := o.Flush(t.Context()); err != nil {
		t.Error(err)
	}
	closed(t, o)
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.requests
}

// TestEnvironmentVariables checks where spans are sent under various environments.
//
// Source 000, repl/otel/destination.go: OPIK_API_KEY, OPIK_WORKSPACE, OPIK_URL_OVERRIDE,
// OPIK_DISABLED=true and OPIK_ENABLED=false.
//
// Source 000, repl/otel/destination.go: Explicit opt-in only: Opik is never auto-enabled.
func TestEnvironmentVariables(t *testing.T) {
	const opikPath = "/api/v1/private/otel/v1/traces"
	for _, c := range []struct {
		name      string
		to        otel.Destination
		project   string
		variables func(url string) map[string]string
		path      string            // empty: nothing must arrive
		headers   map[string]string // headers of the request; an empty value means absent
	}{
		{
			name: "OPIK_API_KEY", to: otel.Opik, path: opikPath,
			headers: map[string]string{
				"Authorization": "key-1", "Comet-Workspace": "",
				"projectName": "",
			},
			variables: func(url string) map[string]string {
				return map[string]string{"OPIK_URL_OVERRIDE": url + "/api", "OPIK_API_KEY": "key-1"}
			},
		},
		{
			name: "OPIK_WORKSPACE", to: otel.Opik, path: opikPath,
			headers: map[string]string{"Comet-Workspace": "team", "Authorization": ""},
			variables: func(url string) map[string]string {
				return map[string]string{
					"OPIK_URL_OVERRIDE": url + "/api/",
					"OPIK_WORKSPACE":    "team",
				}
			},
		},
		{
			name: "OPIK_PROJECT_NAME", to: otel.Opik, path: opikPath,
			headers: map[string]string{"projectName": "mine"},
			variables: func(url string) map[string]string {
				return map[string]string{"OPIK_URL_OVERRIDE": url, "OPIK_PROJECT_NAME": "mine"}
			},
		},
		{
			name: "project_name", to: otel.Opik, project: "given", path: opikPath,
			headers: map[string]string{"projectName": "given"},
			variables: func(url string) map[string]string {
				return map[string]string{"OPIK_URL_OVERRIDE": url, "OPIK_PROJECT_NAME": "mine"}
			},
		},
		{
			name: "OPIK_URL_OVERRIDE", to: otel.Opik,
			path: "/behind/a/proxy/v1/private/otel/v1/traces",
			variables: func(url string) map[string]string {
				return map[string]string{"OPIK_URL_OVERRIDE": url + "/behind/a/proxy"}
			},
		},
		{
			name: "OPIK_DISABLED", to: otel.Opik,
			variables: func(url string) map[string]string {
				return map[string]string{"OPIK_URL_OVERRIDE": url, "OPIK_DISABLED": "true"}
			},
		},
		{
			name: "OPIK_DISABLED=1", to: otel.Opik,
			variables: func(url string) map[string]string {
				return map[string]string{"OPIK_URL_OVERRIDE": url, "OPIK_DISABLED": "1"}
			},
		},
		{
			name: "OPIK_DISABLED=Yes", to: otel.Opik,
			variables: func(url string) map[string]string {
				return map[string]string{"OPIK_URL_OVERRIDE": url, "OPIK_DISABLED": "Yes"}
			},
		},
		{
			name: "OPIK_ENABLED", to: otel.Opik,
			variables: func(url string) map[string]string {
				return map[string]string{"OPIK_URL_OVERRIDE": url, "OPIK_ENABLED": "false"}
			},
		},
		{
			name: "not opted in", to: "none",
			variables: func(url string) map[string]string {
				return map[string]string{
					"OPIK_URL_OVERRIDE": url, "OPIK_API_KEY": "key-1",
					"OTEL_EXPORTER_OTLP_ENDPOINT": url,
				}
			},
		},
		{
			name: "OTEL_EXPORTER_OTLP_ENDPOINT", to: otel.OTLP, path: "/v1/traces",
			variables: func(url string) map[string]string {
				return map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": url}
			},
		},
		{
			name: "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", to: otel.OTLP, path: "/just/here",
			variables: func(url string) map[string]string {
				return map[string]string{
					"OTEL_EXPORTER_OTLP_ENDPOINT":        "http://127.0.0.1:1",
					"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": url + "/just/here",
				}
			},
		},
		{
			name: "OTEL_EXPORTER_OTLP_HEADERS", to: otel.OTLP, path: "/v1/traces",
			headers: map[string]string{"Authorization": "Bearer abc", "X-Team": "a"},
			variables: func(url string) map[string]string {
				return map[string]string{
					"OTEL_EXPORTER_OTLP_ENDPOINT": url,
					"OTEL_EXPORTER_OTLP_HEADERS":  "Authorization=Bearer%20abc,X-Team=a",
				}
			},
		},
		{
			name: "OTEL_EXPORTER_OTLP_COMPRESSION", to: otel.OTLP, path: "/v1/traces",
			headers: map[string]string{"Content-Encoding": "gzip"},
			variables: func(url string) map[string]string {
				return map[string]string{
					"OTEL_EXPORTER_OTLP_ENDPOINT":    url,
					"OTEL_EXPORTER_OTLP_COMPRESSION": "gzip",
				}
			},
		},
		{
			name: "OTEL_EXPORTER_OTLP_PROTOCOL", to: otel.OTLP, path: "/v1/traces",
			headers: map[string]string{"Content-Type": "application/x-protobuf"},
			variables: func(url string) map[string]string {
				return map[string]string{
					"OTEL_EXPORTER_OTLP_ENDPOINT": url,
					"OTEL_EXPORTER_OTLP_PROTOCOL": "http/protobuf",
				}
			},
		},
		{
			name: "OTEL_EXPORTER_OTLP_TIMEOUT", to: otel.OTLP, path: "/v1/traces",
			variables: func(url string) map[string]string {
				return map[string]string{
					"OTEL_EXPORTER_OTLP_ENDPOINT": url,
					"OTEL_EXPORTER_OTLP_TIMEOUT":  "9000",
				}
			},
		},
		{
			name: "OTEL_SDK_DISABLED", to: otel.OTLP,
			variables: func(url string) map[string]string {
				return map[string]string{
					"OTEL_EXPORTER_OTLP_ENDPOINT": url,
					"OTEL_SDK_DISABLED":           "true",
				}
			},
		},
		{
			name: "OTEL_TRACES_EXPORTER", to: otel.OTLP,
			variables: func(url string) map[string]string {
				return map[string]string{
					"OTEL_EXPORTER_OTLP_ENDPOINT": url,
					"OTEL_TRACES_EXPORTER":        "none",
				}
			},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := listen(t)
			requests := arrives(t, r, otel.Config{To: c.to, Project: c.project}, c.variables(r.URL))
			if c.path == "" {
				if len(requests) != 0 {
					t.Errorf("%d requests came", len(requests))
				}
				return
			}
			if len(requests) != 1 || requests[0].URL.Path != c.path ||
				requests[0].Method != http.MethodPost {
				t.Fatalf("the requests: %v", requests)
			}
			for name, want := range c.headers {
				if got := requests[0].Header.Get(name); got != want {
					t.Errorf("%s is %q, not %q", name, got, want)
				}
			}
		})
	}
}

func TestTheResourceIsOfTheEnvironment(t *testing.T) {
	r := listen(t)
	arrives(t, r, otel.Config{To: otel.OTLP}, map[string]string{
		"OTEL_EXPORTER_OTLP_ENDPOINT": r.URL,
		"OTEL_SERVICE_NAME":           "mine",
		"OTEL_RESOURCE_ATTRIBUTES":    "deployment.environment=test",
	})
	if r.resource["service.name"] != "mine" || r.resource["deployment.environment"] != "test" {
		t.Errorf("resource: %v", r.resource)
	}
}

func TestANilObserverDoesNothing(t *testing.T) {
	o, err := otel.New(t.Context(), otel.Config{})
	if o != nil || err != nil {
		t.Fatal(o, err)
	}
	o.Event(ledger.Event{Kind: ledger.EventRunStarted, Node: "0"})
	if err := o.Flush(t.Context()); err != nil {
		t.Error(err)
	}
	if err := o.Close(context.Background()); err != nil {
		t.Error(err)
	}
}

func TestConfigurationsThatCannotWorkAreRefused(t *testing.T) {
	for _, c := range []struct {
		name      string
		to        otel.Destination
		variables map[string]string
		want      string
	}{
		{"no key", otel.Opik, nil, "set OPIK_API_KEY"},
		{
			"no address", otel.Opik,
			map[string]string{"OPIK_URL_OVERRIDE": "localhost:5173"},
			"OPIK_URL_OVERRIDE must be an address",
		},
		{
			"another scheme", otel.Opik,
			map[string]string{"OPIK_URL_OVERRIDE": "ftp://host/api"},
			"OPIK_URL_OVERRIDE must be an address",
		},
		{
			"a password", otel.Opik,
			map[string]string{"OPIK_URL_OVERRIDE": "https://me:hunter2@host/api"},
			"must not have a user",
		},
		{"unencrypted", otel.Opik, map[string]string{
			"OPIK_URL_OVERRIDE": "http://opik.example/api",
			"OPIK_API_KEY":      "key-1",
		}, "would go unencrypted to opik.example"},
		{
			"gRPC", otel.OTLP,
			map[string]string{"OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"},
			`the protocol "grpc" of OTEL_EXPORTER_OTLP_PROTOCOL is not supported: use http/protobuf or http/json`,
		},
		{
			"gRPC for traces", otel.OTLP,
			map[string]string{"OTEL_EXPORTER_OTLP_TRACES_PROTOCOL": "grpc"},
			`the protocol "grpc" of OTEL_EXPORTER_OTLP_TRACES_PROTOCOL is not supported`,
		},
		{
			"no scheme", otel.OTLP,
			map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "localhost:4318"},
			"OTEL_EXPORTER_OTLP_ENDPOINT must be an address",
		},
		{
			"half a header", otel.OTLP,
			map[string]string{"OTEL_EXPORTER_OTLP_HEADERS": "Authorization=a,hunter2"},
			"OTEL_EXPORTER_OTLP_HEADERS must be NAME=VALUE",
		},
		{
			"a bad escape", otel.Opik,
			map[string]string{"OTEL_EXPORTER_OTLP_TRACES_HEADERS": "Authorization=hunter2%"},
			"OTEL_EXPORTER_OTLP_TRACES_HEADERS must be",
		},
		{
			"a bad name", otel.OTLP,
			map[string]string{"OTEL_EXPORTER_OTLP_HEADERS": "a b=hunter2"},
			"OTEL_EXPORTER_OTLP_HEADERS must be",
		},
		{
			"a time", otel.OTLP,
			map[string]string{"OTEL_EXPORTER_OTLP_TIMEOUT": "10s"},
			"OTEL_EXPORTER_OTLP_TIMEOUT must be milliseconds",
		},
		{"another destination", "jaeger", nil, "use none, otlp or opik"},
	} {
		t.Run(c.name, func(t *testing.T) {
			o, err := otel.New(t.Context(), otel.Config{To: c.to, Env: environment(t, c.variables)})
			if o != nil || err == nil || !strings.Contains(err.Error(), c.want) ||
				strings.Contains(err.Error(), "hunter2") || strings.Contains(err.Error(), "key-1") {
				t.Errorf("%s: %v", c.name, err)
			}
		})
	}
	o, err := otel.New(t.Context(), otel.Config{
		To:        otel.Opik,
		AllowHTTP: true,
		Env: environment(
			t,
			map[string]string{
				"OPIK_URL_OVERRIDE": "http://opik.example/api", "OPIK_API_KEY": "key-1",
			},
		),
	})
	if err != nil {
		t.Fatal(err)
	}
	closed(t, o)
}

func TestGenAINamesAreInOneFile(t *testing.T) {
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	var with []string
	for _, name := range files {
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(data), `"gen_ai.`) && !strings.HasSuffix(name, "_test.go") {
			with = append(with, name)
		}
	}
	if !slices.Equal(with, []string{"names.go"}) {
		t.Errorf("gen_ai is in %v", with)
	}
}

func TestAnUnknownLoopIsRefused(t *testing.T) {
	_, err := otel.New(t.Context(), otel.Config{To: otel.OTLP, Loop: "loop"})
	const want = `cannot observe the loop "loop": use one of distill, reflect, reflexion, run, workflow`
	if err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}
