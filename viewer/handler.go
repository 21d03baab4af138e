package viewer

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"html"
	"log/slog"
	"net/http"
	"strconv"
	"sync"
	"time"
)

// Limits on requests.
const (
	maxFound  = 10_000 // nodes that a search returns
	maxQuery  = 1_000  // bytes of a search query
	maxOpened = 4      // runs that stay in memory
	maxParts  = 200    // nodes whose texts one request may fetch
	maxPart   = 50_000 // bytes of each text; only the texts of the first node are complete
)

// handler serves a viewer.
type handler struct {
	source Source
	log    *slog.Logger

	mu      sync.Mutex
	opened  []openedRun // the most recently used one last
	version int64       // version of the last run that was read
}

type openedRun struct {
	id  string
	run *Run
}

// New returns a viewer of a source's runs. Mount it below any path that ends in a slash. It checks
// no permissions: see [Guard].
func New(source Source, log *slog.Logger) http.Handler {
	h := &handler{source: source, log: log}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", h.servePage)
	mux.HandleFunc("GET /viewer.js", serveFile("text/javascript; charset=utf-8", script()))
	mux.HandleFunc("GET /viewer.css", serveFile("text/css; charset=utf-8", style()))
	mux.HandleFunc("GET /api/runs", h.serveRuns)
	mux.HandleFunc("GET /api/run", h.serveRun)
	mux.HandleFunc("GET /api/texts", h.serveTexts)
	mux.HandleFunc("GET /api/search", h.serveSearch)
	mux.HandleFunc("GET /api/changes", h.serveChanges)
	return withHeaders(mux)
}

// withHeaders adds headers that forbid everything that the page does not need.
func withHeaders(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		head := w.Header()
		head.Set("Content-Security-Policy", policy("'self'", "'self'")+"; connect-src 'self'; frame-ancestors 'none'")
		head.Set("X-Content-Type-Options", "nosniff")
		head.Set("Referrer-Policy", "no-referrer")
		head.Set("Cross-Origin-Resource-Policy", "same-origin")
		head.Set("Cross-Origin-Opener-Policy", "same-origin")
		head.Set("Cache-Control", "no-store")
		next.ServeHTTP(w, r)
	})
}

// policy returns the content security policy for a page with these script and style sources.
func policy(scripts, styles string) string {
	return "default-src 'none'; script-src " + scripts + "; style-src " + styles +
		"; img-src data:; base-uri 'none'; form-action 'none'" +
		"; require-trusted-types-for 'script'; trusted-types 'none'"
}

// hashOf returns the hash of a script or style for a policy.
func hashOf(text string) string {
	sum := sha256.Sum256([]byte(text))
	return "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
}

func serveFile(kind, content string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", kind)
		_, _ = w.Write([]byte(content)) // fails if the browser has gone away
	}
}

func (h *handler) servePage(w http.ResponseWriter, r *http.Request) {
	serveFile("text/html; charset=utf-8", page(parts{
		head: `<link rel="stylesheet" href="viewer.css"><meta name="empty" content="` +
			html.EscapeString(whenEmpty(h.source)) + `">`,
		tail: `<script src="viewer.js"></script>`,
	}))(w, r)
}

// reply sends a value, or an error.
func (h *handler) reply(w http.ResponseWriter, value any, err error) {
	if err != nil {
		code := http.StatusInternalServerError
		if errors.Is(err, ErrNotFound) {
			code = http.StatusNotFound
		}
		h.log.Warn("the viewer cannot show a run", "error", err)
		http.Error(w, err.Error(), code)
		return
	}

	w.Header().Set("Content-Type", "application/json")
	if err := json.NewEncoder(w).Encode(value); err != nil {
		h.log.Debug("the viewer's browser has gone away", "error", err)
	}
}

func (h *handler) serveRuns(w http.ResponseWriter, r *http.Request) {
	items, err := h.source.List(r.Context())
	if items == nil {
		items = []Item{}
	}
	h.reply(w, items, err)
}

func (h *handler) serveRun(w http.ResponseWriter, r *http.Request) {
	run, err := h.open(r.Context(), r.FormValue("id"), true)
	h.reply(w, run, err)
}

func (h *handler) serveTexts(w http.ResponseWriter, r *http.Request) {
	run, err := h.open(r.Context(), r.FormValue("id"), false)
	var texts []nodeText
	if err == nil {
		texts, err = textsOf(run, r.Form["node"])
	}
	h.reply(w, texts, err)
}

