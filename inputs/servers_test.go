package inputs_test

import (
	"bytes"
	"compress/gzip"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/rlmhq/rlm/inputs"
	"github.com/rlmhq/rlm/internal/data/bigtext"
	"github.com/rlmhq/rlm/tiers"
)

// openAddress opens an address of an allowed server.
func openAddress(t *testing.T, o inputs.Options, address string) tiers.Input {
	t.Helper()
	in, err := inputs.Open(t.Context(), o, address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := in.Close(); err != nil {
			t.Error(err)
		}
	})
	return in
}

// nameOf returns the name of a text, which determines how it is read.
func nameOf(t *testing.T, source tiers.Text) string {
	t.Helper()
	text, err := bigtext.Of(t.Context(), source)
	if err != nil {
		t.Fatal(err)
	}
	return text.Name()
}

func wholeText(t *testing.T, source tiers.Text) string {
	t.Helper()
	text, err := bigtext.Of(t.Context(), source)
	if err != nil {
		t.Fatal(err)
	}
	data, err := io.ReadAll(io.NewSectionReader(text, 0, text.Size()))
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func packedText(t *testing.T, text string) string {
	t.Helper()
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	if _, err := io.WriteString(w, text); err != nil || w.Close() != nil {
		t.Fatal(err)
	}
	return packed.String()
}

// An allowed server may lack TLS; the tests of package remote use TLS.
func TestAFileOfAServer(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/a/app.log.gz" {
			http.NotFound(w, r)
			return
		}
		http.ServeContent(w, r, "", time.Now(), strings.NewReader(packedText(t, "Grüße\n")))
	}))
	defer server.Close()
	o := inputs.Options{Servers: []string{server.Listener.Addr().String()}}

	in := openAddress(t, o, server.URL+"/a/app.log.gz")
	if got := wholeText(t, in.Text); got != "Grüße\n" || nameOf(t, in.Text) != "app.log" {
		t.Errorf("%q is %q", nameOf(t, in.Text), got)
	}
	for address, want := range map[string]string{
		server.URL + "/none":       "the server has no such file",
		"https://example.com/none": "not on the list of context servers",
	} {
		if _, err := inputs.Open(t.Context(), o, address); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", address, err)
		}
	}
	_, err := inputs.Open(t.Context(), o, server.URL+"/a/app.log.gz", "options.go")
	if err == nil || !strings.Contains(err.Error(), "make it a context of its own") {
		t.Error(err)
	}
	o.MaxUnpacked = 5
	if _, err := inputs.Open(t.Context(), o, server.URL+"/a/app.log.gz"); err == nil ||
		!strings.Contains(err.Error(), "raise --max-unpacked") {
		t.Error(err)
	}
}
