package mcp_test

import (
	"context"
	"fmt"
	"log"
	"net/http/httptest"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/rlmhq/rlm"
	"github.com/rlmhq/rlm/mcp"
	"github.com/rlmhq/rlm/repl/ledger"
)

func Example() {
	if err := listTools(context.Background()); err != nil {
		log.Fatal(err)
	}
	// Output:
	// rlm_close
	// rlm_exec
	// rlm_files
	// rlm_open
}

// listTools requests the list of a server's tools, as a host does.
func listTools(ctx context.Context) error {
	engine, err := rlm.New(rlm.Options{})
	if err != nil {
		return err
	}
	defer engine.Close()

	server, err := mcp.New(mcp.Config{
		Version: "v1", Detect: engine.Detect, Handles: 4, Idle: time.Hour,
		Open: func(
			ctx context.Context, contexts []rlm.Context, _ func(ledger.Event),
		) (*rlm.Session, error) {
			return engine.Open(ctx, rlm.SessionConfig{Contexts: contexts})
		},
	})
	if err != nil {
		return err
	}
	defer server.Close()
	web := httptest.NewServer(server.Handler())
	defer web.Close()

	client, err := sdk.NewClient(&sdk.Implementation{Name: "host"}, nil).Connect(ctx,
		&sdk.StreamableClientTransport{Endpoint: web.URL}, nil)
	if err != nil {
		return err
	}
	defer client.Close()
	tools, err := client.ListTools(ctx, nil)
	if err != nil {
		return err
	}
	for _, tool := range tools.Tools {
		fmt.Println(tool.Name)
	}
	return nil
}