// found is the result of a search.
type found struct {
	Nodes []int `json:"nodes"`
	More  bool  `json:"more"`
}

func (h *handler) serveSearch(w http.ResponseWriter, r *http.Request) {
	text := r.FormValue("text")
	if text == "" || len(text) > maxQuery {
		http.Error(w, fmt.Sprintf("give a text of 1 to %d bytes", maxQuery), http.StatusBadRequest)
		return
	}

	run, err := h.open(r.Context(), r.FormValue("id"), false)
	var all found
	if err == nil {
		all.Nodes, all.More = run.search(text, maxFound)
	}
	h.reply(w, all, err)
}

// open returns a run: if anew is set, it reads the run again; otherwise the run may be from memory.
func (h *handler) open(ctx context.Context, id string, anew bool) (*Run, error) {
	if !anew {
		h.mu.Lock()
		for _, one := range h.opened {
			if one.id == id {
				h.mu.Unlock()
				return one.run, nil
			}
		}
		h.mu.Unlock()
	}

	run, err := h.source.Open(ctx, id)
	if err == nil {
		h.keep(id, run)
	}
	return run, err
}

// keep keeps a run in memory, and drops the least recently used run beyond the limit.
func (h *handler) keep(id string, run *Run) {
	h.mu.Lock()
	defer h.mu.Unlock()
	kept := []openedRun{}
	for _, one := range h.opened {
		if one.id != id {
			kept = append(kept, one)
		}
	}

	if run.Version == 0 { // a source may return the same run again, while other requests use it
		h.version++
		run.Version = h.version
	}
	kept = append(kept, openedRun{id, run})
	h.opened = kept[max(len(kept)-maxOpened, 0):]
}

// change is the difference between two versions of a run. Nodes are identified by their numbers.
type change struct {
	Title  string       `json:"title"`
	Status string       `json:"status"`
	Notes  []string     `json:"notes,omitempty"`
	Count  int          `json:"count"` // number of all nodes: there may be fewer than before
	Nodes  map[int]Node `json:"nodes,omitempty"`
}

// The pause between two changes has this minimum length. It is also at least this multiple of the
// time that reading the run takes, so that a large run does not keep a processor busy.
const (
	pause      = 250 * time.Millisecond
	pauseTimes = 3
)

// serveChanges sends the changes of a run until it has ended, as server-sent events. A browser with
// an outdated version first receives the whole run.
func (h *handler) serveChanges(w http.ResponseWriter, r *http.Request) {
	id := r.FormValue("id")
	before, err := h.open(r.Context(), id, false)
	if err != nil {
		h.reply(w, nil, err)
		return
	}

	if r.FormValue("version") != strconv.FormatInt(before.Version, 10) {
		before = &Run{Status: StatusRunning, Stamp: before.Stamp}
	}

	w.Header().Set("Content-Type", "text/event-stream")
	flow := http.NewResponseController(w)
	for {
		if err := flow.Flush(); err != nil {
			return
		}
		var err error
		if before.Version > 0 {
			err = h.source.Wait(r.Context(), id, before)
		}
		ended := errors.Is(err, ErrEnded)
		if err != nil && !ended {
			return
		}

		began := time.Now()
		after, err := h.open(r.Context(), id, true)
		if err != nil {
			return
		}
		if err := sendChange(w, before, after, ended); err != nil || ended {
			_ = flow.Flush() // fails if the browser has gone away
			return
		}

		before = after
		select {
		case <-r.Context().Done():
			return
		case <-time.After(max(pause, pauseTimes*time.Since(began))):
		}
	}
}

// sendChange sends the difference between two versions of a run.
func sendChange(w http.ResponseWriter, before, after *Run, ended bool) error {
	c := change{
		Title: after.Title, Status: after.Status, Notes: after.Notes,
		Count: len(after.Nodes), Nodes: map[int]Node{},
	}
	for i := range after.Nodes {
		if i >= len(before.Nodes) || after.Nodes[i] != before.Nodes[i] {
			c.Nodes[i] = after.Nodes[i]
		}
	}

	data, err := json.Marshal(c)
	if err != nil {
		return err
	}

	name := "change"
	if ended {
		name = "ended"
	}
	_, err = fmt.Fprintf(w, "event: %s\ndata: %s\n\n", name, data)
	return err
}
