package acme

import (
	"bytes"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/crypto/acme/autocert"
)

const name = "rlm.example.org"

func TestOptionsAreChecked(t *testing.T) {
	for _, c := range []struct{ authority, host, want string }{
		{"letsencrypt", name, ""},
		{"letsencrypt-staging", name, ""},
		{"https://ca.example.org/directory", name, ""},
		{"http://ca.example.org/directory", name, "unknown authority"},
		{"zerossl", name, "unknown authority"},
		{"letsencrypt", "", "give --host"},
		{"letsencrypt", "10.0.0.1", "no authority certifies"},
		{"letsencrypt", "localhost", "no authority certifies"},
	} {
		o := Options{Authority: c.authority, Dir: t.TempDir()}
		if c.host != "" {
			o.Hosts = []string{c.host}
		}
		if _, err := New(o); (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: got %v", c, err)
		}
	}
}

// TestADamagedEntryIsObtainedAgain checks that a damaged entry is treated as missing, so that the
// server requests a new certificate.
func TestADamagedEntryIsObtainedAgain(t *testing.T) {
	dir, entry := t.TempDir(), []byte("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n")
	var log bytes.Buffer
	cache := sealed{autocert.DirCache(dir), slog.New(slog.NewTextHandler(&log, nil))}
	if err := cache.Put(t.Context(), "host", entry); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "host")
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := cache.Get(t.Context(), "host"); err != nil || !bytes.Equal(got, entry) {
		t.Errorf("got %q, %v", got, err)
	}
	for at := range whole {
		damaged := bytes.Clone(whole)
		damaged[at] ^= 4
		for _, data := range [][]byte{damaged, whole[:at]} {
			if bytes.Equal(bytes.TrimSpace(data), bytes.TrimSpace(entry)) {
				continue // as written by an earlier version
			}
			if err := os.WriteFile(path, data, 0o600); err != nil {
				t.Fatal(err)
			}
			if got, err := cache.Get(t.Context(), "host"); !errors.Is(err, autocert.ErrCacheMiss) {
				t.Errorf("damaged at %d, got %q, %v", at, got, err)
			}
		}
	}
	if !strings.Contains(log.String(), "is damaged") {
		t.Errorf("the log has %s", &log)
	}
	if err := os.WriteFile(path, entry, 0o600); err != nil {
		t.Fatal(err)
	}
	if got, err := cache.Get(t.Context(), "host"); err != nil || !bytes.Equal(got, entry) {
		t.Errorf("an entry of an earlier version: %q, %v", got, err)
	}
}
