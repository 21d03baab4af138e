package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// TestSnippetsCallAPIs checks that the operations of a document are functions, and that the
// credential stays on the host. A host of rlm mcp can also call the functions.
func TestSnippetsCallAPIs(t *testing.T) {
	t.Setenv("SHOP_TOKEN", "Bearer s3cret-token")
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if r.URL.Path == "/openapi.json" {
			_, _ = fmt.Fprint(w, `{"openapi": "3.1.0", "servers": [{"url": "/v2"}], "paths": {
				"/price/{item}": {"get": {"operationId": "price",
				"parameters": [{"name": "item", "in": "path", "schema": {"type": "string"}}]}}}}`)
			return
		}
		if r.Header.Get("Authorization") != "Bearer s3cret-token" {
			http.Error(w, "who are you?", http.StatusForbidden)
			return
		}
		_, _ = fmt.Fprintf(w, `{"cents": %d}`, len(strings.TrimPrefix(r.URL.Path, "/v2/price/")))
	}))
	defer server.Close()

	folder, host := t.TempDir(), strings.TrimPrefix(server.URL, "http://")
	api := []string{
		"--openapi", "shop=" + server.URL + "/openapi.json", "--openapi-host", host,
		"--max-tool-calls", "3", "--approve", "deny shop__price matching secret",
	}
	with := append([]string{"exec", "--quiet", "--inject", host + "=Authorization:SHOP_TOKEN"}, api...)
	const snippet = `import asyncio, os
print([p["cents"] for p in await asyncio.gather(shop.price("a"), shop.price(item="bcd"))], "SHOP_TOKEN" in os.environ)
try:
    await shop.price("secret")
except Exception as e:
    print("denies it" in str(e))`
	out, err := exec.Command("rlm", append(with, "-c", snippet)...).CombinedOutput()
	if err != nil || string(out) != "[1, 3] False\nTrue\n" {
		t.Errorf("got %q, %v", out, err)
	}

	h := newHost(t, folder, nil, append(api, "--direct", "shop__*")...)
	result, err := h.CallTool(t.Context(), &mcp.CallToolParams{Name: "price", Arguments: arguments{"item": "a"}})
	if err != nil || !result.IsError ||
		!strings.Contains(result.Content[0].(*mcp.TextContent).Text, ": who are you?") {
		t.Errorf("without the credential: %v, %v", result, err)
	}
}
