// Package acme obtains a server's certificates from an authority and renews them. The authority
// checks a name by connecting to the server itself (TLS-ALPN-01), so no other port is needed.
package acme

import (
	"cmp"
	"context"
	"crypto/sha256"
	"crypto/tls"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/crypto/acme"
	"golang.org/x/crypto/acme/autocert"
)

// Options configure certificates.
type Options struct {
	// Hosts are the names of the server. No certificate is requested for any other name.
	Hosts []string
	// Authority is letsencrypt, letsencrypt-staging or the https URL of a directory.
	Authority string
	// Email, if set, is the e-mail address for the authority's warnings.
	Email string
	// Dir is the folder of keys and certificates.
	Dir string
	// Client, if set, sends the requests to the authority.
	Client *http.Client
	Log    *slog.Logger
}

// directories maps the names of well-known authorities to the URLs of their directories.
var directories = map[string]string{
	"letsencrypt":         acme.LetsEncryptURL,
	"letsencrypt-staging": "https://acme-staging-v02.api.letsencrypt.org/directory",
}

// longest bounds a request to the authority.
const longest = time.Minute

// Certificates manages the certificates of a server.
type Certificates struct {
	hosts   []string
	manager *autocert.Manager
	log     *slog.Logger
}

// New checks the options. Calling it implies acceptance of the authority's terms.
func New(o Options) (*Certificates, error) {
	directory := cmp.Or(directories[o.Authority], o.Authority)
	parsed, err := url.Parse(directory)
	if err != nil || parsed.Scheme != "https" || parsed.Host == "" {
		return nil, fmt.Errorf("unknown authority %.100s: give letsencrypt, letsencrypt-staging or the "+
			"https address of a directory", o.Authority)
	}
	if len(o.Hosts) == 0 {
		return nil, errors.New("a certificate needs a name: give --host")
	}
	for _, host := range o.Hosts {
		if net.ParseIP(host) != nil || !strings.Contains(strings.Trim(host, "."), ".") {
			return nil, fmt.Errorf("no authority certifies %.100s: give a name of the public DNS", host)
		}
	}

	// Each authority has its own folder, because a staging certificate must never reach real
	// clients.
	sum := sha256.Sum256([]byte(directory))
	folder := filepath.Join(o.Dir, hex.EncodeToString(sum[:8]))
	client := cmp.Or(o.Client, &http.Client{Timeout: longest})
	return &Certificates{o.Hosts, &autocert.Manager{
		Prompt: func(terms string) bool {
			o.Log.Info("the terms of the authority are accepted", "terms", terms)
			return true
		},
		Cache: sealed{autocert.DirCache(folder), o.Log}, HostPolicy: autocert.HostWhitelist(o.Hosts...), Email: o.Email,
		Client: &acme.Client{DirectoryURL: directory, HTTPClient: client, UserAgent: "rlm"},
	}, o.Log}, nil
}

// Config returns the TLS configuration of a listener.
func (c *Certificates) Config() *tls.Config {
	config := c.manager.TLSConfig()
	config.MinVersion = tls.VersionTLS12
	return config
}

// Fetch obtains the certificates that are not in the folder yet, so that the first clients need not
// wait, and starts the renewal of all certificates. The listener must already be serving. If Fetch
// fails for a name, the next connection tries again.
func (c *Certificates) Fetch(ctx context.Context) {
	for _, host := range c.hosts {
		if ctx.Err() != nil {
			return
		}
		_, err := c.manager.GetCertificate(&tls.ClientHelloInfo{
			ServerName: host, CipherSuites: []uint16{tls.TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256},
		})
		if err != nil {
			c.log.Error("cannot get a certificate: the authority must reach this server at port 443 of the name",
				"host", host, "error", err)
		}
	}
}
