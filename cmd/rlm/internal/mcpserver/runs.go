package mcpserver

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"strings"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/rlmhq/rlm/internal/texts"
	"github.com/rlmhq/rlm/repl/ledger"
)

// Bounds of the records.
const (
	maxRuns   = 100
	maxEvents = 1_000   // of a run
	maxGiven  = 100_000 // characters

	runScheme = "rlm://runs/"
)

// record is what a client can read of a snippet or a question.
type record struct {
	ID      string         `json:"run"`
	Tool    string         `json:"tool"`
	Handle  string         `json:"handle,omitempty"`
	Given   string         `json:"given"` // the code or the question
	Begun   time.Time      `json:"begun"`
	Elapsed float64        `json:"elapsed_ms,omitempty"`
	Result  any            `json:"result,omitempty"`
	Error   string         `json:"error,omitempty"`
	Events  []ledger.Event `json:"events,omitempty"`
	Dropped int            `json:"dropped_events,omitempty"`

	mu sync.Mutex
}

// add keeps an event. Pieces of replies are no records.
func (r *record) add(e ledger.Event) {
	if e.Kind == ledger.EventDelta {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.Events) == maxEvents {
		r.Dropped++
		return
	}

	e.Ran, e.Call, e.Request, e.Response = nil, nil, nil, nil
	r.Events = append(r.Events, e)
}

// encode returns the record as JSON.
func (r *record) encode() ([]byte, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return json.Marshal(r)
}

// runs are the last records.
type runs struct {
	mu   sync.Mutex
	last []*record
}

// begin makes the record of a run. Its ID is unguessable, as that of a handle.
func (rs *runs) begin(tool, handle, given string) *record {
	r := &record{
		ID: rand.Text(), Tool: tool, Handle: handle, Given: texts.Truncate(given, maxGiven),
		Begun: time.Now().UTC(),
	}

	rs.mu.Lock()
	defer rs.mu.Unlock()
	if len(rs.last) == maxRuns {
		rs.last = append(rs.last[:0], rs.last[1:]...)
	}
	rs.last = append(rs.last, r)
	return r
}

// end completes the record of a run.
func (rs *runs) end(r *record, result any, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.Elapsed = float64(time.Since(r.Begun).Microseconds()) / 1000
	if err != nil {
		r.Error = err.Error()
		return
	}
	r.Result = result
}

func (rs *runs) find(id string) *record {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	for _, r := range rs.last {
		if r.ID == id {
			return r
		}
	}
	return nil
}

// addRuns adds the resource of the records.
func (s *Server) addRuns(server *mcp.Server) {
	server.AddResourceTemplate(&mcp.ResourceTemplate{
		URITemplate: runScheme + "{id}", Name: "run", Title: "A run", MIMEType: "application/json",
		Description: "The record of a snippet or a question: what was given, how it went and how it ended.",
	}, func(_ context.Context, req *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
		r := s.runs.find(strings.TrimPrefix(req.Params.URI, runScheme))
		if r == nil {
			return nil, mcp.ResourceNotFoundError(req.Params.URI)
		}
		text, err := r.encode()
		if err != nil {
			return nil, err
		}
		return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{
			{URI: req.Params.URI, MIMEType: "application/json", Text: string(text)},
		}}, nil
	})
}
