package tools

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"go.yaml.in/yaml/v3"

	"github.com/rlmhq/rlm/internal/data/remote"
	"github.com/rlmhq/rlm/internal/text/lazyregexp"
)

// maxDocument is the maximum size of an OpenAPI document, in bytes.
const maxDocument = 8 << 20

// api is the content of an OpenAPI document.
type api struct {
	document map[string]any
	server   *url.URL // the base of relative paths
	isOld    bool     // version 3.0, whose schemas differ from JSON Schema
	web      *remote.Client
	secrets  []secret
}

// namedAddress matches NAME=ADDRESS.
var namedAddress = lazyregexp.New(`^([A-Za-z][A-Za-z0-9_]*)=(.+)$`)

// describeAPI reads an OpenAPI document, and returns a server with its operations as tools. The
// address is a file or a URL, optionally after NAME=, which is then the name of the class.
func describeAPI(ctx context.Context, address string, o *Options, web *remote.Client) (*server, error) {
	name := ""
	if found := namedAddress.FindStringSubmatch(address); found != nil {
		name, address = found[1], found[2]
	}
	s := &server{given: cmp.Or(name, address)}
	fail := func(err error) (*server, error) {
		return nil, fmt.Errorf("cannot use the OpenAPI document %s: %w", address, err)
	}

	data, base, err := readDocument(ctx, address, web)
	if err != nil {
		return fail(err)
	}
	a, err := parseDocument(data, base)
	if err != nil {
		return fail(err)
	}
	a.web, a.secrets = web, o.secrets

	info, _ := a.document["info"].(map[string]any)
	s.given = cmp.Or(name, textIn(info, "title"), address)
	s.title = oneLine(textIn(info, "title"), textIn(info, "description"))
	all, left, err := a.tools(s)
	if err != nil {
		return fail(err)
	}
	s.tools = all
	if left > 0 {
		s.title = fmt.Sprintf("Without %d operations whose bodies are not supported. %s", left, s.title)
	}
	return s, nil
}

// readDocument returns a document, and the base address of its servers.
func readDocument(ctx context.Context, address string, web *remote.Client) ([]byte, *url.URL, error) {
	var body io.ReadCloser
	base := &url.URL{}
	if remote.IsAddress(address) {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, http.NoBody)
		if err != nil {
			return nil, nil, err
		}
		response, err := web.Do(req)
		if err != nil {
			return nil, nil, err
		}
		if response.StatusCode != http.StatusOK {
			_ = response.Body.Close()
			return nil, nil, fmt.Errorf("the server answers %s", response.Status)
		}
		body, base = response.Body, req.URL
	} else {
		file, err := os.Open(address)
		if err != nil {
			return nil, nil, err
		}
		body = file
	}

	defer body.Close()
	data, err := io.ReadAll(io.LimitReader(body, maxDocument+1))
	if err == nil && len(data) > maxDocument {
		err = fmt.Errorf("it has more than %d bytes", maxDocument)
	}
	return data, base, err
}

// parseDocument reads a document, in JSON or YAML.
func parseDocument(data []byte, base *url.URL) (*api, error) {
	var document any
	decode := yaml.Unmarshal
	if strings.HasPrefix(strings.TrimSpace(string(data[:min(len(data), 100)])), "{") {
		decode = json.Unmarshal
	}
	if err := decode(data, &document); err != nil {
		return nil, fmt.Errorf("it is neither JSON nor YAML: %w", err)
	}
	left := maxNodes
	plain, err := plainCopy(document, maxDepth, &left)
	if err != nil {
		return nil, err
	}
	a := &api{}
	a.document, _ = plain.(map[string]any)

	version := textIn(a.document, "openapi")
	a.isOld = strings.HasPrefix(version, "3.0")
	if !a.isOld && !strings.HasPrefix(version, "3.1") {
		return nil, fmt.Errorf(`its member "openapi" is %.20q: give a document of version 3.0 or 3.1`, version)
	}

	servers, _ := a.document["servers"].([]any)
	given := "/"
	if len(servers) > 0 {
		first, _ := servers[0].(map[string]any)
		given = fillVariables(first)
	}
	address, err := url.Parse(given)
	if err != nil {
		return nil, fmt.Errorf("its server %.100q is no address", given)
	}
	a.server = base.ResolveReference(address)
	a.server.RawQuery, a.server.Fragment = "", ""
	if s := a.server.Scheme; s != "http" && s != "https" || a.server.Host == "" || a.server.User != nil {
		return nil, errors.New(`it names no server that begins with http:// or https://: add one to "servers"`)
	}
	return a, nil
}

