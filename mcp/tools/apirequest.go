package tools

import (
	"bytes"
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/rlmhq/rlm/internal/text/texts"
	"github.com/rlmhq/rlm/internal/wall/egress/endpoints"
	"github.com/rlmhq/rlm/tiers"
)

// request describes how to call an operation.
type request struct {
	api    *api
	method string
	path   string // may contain {parameters}
	params []apiParam
	input  map[string]any // the schema of all arguments

	bodyKind string   // the media type; empty if there is no body
	inBody   []string // arguments that are members of the body; if empty, "body" is the body
}

// apiParam is a parameter outside the body.
type apiParam struct {
	name, in  string
	isJoined  bool // commas join the values of a list
	isNested  bool // members of an object become name[member]
	isEncoded bool // the value is sent as JSON
}

const maxSchemaNodes = 20_000 // per operation

// newRequest makes a request from an operation. It fails if a snippet cannot provide the body.
func (a *api) newRequest(method, path string, item, operation map[string]any) (*request, error) {
	r := &request{api: a, method: strings.ToUpper(method), path: path}
	s := &schemas{api: a, defs: map[string]any{}, left: maxSchemaNodes}
	properties, required := map[string]any{}, []any{}
	r.input = map[string]any{"type": "object", "properties": properties, "additionalProperties": false}

	shared, _ := item["parameters"].([]any)
	own, _ := operation["parameters"].([]any)
	seen := map[string]bool{}
	for _, given := range slices.Concat(own, shared) { // own parameters override the path's
		about := a.find(given)
		p := apiParam{name: textIn(about, "name"), in: textIn(about, "in")}
		if p.name == "" || seen[p.in+" "+p.name] || !p.isUsed() {
			continue
		}
		seen[p.in+" "+p.name] = true
		if properties[p.name] != nil {
			return nil, fmt.Errorf("two parameters are named %q", p.name)
		}
		schema := about["schema"]
		if content, ok := about["content"].(map[string]any); ok {
			media, _ := content["application/json"].(map[string]any)
			schema, p.isEncoded = media["schema"], true
		}
		p.isJoined = about["explode"] == false || p.in != "query"
		p.isNested = about["style"] == "deepObject"
		properties[p.name] = s.convert(schema)
		if about["required"] == true || p.in == "path" {
			required = append(required, p.name)
		}
		r.params = append(r.params, p)
	}

	more, err := r.readBody(a.find(operation["requestBody"]), s, properties)
	if err != nil {
		return nil, err
	}
	if required = append(required, more...); len(required) > 0 {
		r.input["required"] = required
	}
	if len(s.defs) > 0 {
		r.input["$defs"] = s.defs
	}
	return r, nil
}

// isUsed reports whether a snippet provides the parameter. Snippets provide neither cookies nor
// headers that rlm itself sets.
func (p *apiParam) isUsed() bool {
	switch p.in {
	case "path", "query":
		return true
	case "header":
		return !slices.Contains([]string{
			"Accept", "Authorization", "Connection", "Content-Length", "Content-Type", "Cookie", "Host",
			"Proxy-Authorization", "Te", "Trailer", "Transfer-Encoding", "Upgrade",
		}, http.CanonicalHeaderKey(p.name))
	}
	return false
}

const formKind = "application/x-www-form-urlencoded"

// readBody determines how a snippet provides the body: by its members, if they are known and their
// names are free, and otherwise by the argument "body".
func (r *request) readBody(about map[string]any, s *schemas, properties map[string]any) (required []any, err error) {
	content, _ := about["content"].(map[string]any)
	if len(content) == 0 {
		return nil, nil
	}
	var media map[string]any
	for _, kind := range []string{"application/json", formKind, "text/plain"} {
		if found, ok := content[kind].(map[string]any); ok {
			r.bodyKind, media = kind, found
			break
		}
	}
	if r.bodyKind == "" {
		return nil, errors.New("its body is neither JSON, a form nor a text")
	}

	schema := r.api.find(media["schema"])
	members, _ := schema["properties"].(map[string]any)
	isFlat := len(members) > 0 && len(members) <= maxParams && r.bodyKind != "text/plain" &&
		schema["allOf"] == nil && schema["anyOf"] == nil && schema["oneOf"] == nil && about["required"] == true
	for name := range members {
		isFlat = isFlat && properties[name] == nil
	}
	if !isFlat {
		if r.bodyKind == formKind || properties["body"] != nil {
			return nil, errors.New("its body cannot be told from its parameters")
		}
		properties["body"] = s.convert(media["schema"])
		if about["required"] == true {
			required = []any{"body"}
		}
		return required, nil
	}

	for name, member := range members {
		properties[name] = s.convert(member)
		r.inBody = append(r.inBody, name)
	}
	given, _ := schema["required"].([]any)
	for _, name := range given {
		if text, ok := name.(string); ok && members[text] != nil {
			required = append(required, text)
		}
	}
	return required, nil
}

