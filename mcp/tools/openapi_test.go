package tools

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rlmhq/rlm/repl"
	"github.com/rlmhq/rlm/schema"
)

const shopDocument = `openapi: 3.0.3
info: {title: The shop, version: "1"}
servers: [{url: "{base}/v1", variables: {base: {default: "%s"}}}]
paths:
  /items/{id}:
    parameters: [{name: id, in: path, required: true, schema: {type: string}}]
    get:
      operationId: getItem
      summary: Returns an item.
      parameters:
        - {name: tag, in: query, schema: {type: array, items: {type: string}}}
        - {name: ids, in: query, explode: false, schema: {type: array, items: {type: integer}}}
        - {name: filter, in: query, style: deepObject, schema: {type: object}}
        - {name: X-Trace, in: header, schema: {type: string, nullable: true}}
        - {name: Authorization, in: header, schema: {type: string}}
        - {name: session, in: cookie, schema: {type: string}}
      responses: {200: {description: ok}}
  /items:
    post:
      operationId: add-item
      requestBody: {$ref: "#/components/requestBodies/Item"}
      responses: {201: {description: ok}}
  /form:
    post:
      operationId: send_form
      requestBody:
        required: true
        content: {application/x-www-form-urlencoded: {schema: {type: object, properties: {a: {type: string}}}}}
  /upload:
    post: {operationId: upload, requestBody: {content: {multipart/form-data: {schema: {type: object}}}}}
  /fail: {get: {operationId: fail}}
  /away: {get: {operationId: away}}
  /huge: {get: {operationId: huge}}
  /bytes: {get: {operationId: bytes}}
  /nothing: {delete: {operationId: nothing}}
components:
  requestBodies:
    Item: {required: true, content: {application/json: {schema: {$ref: "#/components/schemas/Item"}}}}
  schemas:
    Item:
      type: object
      required: [name]
      properties:
        name: {type: string}
        price: {type: number, minimum: 0, exclusiveMinimum: true, nullable: true}
        parts: {type: array, items: {$ref: "#/components/schemas/Item"}}
`

// newShop serves an API that returns the data of each request.
func newShop(t *testing.T) *httptest.Server {
	t.Helper()
	away := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		t.Errorf("another server was reached, with %v", r.Header)
	}))
	t.Cleanup(away.Close)
	mux := http.NewServeMux()
	mux.HandleFunc("/v1/fail", func(w http.ResponseWriter, r *http.Request) {
		http.Error(w, "closed for "+r.Header.Get("Authorization"), http.StatusTeapot)
	})
	mux.HandleFunc("/v1/away", func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, away.URL, http.StatusTemporaryRedirect)
	})
	mux.HandleFunc("/v1/huge", func(w http.ResponseWriter, _ *http.Request) {
		for range 200 {
			if _, err := w.Write(make([]byte, 1<<19)); err != nil {
				return // the client has closed the connection
			}
		}
		t.Error("a reply of 100 MB was read")
	})
	mux.HandleFunc("/v1/bytes", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "image/png")
		_, _ = w.Write([]byte{0xff, 0xfe})
	})
	mux.HandleFunc("/v1/nothing", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) })
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		query, _ := url.QueryUnescape(r.URL.RawQuery)
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode([]string{
			r.Method, r.URL.EscapedPath(), query, string(body), r.Header.Get("Content-Type"),
			r.Header.Get("X-Trace"), r.Header.Get("Authorization"), r.Header.Get("Cookie"),
		})
	})
	shop := httptest.NewServer(mux)
	t.Cleanup(shop.Close)
	return shop
}

