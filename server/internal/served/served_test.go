package served

import (
	"context"
	"log"
	"log/slog"
	"net/http/httptest"
	"os"
	"testing"

	"github.com/rlmhq/rlm"
	"github.com/rlmhq/rlm/internal/testing/testcache"
	"github.com/rlmhq/rlm/server"
	"github.com/rlmhq/rlm/server/internal/access"
	"github.com/rlmhq/rlm/server/internal/records"
	"github.com/rlmhq/rlm/server/internal/runs"
	"github.com/rlmhq/rlm/standard"
	"github.com/rlmhq/rlm/store"
)

func TestMain(m *testing.M) {
	if err := testcache.Use(); err != nil {
		log.Fatal(err)
	}
	os.Exit(m.Run())
}

type object = map[string]any

// answer is a response whose body has been read.
type answer struct {
	status int
	body   string
}

// served is a server for a test.
type served struct {
	t       *testing.T
	engine  *rlm.Engine
	address string
	keys    *access.Keys
}

// start starts a server that requires keys, with options for its engine.
func start(t *testing.T, options rlm.Options) *served {
	t.Helper()
	dir := t.TempDir()
	options.Store = store.Folder(server.Folder(dir).Store())
	if options.Tiers == nil {
		options.Tiers = standard.Tiers(standard.Options{})
	}
	engine, err := rlm.New(options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := engine.Close(); err != nil {
			t.Error(err)
		}
	})
	s, err := server.New(t.Context(), engine, server.Options{
		Dir: server.Folder(dir), AtOnce: 4, Queue: 4, Sessions: 1_000, OpenSessions: 48,
		MaxBody: 64 << 20, MaxFile: 1 << 20, MaxContext: 1 << 20, Version: "test",
		Log: slog.New(slog.DiscardHandler), Profiles: []runs.Profile{{Name: runs.DefaultProfile}},
	})
	if err != nil {
		t.Fatal(err)
	}
	web := httptest.NewServer(s)
	t.Cleanup(func() {
		web.Close()
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})

	db, err := records.Open(context.Background(), dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	return &served{t, engine, web.URL, access.OpenKeys(db)}
}

// newKey makes a key of a tenant.
func (s *served) newKey(tenant string) string {
	s.t.Helper()
	_, secret, err := s.keys.Create(context.Background(), access.Key{
		Name: tenant, Scopes: []access.Scope{access.Read, access.Run},
	})
	if err != nil {
		s.t.Fatal(err)
	}
	return secret
}
