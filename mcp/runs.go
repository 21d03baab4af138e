package mcp

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/rlmhq/rlm/internal/text/texts"
	"github.com/rlmhq/rlm/repl/ledger"
)

// Limits on the records.
const (
	maxRuns   = 100
	maxBytes  = 32 << 20 // maximum size of all ended runs
	maxEvents = 1_000    // per run
	maxGiven  = 100_000  // characters

	runScheme = "rlm://runs/"
)

// record is the record of a snippet or a question, which clients can read.
type record struct {
	ID      string         `json:"run"`
	Tool    string         `json:"tool"`
	Handle  string         `json:"session,omitempty"`
	Given   string         `json:"given"` // the code or the question
	Begun   time.Time      `json:"begun"`
	Elapsed float64        `json:"elapsed_ms,omitempty"`
	Result  any            `json:"result,omitempty"`
	Error   string         `json:"error,omitempty"`
	Events  []ledger.Event `json:"events,omitempty"`
	Dropped int            `json:"dropped_events,omitempty"`

	mu    sync.Mutex
	ended []byte // the complete record as JSON, after the end
}

// add adds an event. Pieces of replies are not recorded.
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
	if r.ended != nil {
		return r.ended, nil
	}
	return json.Marshal(r)
}

// runs are the latest records.
type runs struct {
	mu    sync.Mutex
	last  []*record
	bytes int // total size of the ended runs
}

// begin makes the record of a run. Like a handle's name, its ID is unguessable.
func (rs *runs) begin(tool, handle, given string) *record {
	r := &record{
		ID: rand.Text(), Tool: tool, Handle: handle, Given: texts.Truncate(given, maxGiven),
		Begun: time.Now().UTC(),
	}

	rs.mu.Lock()
	defer rs.mu.Unlock()
	rs.last = append(rs.last, r)
	rs.trim()
	return r
}

// trim drops the oldest records beyond the limits. The caller holds rs.mu.
func (rs *runs) trim() {
	for len(rs.last) > maxRuns || rs.bytes > maxBytes && len(rs.last) > 1 {
		rs.bytes -= len(rs.last[0].whole())
		rs.last = append(rs.last[:0], rs.last[1:]...)
	}
}

// end completes the record of a run.
func (rs *runs) end(r *record, result any, err error) {
	size := len(r.end(result, err))
	rs.mu.Lock()
	defer rs.mu.Unlock()
	if slices.Contains(rs.last, r) {
		rs.bytes += size
		rs.trim()
	}
}

// end completes a record and returns it as JSON.
func (r *record) end(result any, err error) []byte {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.Elapsed = float64(time.Since(r.Begun).Microseconds()) / 1000
	if r.Result = result; err != nil {
		r.Result, r.Error = nil, err.Error()
	}

	text, failed := json.Marshal(r)
	if failed != nil {
		text = []byte(`{}`)
	}
	r.Result, r.Events, r.ended = nil, nil, text
	return text
}

// whole returns the record as JSON, or nil before it is complete.
func (r *record) whole() []byte {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.ended
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

// readRun returns the record of a run as JSON, or nil if there is none.
func (s *Server) readRun(ctx context.Context, id string) ([]byte, error) {
	if r := s.runs.find(id); r != nil {
		return r.encode()
	}
	if s.cfg.Record == nil {
		return nil, nil
	}
	return s.cfg.Record(ctx, id)
}

// addRuns adds the resource for the records.
func (s *Server) addRuns(server *mcp.Server) {
	server.AddResourceTemplate(&mcp.ResourceTemplate{
		URITemplate: runScheme + "{id}", Name: "run", Title: "A run", MIMEType: "application/json",
		Description: "The record of a snippet or a question: what was given, how it went and how it ended.",
	}, func(ctx context.Context, req *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
		text, err := s.readRun(ctx, strings.TrimPrefix(req.Params.URI, runScheme))
		if err != nil {
			return nil, err
		}
		if text == nil {
			return nil, mcp.ResourceNotFoundError(req.Params.URI)
		}
		return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{
			{URI: req.Params.URI, MIMEType: "application/json", Text: string(text)},
		}}, nil
	})
}
