package server_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"

	"github.com/rlmhq/rlm"
	"github.com/rlmhq/rlm/server"
	"github.com/rlmhq/rlm/store"
)

func Example() {
	dir, err := os.MkdirTemp("", "served")
	if err != nil {
		log.Fatal(err)
	}
	err = serveOnce(context.Background(), server.Folder(dir))
	if err := errors.Join(err, os.RemoveAll(dir)); err != nil {
		log.Fatal(err)
	}
	// Output: alice of tenant alice: ok
}

// serveOnce makes a server with a key and sends it one request.
func serveOnce(ctx context.Context, folder server.Folder) error {
	engine, err := rlm.New(rlm.Options{Store: store.Folder(folder.Store())})
	if err != nil {
		return err
	}
	defer engine.Close()

	wanted := server.Key{Name: "alice"}
	wanted.SetScopes("run", "read")
	key, _, err := folder.CreateKey(ctx, wanted)
	if err != nil {
		return err
	}
	s, err := server.New(ctx, engine, server.Options{
		Dir: folder, AtOnce: 4, Queue: 16, Sessions: 100, OpenSessions: 8,
		MaxBody: 1 << 20, MaxFile: 1 << 20, MaxContext: 1 << 20, Long: 32_000,
		Log: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		return err
	}
	defer s.Close()

	answer := httptest.NewRecorder()
	s.ServeHTTP(answer, httptest.NewRequest(http.MethodGet, "/healthz", nil))
	fmt.Printf("%s of tenant %s: %s", key.Name, key.Tenant, answer.Body)
	return nil
}