// fillVariables substitutes the defaults of variables in a server's address.
func fillVariables(server map[string]any) string {
	address := textIn(server, "url")
	variables, _ := server["variables"].(map[string]any)
	for name, about := range variables {
		object, _ := about.(map[string]any)
		address = strings.ReplaceAll(address, "{"+name+"}", textIn(object, "default"))
	}
	return address
}

// Limits on a document's tree. YAML aliases could make a small text a huge tree.
const (
	maxDepth = 100
	maxNodes = 2_000_000
)

// plainCopy converts a YAML value to the types of JSON.
func plainCopy(value any, depth int, left *int) (any, error) {
	if *left--; *left < 0 || depth < 0 {
		return nil, errors.New("it is too large, or nested too deeply")
	}
	switch v := value.(type) {
	case map[string]any:
		for name, item := range v {
			plain, err := plainCopy(item, depth-1, left)
			if err != nil {
				return nil, err
			}
			v[name] = plain
		}
		return v, nil
	case map[any]any: // such as the codes of responses
		object := make(map[string]any, len(v))
		for name, item := range v {
			plain, err := plainCopy(item, depth-1, left)
			if err != nil {
				return nil, err
			}
			object[fmt.Sprint(name)] = plain
		}
		return object, nil
	case []any:
		for i, item := range v {
			plain, err := plainCopy(item, depth-1, left)
			if err != nil {
				return nil, err
			}
			v[i] = plain
		}
		return v, nil
	case nil, bool, string, float64, int, int64, uint64:
		return v, nil
	}
	return fmt.Sprint(value), nil // such as a date
}

func textIn(object map[string]any, name string) string {
	text, _ := object[name].(string)
	return text
}

// find follows references within the document.
func (a *api) find(value any) map[string]any {
	for range 20 {
		object, _ := value.(map[string]any)
		pointer, isReference := object["$ref"].(string)
		if !isReference {
			return object
		}
		value = nil
		if rest, ok := strings.CutPrefix(pointer, "#/"); ok {
			value = a.document
			for part := range strings.SplitSeq(rest, "/") {
				step, _ := value.(map[string]any)
				value = step[unescape(part)]
			}
		}
	}
	return nil
}

// unescape decodes a part of a JSON pointer in a URL.
func unescape(part string) string {
	if plain, err := url.PathUnescape(part); err == nil {
		part = plain
	}
	return strings.NewReplacer("~1", "/", "~0", "~").Replace(part)
}

var methods = []string{"get", "put", "post", "delete", "options", "head", "patch", "trace"}

// tools returns the operations, and the number of those left out.
func (a *api) tools(s *server) (all []*tool, left int, err error) {
	paths, _ := a.document["paths"].(map[string]any)
	taken := map[string]bool{}
	for _, path := range slices.Sorted(maps.Keys(paths)) {
		item := a.find(paths[path])
		for _, method := range methods {
			operation, isOperation := item[method].(map[string]any)
			if !isOperation {
				continue
			}
			if len(all) == maxTools {
				return nil, 0, fmt.Errorf("it has more than %d operations", maxTools)
			}
			r, err := a.newRequest(method, path, item, operation)
			if err != nil {
				left++
				continue
			}
			t := newTool(s, &mcp.Tool{
				Name:        cmp.Or(textIn(operation, "operationId"), method+"_"+path),
				Description: cmp.Or(textIn(operation, "summary"), textIn(operation, "description"), method+" "+path),
				InputSchema: r.input,
				Annotations: &mcp.ToolAnnotations{
					ReadOnlyHint:   method == "get" || method == "head" || method == "options",
					IdempotentHint: method == "put" || method == "delete",
				},
			}, taken)
			t.call = r.send
			all = append(all, t)
		}
	}
	if len(all) == 0 {
		return nil, 0, errors.New("it has no operations that can be called")
	}
	return all, left, nil
}
