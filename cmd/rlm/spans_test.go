package main

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/rlmhq/rlm/internal/testing/otlp"
)

// spanSink is an OTLP receiver on loopback.
type spanSink struct {
	mu    sync.Mutex
	names []string // of the received spans, each after the request's path
	spans []*otlp.Span
	all   strings.Builder
}

func (s *spanSink) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	request, err := otlp.Read(r)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all.WriteString(request.Raw)
	s.spans = append(s.spans, request.Spans...)
	for _, span := range request.Spans {
		s.names = append(s.names, r.URL.Path+":"+r.Header.Get("Authorization")+":"+span.Name)
	}
}

// spanSinks maps scripts to their sinks.
var spanSinks sync.Map

// receive is the script command `receive`. It starts an OTLP receiver on loopback, to which rlm
// then sends any spans.
func receive(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 0 {
		ts.Fatalf("usage: receive")
	}
	sink := &spanSink{}
	server := httptest.NewServer(sink)
	ts.Defer(server.Close)
	ts.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", server.URL)
	ts.Setenv("OPIK_URL_OVERRIDE", server.URL+"/api")
	spanSinks.Store(ts.Name(), sink)
}

func spanSinkOf(ts *testscript.TestScript) *spanSink {
	found, _ := spanSinks.Load(ts.Name())
	sink, ok := found.(*spanSink)
	if !ok {
		ts.Fatalf("no receiver: use receive first")
	}
	return sink
}

// tree is the script command `tree PATH...`. It checks that the spans since the last `spans` form
// one trace with one root, and contain each path. A path has names with " > " between parent and
// child; the beginning of each name is enough.
func tree(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) == 0 {
		ts.Fatalf("usage: tree PATH...")
	}
	sink := spanSinkOf(ts)
	sink.mu.Lock()
	defer sink.mu.Unlock()
	above, roots := map[string]*otlp.Span{}, 0
	for _, span := range sink.spans {
		above[span.ID] = span
		if span.ParentID == "" {
			roots++
		}
		if span.TraceID != sink.spans[0].TraceID {
			ts.Fatalf("there are several traces")
		}
	}
	if roots != 1 {
		ts.Fatalf("there are %d roots", roots)
	}
	for _, path := range args {
		names := strings.Split(path, " > ")
		slices.Reverse(names)
		found := slices.ContainsFunc(sink.spans, func(span *otlp.Span) bool {
			return descends(span, names, above)
		})
		if !found {
			ts.Fatalf("no %s among %q", path, sink.names)
		}
	}
}

// descends reports whether a span and its ancestors, up to the root, have the given names.
func descends(span *otlp.Span, names []string, above map[string]*otlp.Span) bool {
	for _, name := range names {
		if span == nil || !strings.HasPrefix(span.Name, name) {
			return false
		}
		span = above[span.ParentID]
	}
	return span == nil
}

// spans is the script command `[!] spans [PATH:AUTHORIZATION:NAME | has:TEXT]...`. It checks that
// these spans have arrived since the last call, and that one of the spans contains each TEXT.
// Without arguments, any span is enough; with !, none may have arrived.
func spans(ts *testscript.TestScript, neg bool, args []string) {
	sink := spanSinkOf(ts)
	sink.mu.Lock()
	defer sink.mu.Unlock()
	names, text := sink.names, sink.all.String()
	sink.names, sink.spans = nil, nil
	sink.all.Reset()
	if (len(names) == 0) != neg {
		ts.Fatalf("these spans arrived: %q", names)
	}
	for _, want := range args {
		if part, ok := strings.CutPrefix(want, "has:"); ok {
			if !strings.Contains(text, part) {
				ts.Fatalf("%s is not in %s", part, text)
			}
		} else if !slices.Contains(names, want) {
			ts.Fatalf("no span %s among %q", want, names)
		}
	}
	if strings.Contains(text, "secret-0123456789") {
		ts.Fatalf("a secret arrived")
	}
}
