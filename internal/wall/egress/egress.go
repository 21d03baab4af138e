// Package egress is the only way from a sandbox to the network: an HTTP proxy on the host. It
// allows connections only to a list of endpoints.
//
// The sandbox has no network. It reaches the proxy over a private connection, which no other
// process of the host can use. The proxy resolves names itself, refuses every address that is not
// public, and connects to the very address that it checked.
//
// The proxy does not decrypt TLS, so a sandbox can use a listed host to reach other names that this
// host serves inside TLS. For a host with credentials, the proxy itself uses TLS, and the sandbox
// uses plain HTTP.
package egress

import (
	"cmp"
	"context"
	"crypto/x509"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"net/netip"
	"path/filepath"
	"slices"

	"github.com/rlmhq/rlm/internal/wall/egress/endpoints"
)

// Options configure a Proxy.
type Options struct {
	// MaxBytes bounds the traffic of all connections in both directions, in bytes; 0 means 1 GiB.
	// Beyond this limit, the proxy refuses everything.
	MaxBytes int64
	// Inject holds the headers to add to requests to a host, by HOST:PORT. They are hidden from
	// guests.
	Inject map[string]http.Header
	// Resolve, Dial and Roots are for tests. Nil means the default of the host.
	Resolve func(ctx context.Context, host string) ([]netip.Addr, error)
	Dial    func(ctx context.Context, network, address string) (net.Conn, error)
	Roots   *x509.CertPool
	// Log receives every refusal.
	Log *slog.Logger
}

// withDefaults fills in unset fields.
func (o Options) withDefaults() Options {
	o.Log = cmp.Or(o.Log, slog.New(slog.DiscardHandler))
	if o.MaxBytes == 0 {
		o.MaxBytes = 1 << 30
	}
	if o.Resolve == nil {
		o.Resolve = func(ctx context.Context, host string) ([]netip.Addr, error) {
			return net.DefaultResolver.LookupNetIP(ctx, "ip", host)
		}
	}
	if o.Dial == nil {
		o.Dial = (&net.Dialer{Timeout: dialTime}).DialContext
	}
	return o
}

// New returns the proxy of a session that may reach hosts, each as HOST:PORT. Without hosts it
// returns nil. The proxy serves no requests until Serve is called.
func New(hosts []string, options Options) (*Proxy, error) {
	allow, err := endpoints.ParseAll(hosts)
	if err != nil || len(allow) == 0 {
		return nil, err
	}
	known, err := newCredentials(options.Inject)
	if err != nil {
		return nil, err
	}
	maps.DeleteFunc(known, func(e endpoints.Endpoint, _ *credentials) bool { return !slices.Contains(allow, e) })
	return newProxy(allow, known, options.withDefaults()), nil
}

// Certificates is the path of the authorities' certificates in a guest.
const Certificates = "/etc/ssl/certs/ca-certificates.crt"

// Environment returns the variables that make a guest's libraries use a proxy on this port of
// 127.0.0.1 in the guest.
func Environment(port int) []string {
	env := []string{
		"NO_PROXY=", "no_proxy=",
		"SSL_CERT_FILE=" + Certificates, "REQUESTS_CA_BUNDLE=" + Certificates,
	}
	for _, name := range []string{"HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"} {
		env = append(env, fmt.Sprintf("%s=http://127.0.0.1:%d", name, port))
	}
	return env
}

// HostCertificates returns the path of the authorities' certificates on this host, or an empty
// string if they are not in a usual place.
func HostCertificates() string {
	for _, path := range []string{
		Certificates,
		"/etc/pki/tls/certs/ca-bundle.crt",
		"/etc/ssl/ca-bundle.pem",
		"/etc/ssl/cert.pem",
	} {
		if file, err := filepath.EvalSymlinks(path); err == nil {
			return file
		}
	}
	return ""
}
