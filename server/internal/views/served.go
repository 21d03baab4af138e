// Package views provides the viewer with the runs of a server's tenants.
package views

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"strconv"

	"github.com/rlmhq/rlm/internal/text/problem"
	"github.com/rlmhq/rlm/internal/text/texts"
	"github.com/rlmhq/rlm/repl/ledger"
	"github.com/rlmhq/rlm/repl/llm"
	"github.com/rlmhq/rlm/router"
	"github.com/rlmhq/rlm/server/internal/access"
	"github.com/rlmhq/rlm/server/internal/failures"
	"github.com/rlmhq/rlm/server/internal/gate"
	"github.com/rlmhq/rlm/server/internal/runs"
	"github.com/rlmhq/rlm/tiers"
	"github.com/rlmhq/rlm/viewer"
)

// Limits on what the viewer of a server shows.
const (
	maxListed  = 1_000 // runs
	listedPage = 100   // runs per query, because a question may be long
	maxTitle   = 200   // characters
	maxReading = 2     // runs that are read at the same time, because each may have many texts
)

// Page returns the paths of the page itself. They need no key, because they are the same for
// everyone.
func Page() []string { return []string{"/", "/viewer.js", "/viewer.css"} }

// AddTo adds the viewer to a mux. Its page is at the root, and shows the runs of the caller's
// tenant.
func AddTo(mux gate.Mux, m *runs.Manager, log *slog.Logger) {
	shown := viewer.New(&served{m, make(chan struct{}, maxReading)}, log)
	mux.Handle("GET /{$}", shown)
	mux.Handle("GET /viewer.js", shown)
	mux.Handle("GET /viewer.css", shown)

	mux.HandleFunc("GET /api/", func(w http.ResponseWriter, r *http.Request) {
		err := access.Need(r.Context(), access.Read)
		if id := r.FormValue("id"); err == nil && id != "" {
			// The viewer caches runs, so its source cannot check the tenant of each request.
			_, err = m.Get(r.Context(), access.Caller(r.Context()).Tenant, id)
		}
		if err != nil {
			failures.Write(w, err)
			return
		}
		shown.ServeHTTP(w, r)
	})
}

// served is the source of the runs of the caller's tenant.
type served struct {
	runs    *runs.Manager
	reading chan struct{}
}

// List implements [viewer.Source].
func (s *served) List(ctx context.Context) (items []viewer.Item, err error) {
	f := runs.Filter{Limit: listedPage}
	for len(items) < maxListed {
		page, more, err := s.runs.List(ctx, access.Caller(ctx).Tenant, f)
		if err != nil {
			return nil, err
		}
		for i := range page {
			items = append(items, describe(&page[i]))
		}
		if !more {
			break
		}
		f.After = page[len(page)-1].ID
	}
	return items, nil
}

func describe(r *runs.Record) viewer.Item {
	item := viewer.Item{
		ID: r.ID, Title: texts.Truncate(r.Spec.Question, maxTitle), Status: r.Status,
		Calls: r.Charged.Calls, USD: r.Charged.USD, Unpriced: r.Charged.Unpriced, Changed: r.Created,
	}
	if !r.Ended.IsZero() {
		item.Changed = r.Ended
	}
	return item
}

// errAll ends the reading of events at the last existing one.
var errAll = errors.New("that is all for now")

// Open implements [viewer.Source].
func (s *served) Open(ctx context.Context, id string) (*viewer.Run, error) {
	select {
	case s.reading <- struct{}{}:
		defer func() { <-s.reading }()
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	tenant := access.Caller(ctx).Tenant
	record, err := s.find(ctx, tenant, id) // before the events, so that an end is read again
	if err != nil {
		return nil, err
	}

	var build viewer.Builder
	count := int64(0)
	err = s.runs.Follow(ctx, tenant, id, 0, func(n int64, line []byte) error {
		count = n
		return add(&build, line)
	}, func() error { return errAll })
	if err != nil && !errors.Is(err, errAll) {
		return nil, err
	}
	if count == 0 {
		build.Event(&ledger.Event{
			Kind: ledger.EventRunStarted, Node: "0", Time: record.Created, Text: record.Spec.Question,
		})
	}
	return finish(build.Run(), &record, count), nil
}

// finish adds the data of a run's record.
func finish(run *viewer.Run, record *runs.Record, count int64) *viewer.Run {
	run.Title = texts.Truncate(record.Spec.Question, maxTitle)
	run.Status, run.Stamp = record.Status, strconv.FormatInt(count, 10)
	if !record.IsOver() {
		run.Status = viewer.StatusRunning
	}

	if record.Reason != "" {
		run.Notes = append(run.Notes, record.Reason)
	}
	run.Nodes[0].Status = run.Status
	return run
}

func (s *served) find(ctx context.Context, tenant, id string) (runs.Record, error) {
	record, err := s.runs.Get(ctx, tenant, id)
	var failed *problem.Error
	if errors.As(err, &failed) && failed.Status == http.StatusNotFound {
		err = errors.Join(viewer.ErrNotFound, err)
	}
	return record, err
}

// add adds an event of a run's log.
func add(build *viewer.Builder, line []byte) error {
	var e runs.Event
	if err := json.Unmarshal(line, &e); err != nil {
		return err
	}

	reply := cmp.Or(e.Reply, e.Text)
	switch {
	case e.Kind == ledger.EventSnippet:
		e.Ran = &ledger.Snippet{Source: e.Code}
		e.Ran.Result = router.Result{Result: tiers.Result{Stdout: e.Stdout, Stderr: e.Stderr}}
	case e.Kind == ledger.EventCall && e.Prompt != "":
		e.Call = &ledger.SubCall{Prompt: e.Prompt, Response: reply}
	case e.Kind == ledger.EventCall || e.Kind == ledger.EventReply:
		e.Response = &llm.Response{Text: reply}
	}
	build.Event(&e.Event)
	return nil
}

// errNews reports that a run has a new event.
var errNews = errors.New("there is a further event")

// Wait implements [viewer.Source].
func (s *served) Wait(ctx context.Context, id string, run *viewer.Run) error {
	tenant := access.Caller(ctx).Tenant
	switch run.Status {
	case viewer.StatusParked:
		return s.waitForDecision(ctx, tenant, id, run)
	case viewer.StatusRunning:
	default:
		return viewer.ErrEnded
	}

	known, err := strconv.ParseInt(run.Stamp, 10, 64)
	if err != nil {
		return err
	}
	err = s.runs.Follow(ctx, tenant, id, known,
		func(int64, []byte) error { return errNews }, func() error { return nil })
	if errors.Is(err, errNews) {
		return nil
	}

	if err != nil {
		return err
	}
	record, err := s.runs.Wait(ctx, tenant, id) // the record is written after the last event
	if err == nil && record.Status != viewer.StatusParked {
		err = viewer.ErrEnded
	}
	return err
}

// waitForDecision waits until a parked run continues or is parked again.
func (s *served) waitForDecision(ctx context.Context, tenant, id string, run *viewer.Run) error {
	known, err := s.find(ctx, tenant, id)
	if err != nil || known.Status != viewer.StatusParked {
		return err
	}
	return viewer.Poll(ctx, run, func() (bool, error) {
		now, err := s.find(ctx, tenant, id)
		return now.Status != known.Status || !now.Ended.Equal(known.Ended), err
	})
}