// send sends the HTTP request of a call, and returns the result.
func (r *request) send(ctx context.Context, args map[string]json.RawMessage) (tiers.Value, error) {
	req, err := r.build(ctx, args)
	if err != nil {
		return nil, err
	}
	hidden := addSecrets(req, r.api.secrets)

	response, err := r.api.web.Do(req)
	if err != nil {
		return nil, errors.New(hide(err.Error(), hidden))
	}
	response.Body = &bounded{what: theReply, ReadCloser: response.Body, isOpaque: true}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return nil, err
	}
	body = []byte(hide(string(body), hidden))

	switch code := response.StatusCode; {
	case code >= 300 && code < 400:
		return nil, fmt.Errorf("the server redirects (%s), which is not followed", response.Status)
	case code >= 400:
		text := texts.Truncate(strings.ToValidUTF8(string(body), "\uFFFD"), maxError)
		return nil, fmt.Errorf("the server answers %s: %s", response.Status, text)
	}
	return valueOf(response.Header.Get("Content-Type"), body)
}

// valueOf returns a response body as a value: JSON is decoded, text becomes a str, and other bytes
// become Base64.
func valueOf(contentType string, body []byte) (tiers.Value, error) {
	kind, _, _ := mime.ParseMediaType(contentType)
	switch {
	case len(bytes.TrimSpace(body)) == 0:
		return tiers.Value("null"), nil
	case strings.HasSuffix(kind, "/json") || strings.HasSuffix(kind, "+json"):
		if !json.Valid(body) {
			return nil, errors.New("the reply is not the JSON that its type says")
		}
		return bytes.ToValidUTF8(body, []byte("\uFFFD")), nil
	case utf8.Valid(body):
		return json.Marshal(string(body))
	}
	return json.Marshal(map[string]string{"type": kind, "data": base64.StdEncoding.EncodeToString(body)})
}

