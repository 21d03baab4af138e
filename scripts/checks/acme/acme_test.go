// Package acme tests certificates from an authority like Let's Encrypt.
package acme

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/letsencrypt/pebble/v2/ca"
	"github.com/letsencrypt/pebble/v2/db"
	"github.com/letsencrypt/pebble/v2/va"
	"github.com/letsencrypt/pebble/v2/wfe"
	"github.com/miekg/dns"

	"github.com/rlmhq/rlm/internal/wall/acme"
)

const name = "rlm.example.org"

// authority is Pebble, the test server of Let's Encrypt. It issues certificates for names after it
// has reached them at a port of this machine.
type authority struct {
	*httptest.Server

	directory string
	roots     *x509.CertPool
}

// startAuthority starts an authority. Its certificates are valid for a number of seconds.
func startAuthority(t *testing.T, port int, seconds uint64) *authority {
	t.Helper()
	t.Setenv("PEBBLE_VA_NOSLEEP", "1")
	quiet, store := log.New(io.Discard, "", 0), db.NewMemoryStore()
	issuer := ca.New(quiet, store, "", "ecdsa", 0, 1, map[string]ca.Profile{"default": {ValidityPeriod: seconds}})
	checker := va.New(quiet, 1, port, true, startNames(t), store)
	front := wfe.New(quiet, store, checker, issuer, []string{"example.org"}, true, false, 1, 1)

	a := &authority{httptest.NewTLSServer(front.Handler()), "", x509.NewCertPool()}
	t.Cleanup(a.Close)
	a.directory = a.URL + wfe.DirectoryPath
	if !a.roots.AppendCertsFromPEM(issuer.GetRootCert(0).PEM()) {
		t.Fatal("the authority has no root")
	}
	return a
}

// startNames starts a name server that resolves every name to this machine.
func startNames(t *testing.T) (address string) {
	t.Helper()
	l := listen(t)
	server := &dns.Server{Listener: l, Handler: dns.HandlerFunc(func(w dns.ResponseWriter, asked *dns.Msg) {
		answer := new(dns.Msg).SetReply(asked)
		if q := asked.Question[0]; q.Qtype == dns.TypeA {
			answer.Answer = append(answer.Answer, &dns.A{
				Hdr: dns.RR_Header{Name: q.Name, Rrtype: dns.TypeA, Class: dns.ClassINET},
				A:   net.IPv4(127, 0, 0, 1),
			})
		}
		_ = w.WriteMsg(answer) // to a peer of this test
	})}
	ended := make(chan error, 1)
	go func() { ended <- server.ActivateAndServe() }()
	t.Cleanup(func() {
		_ = l.Close() // ends the server
		if err := <-ended; !errors.Is(err, net.ErrClosed) {
			t.Error(err)
		}
	})
	return l.Addr().String()
}

func listen(t *testing.T) net.Listener {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// served is a server with certificates from an authority.
type served struct {
	*testing.T

	address string
	roots   *x509.CertPool
	options acme.Options
	certs   *acme.Certificates
}

// serve starts an authority, and a server that uses it.
func serve(t *testing.T, dir string, seconds uint64) *served {
	t.Helper()
	l := listen(t)
	port := l.Addr().(*net.TCPAddr).Port //nolint:forcetypeassert // it listens on TCP
	a := startAuthority(t, port, seconds)
	o := acme.Options{
		Hosts: []string{name}, Authority: a.directory, Email: "admin@example.org", Dir: dir,
		Client: a.Client(), Log: slog.New(slog.NewTextHandler(t.Output(), nil)),
	}
	certs, err := acme.New(o)
	if err != nil {
		t.Fatal(err)
	}

	web := &http.Server{
		TLSConfig: certs.Config(), ReadHeaderTimeout: time.Minute, ErrorLog: log.New(io.Discard, "", 0),
		Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "hello") }),
	}
	ended := make(chan error, 1)
	go func() { ended <- web.ServeTLS(l, "", "") }()
	t.Cleanup(func() {
		_ = web.Close() // no request is under way
		if err := <-ended; !errors.Is(err, http.ErrServerClosed) {
			t.Error(err)
		}
	})
	return &served{t, l.Addr().String(), a.roots, o, certs}
}

