package openai

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strconv"

	"github.com/rlmhq/rlm/internal/text/problem"
	"github.com/rlmhq/rlm/repl/llm"
	"github.com/rlmhq/rlm/server/internal/access"
	"github.com/rlmhq/rlm/server/internal/gate"
)

// before returns the messages that precede those of the request.
func (a *API) before(ctx context.Context, tenant string, c *responseRequest) ([]turn, error) {
	if c.Conversation.ID != "" {
		return a.turnsOf(ctx, tenant, c.Conversation.ID)
	}
	return a.earlier(ctx, tenant, c.PreviousResponseID)
}

// createResponse answers POST /v1/responses.
func (a *API) createResponse(w http.ResponseWriter, r *http.Request) error {
	var c responseRequest
	if err := readJSON(r, &c); err != nil {
		return err
	}
	ctx, k := r.Context(), access.Caller(r.Context())
	q, fresh, err := c.read(r, a.lookUp(ctx, k.Tenant))
	if err != nil {
		return err
	}
	for {
		q.turns = fresh
		err := a.respondOnce(w, r, &c, q)
		if !errors.Is(err, errNoAnswer) {
			return err
		}
	}
}

// respondOnce sends the response to a question, which is new or the one of an earlier request with
// the same Idempotency-Key.
func (a *API) respondOnce(w http.ResponseWriter, r *http.Request, c *responseRequest, q *asked) error {
	ctx, k := r.Context(), access.Caller(r.Context())
	row := &stored{resource: c.resource(), tenant: k.Tenant, previous: c.PreviousResponseID, input: q.turns}
	leaveWord, err := a.words.Enter(ctx, k.Tenant, q.word)
	if err != nil {
		return err
	}
	defer leaveWord()
	known, err := a.claimed(ctx, q, row)
	if err != nil {
		return err
	}
	if known != nil {
		leaveWord()
		return a.respondAgain(w, r, known, c.Stream)
	}

	leaveTalk, err := a.talks.Enter(ctx, k.Tenant, c.Conversation.ID)
	if err != nil {
		return err
	}
	defer leaveTalk()
	row.begun = func() { leaveTalk(); leaveWord() }
	before, err := a.before(ctx, k.Tenant, c)
	if err != nil {
		return err
	}
	q.turns = slices.Concat(before, row.input)
	if err := q.check("input"); err != nil {
		return err
	}

	w.Header().Set(gate.ObjectHeader, row.ID)
	if q.isDirect(a.Long) {
		return a.respondDirectly(w, r, k, q, row, c.Stream)
	}
	return a.respondByRun(w, r, k, q, row, c.Stream)
}

// respondByRun answers with a run.
func (a *API) respondByRun(
	w http.ResponseWriter, r *http.Request, k access.Key, q *asked, row *stored, isStream bool,
) error {
	ctx := r.Context()
	record, err := a.start(ctx, k, q)
	if err != nil {
		return err
	}

	row.run = record.ID
	if row.Store {
		row.word = "" // the run has the key
		if err := a.insert(ctx, row); err != nil {
			return errors.Join(err, a.Runs.Abandon(context.WithoutCancel(ctx), k.Tenant, record.ID))
		}
	}
	row.begun()
	return a.followRun(w, r, row, isStream)
}

// followRun sends the response of a run when the run ends, or as a stream while it runs. The run is
// canceled if its last client goes away.
func (a *API) followRun(w http.ResponseWriter, r *http.Request, row *stored, isStream bool) (err error) {
	ctx := r.Context()
	leave := a.waiting.enter(row.run)
	defer func() {
		if isLast := leave(); isLast && ctx.Err() != nil && !row.Background {
			err = errors.Join(err, a.Runs.Abandon(context.WithoutCancel(ctx), row.tenant, row.run))
		}
	}()
	switch {
	case isStream:
		err = a.stream(w, r, row, -1)
	case row.Background:
		err = a.sendNow(w, r, row)
	default:
		if _, err = a.Runs.Wait(ctx, row.tenant, row.run); err == nil {
			err = a.sendNow(w, r, row)
		}
	}
	return err
}

// sendNow sends the current state of a response.
func (a *API) sendNow(w http.ResponseWriter, r *http.Request, row *stored) error {
	t := &teller{resource: row.resource}
	if row.run == "" {
		writeJSON(w, http.StatusOK, row.resource)
		return nil
	}

	err := a.tellRun(r.Context(), t, row.tenant, row.run, func() error { return errNow })
	if err != nil && !errors.Is(err, errPaused) {
		return err
	}
	writeJSON(w, http.StatusOK, t.resource)
	return nil
}

// stream sends the events of a response after the event with the given number; -1 means all events.
func (a *API) stream(w http.ResponseWriter, r *http.Request, row *stored, after int64) error {
	out := newEventStream(w, after)
	defer out.close()
	t := &teller{resource: row.resource, send: out.send}

	var err error
	if row.run != "" {
		err = a.tellRun(r.Context(), t, row.tenant, row.run, out.flush)
	} else if err = t.beginAgain(&row.resource); err == nil {
		_ = out.flush() // the next event reports the error, too
		whole, failed := a.wholeOf(r.Context(), row)
		if failed == nil {
			err = t.tellRest(&whole.resource)
		} else {
			err = t.end(&answered{}, failed, unixNow())
		}
	}
	if err == nil {
		out.done()
	} else if out.begun() {
		a.Log.Debug("a stream broke off", "response", row.ID, "error", err)
		return nil
	}
	return err
}