// writeDocument writes a document and returns its path.
func writeDocument(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "api.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestOperationsAreFunctions(t *testing.T) {
	t.Setenv("SHOP_TOKEN", "Bearer s3cret-token")
	shop := newShop(t)
	host := strings.TrimPrefix(shop.URL, "http://")
	servers, err := Start(t.Context(), Options{
		APIs:  []string{"shop=" + writeDocument(t, fmt.Sprintf(shopDocument, shop.URL))},
		Hosts: []string{host}, Inject: []string{host + "=Authorization:SHOP_TOKEN"},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer servers.Close()
	tools, err := repl.NewTools(servers.Tools()...)
	if err != nil {
		t.Fatal(err)
	}

	const json, seen = "application/json", `","[hidden]",""]`
	for _, c := range []struct{ function, named, want string }{
		{
			"getItem", `{"id": "a/b c", "tag": ["x", "y"], "ids": [1, 2], "filter": {"k": 1}, "X_Trace": "t"}`,
			`["GET","/v1/items/a%2Fb%20c","filter[k]=1\u0026ids=1,2\u0026tag=x\u0026tag=y","","","t` + seen,
		},
		{"getItem", `{"id": ".."}`, `error: shop.getItem: the argument id must not be ".."`},
		{"getItem", `{"id": "x", "X_Trace": "a\r\nb: c"}`, "error: shop.getItem: "},
		{"getItem", `{}`, "error: shop.getItem: the arguments do not match the schema: $.id: is missing"},
		{"getItem", `{"id": "x", "Authorization": "mine"}`, `error: shop.getItem has no parameter`},
		{
			"add_item", `{"name": "nut", "price": 2, "parts": [{"name": "x"}]}`,
			`["POST","/v1/items","","{\"name\":\"nut\",` +
				`\"parts\":[{\"name\":\"x\"}],\"price\":2}","` + json + `","` + seen,
		},
		{"add_item", `{"name": "nut", "price": 0}`, "error: shop.add_item: the arguments do not match the schema"},
		{"add_item", `{"name": "nut", "parts": [{}]}`, "error: shop.add_item: the arguments do not match the schema"},
		{"send_form", `{"a": "x y"}`, `["POST","/v1/form","","a=x+y","application/x-www-form-urlencoded","` + seen},
		{"fail", `{}`, "error: shop.fail: the server answers 418 I'm a teapot: closed for [hidden]"},
		{"away", `{}`, "error: shop.away: the server redirects (307 Temporary Redirect), which is not followed"},
		{"huge", `{}`, "error: shop.huge: the server's reply has more than 16 MiB"},
		{"bytes", `{}`, `{"data":"//4=","type":"image/png"}`},
		{"nothing", `{}`, "null"},
	} {
		t.Run(c.function, func(t *testing.T) {
			if got := call(t, tools, "shop__"+c.function, c.named); !strings.HasPrefix(got, c.want) {
				t.Errorf("%s(%s):\ngot  %s\nwant %s", c.function, c.named, got, c.want)
			}
		})
	}
	found := call(t, tools, "mcp__search", `{"query": "add item", "limit": 1}`)
	if !strings.Contains(found, `"shop.add_item(name: str, `) {
		t.Errorf("found %s", found)
	}
	if strings.Contains(found, "upload") || !strings.Contains(servers.Python(), "Without 1 operations") {
		t.Error("an operation that cannot be called is not left out")
	}
}

func TestDocumentsThatAreRefused(t *testing.T) {
	t.Setenv("EMPTY", "")
	shop := newShop(t)
	const rest = `, "paths": {"/x": {"get": {}}}}`
	for _, c := range []struct{ text, want string }{
		{`{"swagger": "2.0"` + rest, "give a document of version 3.0 or 3.1"},
		{`{"openapi": "3.1.0"` + rest, "it names no server that begins with http:// or https://"},
		{`{"openapi": "3.1.0", "servers": [{"url": "file:///etc"}]` + rest, "it names no server"},
		{`{"openapi": "3.1.0", "servers": [{"url": "https://u:p@a.example"}]` + rest, "it names no server"},
		{`{"openapi": "3.1.0", "servers": [{"url": "https://a.example"}]}`, "it has no operations that can be called"},
		{`{"openapi": `, "it is neither JSON nor YAML"},
		{"a: &a [x]\nb: [*a", "it is neither JSON nor YAML"},
		{strings.Repeat("[", 200) + strings.Repeat("]", 200), "nested too deeply"},
		{strings.Repeat(" ", maxDocument+1), "it has more than 8388608 bytes"},
	} {
		t.Run(fmt.Sprintf("%.60s", c.text), func(t *testing.T) {
			_, err := Start(t.Context(), Options{APIs: []string{writeDocument(t, c.text)}})
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%.60s: got %v, want %s", c.text, err, c.want)
			}
		})
	}
	for _, c := range []struct {
		o    Options
		want string
	}{
		{Options{APIs: []string{"/none.json"}}, "no such file"},
		{Options{APIs: []string{shop.URL + "/openapi.json"}}, "--openapi-host"},
		{Options{APIs: []string{shop.URL}, Hosts: []string{"example.com"}}, "is not on the list of API servers"},
		{Options{Inject: []string{"example.com"}}, "give HOST=HEADER:VARIABLE"},
		{Options{Inject: []string{"example.com=X:EMPTY"}}, "the environment has no EMPTY"},
	} {
		if _, err := Start(t.Context(), c.o); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("got %v, want %s", err, c.want)
		}
	}
}

