package server_test

import (
	"context"
	"fmt"
	"log"
	"log/slog"
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
	defer os.RemoveAll(dir)

	folder := server.Folder(dir)
	engine, err := rlm.New(rlm.Options{Store: store.Folder(folder.Store())})
	if err != nil {
		log.Fatal(err)
	}
	defer engine.Close()

	wanted := server.Key{Name: "alice"}
	wanted.SetScopes("run", "read")
	key, _, err := folder.CreateKey(context.Background(), wanted)
	if err != nil {
		log.Fatal(err)
	}
	s, err := server.New(context.Background(), engine, server.Options{
		Dir: folder, AtOnce: 4, Queue: 16, Sessions: 100, OpenSessions: 8,
		MaxBody: 1 << 20, MaxFile: 1 << 20, MaxContext: 1 << 20, Long: 32_000,
		Log: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		log.Fatal(err)
	}
	defer s.Close()

	answer := httptest.NewRecorder()
	s.ServeHTTP(answer, httptest.NewRequest("GET", "/healthz", nil))
	fmt.Printf("%s of tenant %s: %s", key.Name, key.Tenant, answer.Body)
	// Output: alice of tenant alice: ok
}
