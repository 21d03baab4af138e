package server

import (
	"fmt"
	"net/http"
	"strings"

	"github.com/rlmhq/rlm/internal/text/problem"
	"github.com/rlmhq/rlm/server/internal/openai"
)

// tidyPaths removes redundant slashes from the paths below /v1, because clients differ in how they
// join the base URL and a path.
func tidyPaths(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if path := tidyPath(r.URL.Path); path != r.URL.Path && r.URL.RawPath == "" {
			r = withPath(r, path)
		}
		next.ServeHTTP(w, r)
	})
}

func tidyPath(path string) string {
	tidy := path
	for strings.Contains(tidy, "//") {
		tidy = strings.ReplaceAll(tidy, "//", "/")
	}
	if !strings.HasPrefix(tidy, "/v1/") {
		return path
	}
	return strings.TrimSuffix(tidy, "/")
}

// withPath returns a copy of a request with another path.
func withPath(r *http.Request, path string) *http.Request {
	changed, address := *r, *r.URL
	address.Path, address.RawPath = path, ""
	changed.URL = &address
	return &changed
}

// missing answers a request for a path that does not exist. For a client with a wrong base URL, the
// error names the right one, in the client's format.
func (r *routes) missing(w http.ResponseWriter, req *http.Request) {
	e := problem.New(http.StatusNotFound, "not_found", "there is no %s %.100s", req.Method, req.URL.Path)
	for _, path := range []string{tidyPath("/v1" + req.URL.Path), strings.TrimPrefix(req.URL.Path, "/v1")} {
		_, pattern := r.Handler(withPath(req, path))
		if pattern == "" || pattern == "/" || !strings.HasPrefix(path, "/v1/") {
			continue
		}

		hint := "The base URL of OpenAI's clients ends with /v1, once"
		if strings.HasPrefix(path, "/v1/messages") {
			hint = "The base URL of Anthropic's clients ends before /v1"
		}
		e.Detail += fmt.Sprintf(": did you mean %.100s? %s", path, hint)
		if isOpenAI(path) {
			openai.WriteError(w, e)
			return
		}
		break
	}
	writeError(w, req, e)
}