// TestPrivateServersOfDocumentsAreRefused checks that a document cannot lead into the user's
// network.
func TestPrivateServersOfDocumentsAreRefused(t *testing.T) {
	shop := newShop(t)
	for _, address := range []string{shop.URL, "https" + strings.TrimPrefix(shop.URL, "http")} {
		path := writeDocument(t, fmt.Sprintf(shopDocument, address))
		servers, err := Start(t.Context(), Options{APIs: []string{"shop=" + path}})
		if err != nil {
			t.Fatal(err)
		}
		tools, err := repl.NewTools(servers.Tools()...)
		if err != nil {
			t.Fatal(err)
		}
		if got := call(t, tools, "shop__fail", `{}`); !strings.Contains(got, "--openapi-host 127.0.0.1") {
			t.Errorf("%s: got %s", address, got)
		}
		_ = servers.Close()
	}
}

// FuzzDocument checks that no document breaks the reader, and that each generated schema is JSON.
func FuzzDocument(f *testing.F) {
	f.Add([]byte(fmt.Sprintf(shopDocument, "https://a.example")), []byte(`{"id": "x", "body": 1}`))
	f.Add([]byte(`{"openapi": "3.1.0", "servers": [{"url": "https://a.example"}], "paths": {"//b@c/{x}?#": {"get":
		{"parameters": [{"name": "x", "in": "path", "schema": {"$ref": "#/components/schemas/A~1b"}}]}}},
		"components": {"schemas": {"A/b": {"anyOf": [{"$ref": "#/components/schemas/A~1b"}, false]}}}}`),
		[]byte(`{"x": "/../"}`))
	f.Fuzz(func(t *testing.T, data, given []byte) {
		a, err := parseDocument(data, &url.URL{})
		if err != nil {
			return
		}
		tools, _, err := a.tools(&server{name: "a"})
		if err != nil {
			return
		}
		var args map[string]json.RawMessage
		_ = json.Unmarshal(given, &args)
		for _, tool := range tools {
			document, err := json.Marshal(tool.origin.InputSchema)
			if err != nil {
				continue // a YAML number that JSON lacks
			}
			_, _ = schema.Compile(document)
			if len(tool.signature()) == 0 {
				t.Error("a tool has no signature")
			}
		}
		paths, _ := a.document["paths"].(map[string]any)
		for path, about := range paths {
			item := a.find(about)
			for _, method := range methods {
				operation, _ := item[method].(map[string]any)
				r, err := a.newRequest(method, path, item, operation)
				if err != nil {
					continue
				}
				if req, err := r.build(t.Context(), args); err == nil && req.URL.Host != a.server.Host {
					t.Errorf("%s leads to %s", path, req.URL)
				}
			}
		}
	})
}
