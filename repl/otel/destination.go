package otel

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"

	"github.com/rlmhq/rlm/internal/text/texts"
)

// Destination names the receiver of spans.
type Destination string

// The destinations.
const (
	// none means that there is no destination, as an empty name does.
	none Destination = "none"
	// OTLP is a collector. OpenTelemetry's library reads its address and headers from the
	// environment of the process: OTEL_EXPORTER_OTLP_ENDPOINT, OTEL_EXPORTER_OTLP_HEADERS and
	// the other variables with that prefix, including OTEL_EXPORTER_OTLP_TRACES_.
	OTLP Destination = "otlp"
	// Opik is an Opik server. It is configured by the variables OPIK_API_KEY, OPIK_WORKSPACE,
	// OPIK_PROJECT_NAME and OPIK_URL_OVERRIDE.
	Opik Destination = "opik"
)

// opikCloud is the API of Opik's hosted service. opikTraces is the path of the OTLP endpoint
// below the API: https://www.comet.com/docs/opik/integrations/opentelemetry.
const (
	opikCloud  = "https://www.comet.com/opik/api"
	opikTraces = "/v1/private/otel/v1/traces"
)

// disabled reports whether the environment turns the destination off.
func (c *Config) disabled() bool {
	off := strings.EqualFold(c.Env("OTEL_SDK_DISABLED"), "true")
	switch c.To {
	case "", none:
		return true
	case Opik:
		return off || isOneOf(c.Env("OPIK_DISABLED"), "true", "1", "yes", "on") ||
			isOneOf(c.Env("OPIK_ENABLED"), "false", "0", "no", "off")
	case OTLP:
		return off || c.Env("OTEL_TRACES_EXPORTER") == "none"
	}

	return false
}

// isOneOf reports whether the value of a variable is one of the words, in any case.
func isOneOf(value string, words ...string) bool {
	return slices.Contains(words, strings.ToLower(strings.TrimSpace(value)))
}

// options returns the exporter's address and headers.
func (c *Config) options() ([]otlptracehttp.Option, error) {
	switch c.To {
	case OTLP:
		return nil, nil
	case Opik:
		return c.opikOptions()
	default:
		return nil, fmt.Errorf("unknown destination %q: use none, otlp or opik", string(c.To))
	}
}

// checkVariables rejects invalid variables. OpenTelemetry's library would ignore them and print
// their values to stderr, and a malformed header is often a key.
func (c *Config) checkVariables() error {
	for _, name := range []string{"OTEL_EXPORTER_OTLP_PROTOCOL", "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL"} {
		if value := c.Env(name); value != "" && value != "http/protobuf" && value != "http/json" {
			return fmt.Errorf(
				"cannot export spans: the protocol %q of %s is not supported: use http/protobuf or http/json",
				texts.Truncate(value, maxName), name,
			)
		}
	}
	for _, check := range []struct {
		name string
		well func(value string) bool
		want string
	}{
		{"ENDPOINT", isAddress, "an address such as http://localhost:4318"},
		{"HEADERS", areHeaders, "NAME=VALUE,NAME=VALUE with values as in a URL"},
		{"TIMEOUT", isNumber, "milliseconds"},
	} {
		for _, prefix := range []string{"OTEL_EXPORTER_OTLP_", "OTEL_EXPORTER_OTLP_TRACES_"} {
			if value := c.Env(prefix + check.name); value != "" && !check.well(value) {
				return fmt.Errorf(
					"cannot export spans: the environment variable %s%s must be %s", prefix, check.name,
					check.want,
				)
			}
		}
	}

	return nil
}

func isAddress(value string) bool {
	at, err := url.Parse(value)
	return err == nil && at.Host != "" && (at.Scheme == "http" || at.Scheme == "https")
}

func areHeaders(value string) bool {
	for pair := range strings.SplitSeq(value, ",") {
		name, value, ok := strings.Cut(pair, "=")
		_, err := url.PathUnescape(value)
		if name = strings.TrimSpace(name); !ok || err != nil || name == "" ||
			strings.ContainsFunc(name, notOfName) {
			return false
		}
	}

	return true
}

// notOfName reports whether a character is invalid in a header's name.
func notOfName(r rune) bool {
	return r > '~' || r <= ' ' || strings.ContainsRune(`"(),/:;<=>?@[\]{}`, r)
}

func isNumber(value string) bool {
	n, err := strconv.Atoi(value)
	return err == nil && n >= 0
}

func (c *Config) opikOptions() ([]otlptracehttp.Option, error) {
	key := c.Env("OPIK_API_KEY")
	base := c.Env("OPIK_URL_OVERRIDE")
	if base == "" {
		base = opikCloud
		if key == "" {
			return nil, errors.New(
				"cannot send spans to Opik: set OPIK_API_KEY, or OPIK_URL_OVERRIDE for your server",
			)
		}
	}

	at, err := url.Parse(strings.TrimRight(base, "/"))
	if err != nil || !isAddress(base) {
		return nil, errors.New(
			"cannot send spans to Opik: OPIK_URL_OVERRIDE must be an address such as " +
				"http://localhost:5173/api",
		)
	}

	if at.User != nil || at.RawQuery != "" || at.Fragment != "" {
		return nil, errors.New(
			"cannot send spans to Opik: OPIK_URL_OVERRIDE must not have a user, query or " +
				"fragment; put keys into OPIK_API_KEY",
		)
	}

	if key != "" && at.Scheme == "http" && !loopback(at.Hostname()) && !c.AllowHTTP {
		return nil, fmt.Errorf(
			"cannot send spans to Opik: OPIK_API_KEY would go unencrypted to %s: use https, or "+
				"set allow_http",
			at.Host,
		)
	}

	if at.Path == "" {
		at.Path = "/api" // the path of a self-hosted server
	}
	at.Path += opikTraces
	headers := map[string]string{}
	for name, value := range map[string]string{
		"Authorization": key, "Comet-Workspace": c.Env("OPIK_WORKSPACE"),
		"projectName": c.project(),
	} {
		if value != "" {
			headers[name] = value
		}
	}

	return []otlptracehttp.Option{
		otlptracehttp.WithEndpointURL(at.String()), otlptracehttp.WithHeaders(headers),
	}, nil
}

func (c *Config) project() string {
	if c.Project != "" {
		return c.Project
	}
	return c.Env("OPIK_PROJECT_NAME")
}

func loopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}