// build makes the HTTP request for a call.
func (r *request) build(ctx context.Context, args map[string]json.RawMessage) (*http.Request, error) {
	path, query, header := r.path, url.Values{}, http.Header{}
	for _, p := range r.params {
		value := args[p.name]
		if value == nil || isNull(value) && p.in != "path" {
			continue // queries and headers cannot contain null
		}
		texts := p.format(value)
		switch joined := strings.Join(texts, ","); p.in {
		case "path":
			if joined == "" || joined == "." || joined == ".." {
				return nil, fmt.Errorf("the argument %s must not be %q", p.name, joined)
			}
			path = strings.ReplaceAll(path, "{"+p.name+"}", url.PathEscape(joined))
		case "header":
			header.Set(p.name, joined)
		default:
			p.addTo(query, value, texts)
		}
	}

	body, err := r.body(args)
	if err != nil {
		return nil, err
	}
	address := strings.TrimSuffix(r.api.server.String(), "/") + "/" + strings.TrimPrefix(path, "/")
	if len(query) > 0 {
		address += "?" + query.Encode()
	}
	req, err := http.NewRequestWithContext(ctx, r.method, address, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	if s := r.api.server; req.URL.Host != s.Host || req.URL.Scheme != s.Scheme || req.URL.User != nil {
		return nil, errors.New("the path leads to another server")
	}

	req.Header = header
	req.Header.Set("Accept", "application/json, */*;q=0.5")
	if body != nil {
		req.Header.Set("Content-Type", r.bodyKind)
	}
	return req, nil
}

// format returns a value as strings, one for each item of a list.
func (p *apiParam) format(value json.RawMessage) []string {
	var items []json.RawMessage
	switch {
	case p.isEncoded:
		return []string{string(value)}
	case json.Unmarshal(value, &items) != nil || items == nil:
		items = []json.RawMessage{value}
	}
	all := make([]string, 0, len(items))
	for _, item := range items {
		var text string
		if json.Unmarshal(item, &text) != nil {
			text = string(item)
		}
		all = append(all, text)
	}
	return all
}

// addTo adds the parameter to a query.
func (p *apiParam) addTo(query url.Values, value json.RawMessage, texts []string) {
	var object map[string]json.RawMessage
	switch {
	case !p.isEncoded && json.Unmarshal(value, &object) == nil && object != nil:
		for name, member := range object {
			if p.isNested {
				name = p.name + "[" + name + "]"
			}
			query[name] = append(query[name], p.format(member)...)
		}
	case p.isJoined:
		query.Set(p.name, strings.Join(texts, ","))
	default:
		query[p.name] = texts
	}
}

// body returns the body of a call, or nil if there is none.
func (r *request) body(args map[string]json.RawMessage) ([]byte, error) {
	switch whole := args["body"]; {
	case r.bodyKind == "":
		return nil, nil
	case r.inBody == nil && whole == nil:
		return nil, nil
	case r.inBody == nil && r.bodyKind == "text/plain":
		text, err := textOf(args, "body")
		return []byte(text), err
	case r.inBody == nil:
		return whole, nil
	}

	members, form := map[string]json.RawMessage{}, url.Values{}
	for _, name := range r.inBody {
		if value := args[name]; value != nil {
			members[name] = value
			if !isNull(value) {
				form[name] = (&apiParam{}).format(value)
			}
		}
	}
	if r.bodyKind == formKind {
		return []byte(form.Encode()), nil
	}
	return json.Marshal(members)
}

func isNull(value json.RawMessage) bool { return string(value) == "null" }

// secret is a header for requests to a host. It is hidden from snippets.
type secret struct{ host, header, value string }

// parseSecret parses HOST=HEADER:VARIABLE, such as example.com=Authorization:TOKEN.
func parseSecret(text string) (secret, error) {
	host, rest, _ := strings.Cut(text, "=")
	header, variable, _ := strings.Cut(rest, ":")
	if host == "" || header == "" || variable == "" || strings.ContainsAny(host+header, "/ \t\r\n") {
		return secret{}, fmt.Errorf("--inject %s: give HOST=HEADER:VARIABLE, such as "+
			"example.com=Authorization:API_TOKEN", cmp.Or(host, "?"))
	}
	value := os.Getenv(variable)
	if value == "" || strings.ContainsAny(value, "\r\n") {
		return secret{}, fmt.Errorf("--inject %s: the environment has no %s, or it has several lines", host, variable)
	}
	return secret{strings.ToLower(host), http.CanonicalHeaderKey(header), value}, nil
}

// Headers returns the headers for the connections of snippets, by HOST:PORT. The default port is
// that of https. Hosts that no snippet can reach are omitted.
func Headers(inject []string) (map[string]http.Header, error) {
	all := map[string]http.Header{}
	for _, text := range inject {
		one, err := parseSecret(text)
		if err != nil {
			return nil, err
		}

		at := one.host
		if !strings.Contains(at, ":") {
			at += ":443"
		}
		if endpoints.Check([]string{at}) != nil {
			continue
		}
		if all[at] == nil {
			all[at] = http.Header{}
		}
		all[at].Set(one.header, one.value)
	}
	return all, nil
}

// addSecrets adds the headers for a request's host, and returns the strings to hide.
func addSecrets(req *http.Request, secrets []secret) (hidden []string) {
	for _, s := range secrets {
		if at := strings.ToLower(req.URL.Host); s.host != at && s.host != strings.ToLower(req.URL.Hostname()) {
			continue
		}
		req.Header.Set(s.header, s.value)
		hidden = append(hidden, s.value)
		if _, token, ok := strings.Cut(s.value, " "); ok { // the token after Bearer
			hidden = append(hidden, token)
		}
	}
	return hidden
}

// hide removes credentials from a server's output.
func hide(text string, hidden []string) string {
	for _, one := range hidden {
		if len(one) >= 4 {
			text = strings.ReplaceAll(text, one, "[hidden]")
		}
	}
	return text
}