// connect returns the certificate that a client of a name receives and trusts.
func (s *served) connect(host string, protocols ...string) (*x509.Certificate, error) {
	s.Helper()
	d := tls.Dialer{Config: &tls.Config{
		ServerName: host, RootCAs: s.roots, NextProtos: protocols, MinVersion: tls.VersionTLS12,
	}}
	c, err := d.DialContext(s.Context(), "tcp", s.address)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	return c.(*tls.Conn).ConnectionState().PeerCertificates[0], nil //nolint:forcetypeassert // documented
}

// TestACertificateIsMadeKeptAndRenewed uses an authority that checks the name at the server itself,
// like a real authority.
func TestACertificateIsMadeKeptAndRenewed(t *testing.T) {
	dir := t.TempDir()
	s := serve(t, dir, 8)
	s.certs.Fetch(t.Context())
	first, err := s.connect(name)
	if err != nil {
		t.Fatal(err)
	}

	kept, err := filepath.Glob(filepath.Join(dir, "*", name))
	if err != nil || len(kept) != 1 {
		t.Fatalf("the folder has %v, %v", kept, err)
	}
	if info, err := os.Stat(kept[0]); err != nil || info.Mode().Perm()&0o077 != 0 {
		t.Errorf("others can read the key: %v, %v", info, err)
	}

	end := time.Now().Add(2 * time.Minute)
	for isRenewed := false; !isRenewed; time.Sleep(100 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("no other certificate has come")
		}
		later, err := s.connect(name)
		if wrong, ok := errors.AsType[x509.CertificateInvalidError](err); ok && wrong.Reason == x509.Expired {
			continue // a busy machine may renew late, since a certificate is valid only for seconds
		}
		if err != nil {
			t.Fatal(err)
		}
		isRenewed = later.SerialNumber.Cmp(first.SerialNumber) != 0
	}
}

// broken is an HTTP transport that cannot reach any server.
type broken struct{}

func (broken) RoundTrip(*http.Request) (*http.Response, error) { return nil, errors.New("unreachable") }

// TestAKeptCertificateIsUsedAgain checks that a second server does not contact an authority.
func TestAKeptCertificateIsUsedAgain(t *testing.T) {
	dir := t.TempDir()
	s := serve(t, dir, 3600)
	first, err := s.connect(name)
	if err != nil {
		t.Fatal(err)
	}

	o := s.options
	o.Client = &http.Client{Transport: broken{}}
	again, err := acme.New(o)
	if err != nil {
		t.Fatal(err)
	}
	got, err := again.Config().GetCertificate(&tls.ClientHelloInfo{
		ServerName: name, CipherSuites: []uint16{tls.TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256},
	})
	if err != nil || got.Leaf.SerialNumber.Cmp(first.SerialNumber) != 0 {
		t.Errorf("the second server got another certificate, %v", err)
	}
}

// TestOnlyTheNamedHostsGetCertificates checks that a client cannot make the server request
// certificates for other names.
func TestOnlyTheNamedHostsGetCertificates(t *testing.T) {
	s := serve(t, t.TempDir(), 3600)
	for _, host := range []string{"other.example.org", "x." + name, "localhost"} {
		t.Run(fmt.Sprintf("%.60s", host), func(t *testing.T) {
			if _, err := s.connect(host); err == nil {
				t.Errorf("%s has a certificate", host)
			}
		})
	}
	if _, err := s.connect(name, "acme-tls/1"); err == nil {
		t.Error("a check that nobody asked for is answered")
	}
}

// TestAnAuthorityThatDoesNotReachTheServerMakesNoCertificate checks that the failure is reported,
// and that clients do not receive another certificate.
func TestAnAuthorityThatDoesNotReachTheServerMakesNoCertificate(t *testing.T) {
	closed := listen(t)
	port := closed.Addr().(*net.TCPAddr).Port //nolint:forcetypeassert // it listens on TCP
	if err := closed.Close(); err != nil {
		t.Fatal(err)
	}
	a := startAuthority(t, port, 3600)
	var said strings.Builder
	certs, err := acme.New(acme.Options{
		Hosts: []string{name}, Authority: a.directory, Dir: t.TempDir(), Client: a.Client(),
		Log: slog.New(slog.NewTextHandler(&said, nil)),
	})
	if err != nil {
		t.Fatal(err)
	}

	certs.Fetch(t.Context())
	if !strings.Contains(said.String(), "must reach this server at port 443") {
		t.Errorf("the log has %q", said.String())
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	said.Reset()
	if certs.Fetch(ended); said.Len() > 0 {
		t.Errorf("a server that ends asks on: %q", said.String())
	}
}