// respondDirectly answers the question with the root model.
func (a *API) respondDirectly(
	w http.ResponseWriter, r *http.Request, k access.Key, q *asked, row *stored, isStream bool,
) error {
	if row.Background {
		if err := a.answerLater(r.Context(), k, q, row); err != nil {
			return err
		}
		row.begun()
		if isStream {
			return a.stream(w, r, row, -1)
		}
		writeJSON(w, http.StatusOK, row.resource)
		return nil
	}

	t, ctx := &teller{resource: row.resource}, r.Context()
	if row.Store || row.word != "" {
		inner, forget, err := a.keepNow(ctx, row, t)
		if err != nil {
			return err
		}
		defer forget()
		ctx = inner
	}
	row.begun()
	if isStream {
		return a.streamDirect(ctx, w, k, q, t)
	}

	t.Status = "in_progress"
	if err := a.answerNow(ctx, k, q, t); err != nil {
		return err
	}
	writeJSON(w, http.StatusOK, t.resource)
	return nil
}

// answerNow asks the model and reports its answer. A failure is returned as an error.
func (a *API) answerNow(ctx context.Context, k access.Key, q *asked, t *teller) error {
	reply, err := a.Runs.Ask(ctx, k, q.ask())
	if err != nil {
		return err
	}
	got := describeReply(&reply)
	got.incomplete = incompleteOf(reply.Finish)
	if err := t.split(&got); err != nil {
		return err
	}
	return t.end(&got, nil, unixNow())
}

// incompleteOf returns why a direct answer is incomplete, in the terms of responses.
func incompleteOf(finish string) string {
	switch finish {
	case llm.FinishLength:
		return "max_output_tokens"
	case llm.FinishRefusal:
		return "content_filter"
	}
	return ""
}

// streamDirect sends a direct answer as it arrives.
func (a *API) streamDirect(
	ctx context.Context, w http.ResponseWriter, k access.Key, q *asked, t *teller,
) error {
	out := newEventStream(w, -1)
	defer out.close()
	t.send = out.send
	ask := q.ask()
	told := false
	var broken error
	begin := func() {
		if !told {
			told, broken = true, t.begin()
		}
	}

	ask.Accepted = func() {
		if begin(); broken == nil {
			broken = out.flush()
		}
	}
	if len(q.Schema) == 0 {
		ask.Stream = func(text string) {
			if begin(); broken != nil {
				return
			}
			if text != "" {
				broken = t.add(text)
			} else if t.text() != "" {
				broken = problem.New(http.StatusBadGateway, "model_failed", "the model's server broke off: ask again")
			}
			broken = errors.Join(broken, out.flush())
		}
	}

	reply, err := a.Runs.Ask(ctx, k, ask)
	if err != nil && !told {
		return err
	}
	begin()
	got := describeReply(&reply)
	got.incomplete = incompleteOf(reply.Finish)
	if sent := t.text(); sent != "" && reply.Finish == llm.FinishRefusal {
		got.text = sent // without the explanation, because deltas cannot be taken back
	}
	if err == nil {
		err = t.split(&got)
	}
	if err = t.end(&got, errors.Join(err, broken), unixNow()); err != nil {
		return nil // the client has gone away
	}
	out.done()
	return nil
}

// getResponse answers GET /v1/responses/{id}.
func (a *API) getResponse(w http.ResponseWriter, r *http.Request) error {
	row, err := a.stored(r.Context(), access.Caller(r.Context()).Tenant, r.PathValue("id"))
	if err != nil {
		return err
	}
	if r.FormValue("stream") != "true" {
		return a.sendNow(w, r, row)
	}

	after := int64(-1)
	if text := r.FormValue("starting_after"); text != "" {
		if after, err = strconv.ParseInt(text, 10, 64); err != nil || after < 0 {
			return problem.Bad("starting_after", "%.40q is no sequence_number", text)
		}
	}
	return a.stream(w, r, row, after)
}

// cancelResponse answers POST /v1/responses/{id}/cancel.
func (a *API) cancelResponse(w http.ResponseWriter, r *http.Request) error {
	ctx, tenant := r.Context(), access.Caller(r.Context()).Tenant
	row, err := a.stored(ctx, tenant, r.PathValue("id"))
	if err != nil {
		return err
	}
	if !row.Background {
		return problem.Bad("", "only a response in the background can be canceled: close the connection of others")
	}

	if row.run != "" {
		err = a.Runs.Cancel(ctx, tenant, row.run)
	} else {
		err = a.directs.cancel(ctx, row.ID)
	}
	if err != nil {
		return err
	}
	if row, err = a.stored(ctx, tenant, row.ID); err != nil {
		return err
	}
	return a.sendNow(w, r, row)
}
