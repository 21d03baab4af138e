// Package objects tests contexts from a store with the S3 protocol.
package objects

import (
	"bytes"
	"compress/gzip"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/johannesboyne/gofakes3"
	"github.com/johannesboyne/gofakes3/backend/s3mem"

	"github.com/rlmhq/rlm/inputs"
	"github.com/rlmhq/rlm/internal/data/bigtext"
	"github.com/rlmhq/rlm/tiers"
)

// openAddress opens an address of the store.
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

// startStore starts a store with the S3 protocol, sets its address in the environment, and puts
// objects into the bucket "logs".
func startStore(t *testing.T, objects map[string]string) {
	t.Helper()
	store := s3mem.New()
	server := httptest.NewServer(gofakes3.New(store, gofakes3.WithLogger(gofakes3.DiscardLog())).Server())
	t.Cleanup(server.Close)
	for name, value := range map[string]string{
		"AWS_ENDPOINT_URL": server.URL, "AWS_ENDPOINT_URL_S3": "", "AWS_ACCESS_KEY_ID": "key",
		"AWS_SECRET_ACCESS_KEY": "secret", "AWS_REGION": "us-east-1", "AWS_SESSION_TOKEN": "",
	} {
		t.Setenv(name, value)
	}
	if err := store.CreateBucket("logs"); err != nil {
		t.Fatal(err)
	}
	for key, text := range objects {
		about := map[string]string{"Last-Modified": time.Now().UTC().Format(http.TimeFormat)}
		_, err := store.PutObject("logs", key, about, strings.NewReader(text), int64(len(text)), nil)
		if err != nil {
			t.Fatal(err)
		}
	}
}

func TestObjectsOfAStore(t *testing.T) {
	startStore(t, map[string]string{
		"2026/a.log": "line a\n", "2026/b.log.gz": packedText(t, "line b\n"), "2026/deep/c.txt": "line c\n",
		"2026/page.html": "<h1>Head</h1><p>text", "2025/old.log": "old\n", "2026/": "", "2026/../up": "unsafe",
	})
	in := openAddress(t, inputs.Options{}, "s3://logs/2026/a.log")
	if got := wholeText(t, in.Text); got != "line a\n" || nameOf(t, in.Text) != "a.log" {
		t.Errorf("%q is %q", nameOf(t, in.Text), got)
	}

	for address, want := range map[string][]string{
		"s3://logs/2026/":         {"a.log", "b.log.gz", "deep/c.txt", "page.html"},
		"s3://logs/2026":          {"a.log", "b.log.gz", "deep/c.txt", "page.html"},
		"s3://logs/2026/*.log*":   {"a.log", "b.log.gz"},
		"s3://logs/**/{old,c}.*":  {"2025/old.log", "2026/deep/c.txt"},
		"s3://logs/2026/deep/c.*": {"c.txt"},
	} {
		t.Run(address, func(t *testing.T) {
			in := openAddress(t, inputs.Options{}, address)
			names := slices.Sorted(slices.Values(in.Dir.Names()))
			if !slices.Equal(names, want) {
				t.Errorf("%s: %q, want %q", address, names, want)
			}
		})
	}

	in = openAddress(t, inputs.Options{Exclude: []string{"deep"}}, "s3://logs/2026/")
	dir := in.Dir.(*bigtext.Dir)
	for name, want := range map[string]string{"b.log.gz": "line b\n", "page.html": "Head"} {
		t.Run(name, func(t *testing.T) {
			text, err := dir.Text(t.Context(), name)
			if err != nil {
				t.Fatal(err)
			}
			if got := wholeText(t, text); !strings.Contains(got, want) {
				t.Errorf("%s: %q", name, got)
			}
		})
	}
	notes := strings.Join(in.Notes, "\n")
	for _, want := range []string{"1 file or folder by --exclude", "1 object with an unsafe name", "from gzip"} {
		if !strings.Contains(notes, want) {
			t.Errorf("no note %q: %q", want, notes)
		}
	}
}

func TestObjectsThatCannotBeRead(t *testing.T) {
	startStore(t, map[string]string{"a": strings.Repeat("x", 1000), "b": strings.Repeat("x", 1000)})
	for address, want := range map[string]string{
		"s3://logs/none": "no object has a key that begins like this", "s3://other/a": "the store has no such bucket",
		"s3://other/": "the store has no such bucket", "s3:///a": "write s3://BUCKET/KEY",
		"s3://logs/[": "is malformed", "s3://logs/": "the objects have 2.0 KiB together",
		"s3://logs/a": "raise --max-unpacked",
	} {
		t.Run(address, func(t *testing.T) {
			_, err := inputs.Open(t.Context(), inputs.Options{MaxUnpacked: 999}, address)
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v, want %q", address, err, want)
			}
		})
	}
	_, err := inputs.Open(t.Context(), inputs.Options{Servers: []string{"example.com"}}, "s3://logs/a")
	if err == nil || !strings.Contains(err.Error(), "not on the list of context servers") {
		t.Error(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := inputs.Open(ctx, inputs.Options{}, "s3://logs/a"); err == nil {
		t.Error("it is read although its context has ended")
	}
	t.Setenv("AWS_ENDPOINT_URL", "nonsense")
	if _, err := inputs.Open(t.Context(), inputs.Options{}, "s3://logs/a"); err == nil ||
		!strings.Contains(err.Error(), "cannot use AWS_ENDPOINT_URL") {
		t.Error(err)
	}
}
