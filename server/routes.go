package server

import "net/http"

// routes is a mux that records its patterns, so that a test can try each one.
type routes struct {
	*http.ServeMux
	patterns []string
}

// Handle adds a route.
func (r *routes) Handle(pattern string, handler http.Handler) {
	r.patterns = append(r.patterns, pattern)
	r.ServeMux.Handle(pattern, handler)
}

// HandleFunc adds a route.
func (r *routes) HandleFunc(pattern string, handler func(http.ResponseWriter, *http.Request)) {
	r.Handle(pattern, http.HandlerFunc(handler))
}
