package openai

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"time"

	"github.com/rlmhq/rlm/internal/text/problem"
	"github.com/rlmhq/rlm/server/internal/access"
	"github.com/rlmhq/rlm/server/internal/gate"
	"github.com/rlmhq/rlm/server/internal/records"
	"github.com/rlmhq/rlm/server/internal/runs"
)

// digest returns a digest that distinguishes questions with the same Idempotency-Key. It omits the
// messages of earlier responses, because a conversation grows by the answer itself.
func (q *asked) digest(row *stored) ([]byte, error) {
	ask := q.ask()
	ask.Messages = nil
	sum := sha256.New()
	err := json.NewEncoder(sum).Encode([]any{
		row.Object, row.previous, row.Conversation, row.Background, q.Spec, q.loop, ask, row.input,
	})
	return sum.Sum(nil), err
}

// claimed returns the response of an earlier request with the same Idempotency-Key, or nil if there
// is none. In this case, the row will be stored for later requests, even if it is hidden from the
// client. A lost answer is made again. The caller has entered a.words.
func (a *API) claimed(ctx context.Context, q *asked, row *stored) (*stored, error) {
	switch {
	case q.word == "":
		return nil, nil //nolint:nilnil // documented: none
	case len(q.word) > runs.MaxWord:
		return nil, problem.Bad("Idempotency-Key", "the header has %d bytes, more than %d", len(q.word), runs.MaxWord)
	}

	digest, err := q.digest(row)
	if err != nil {
		return nil, err
	}
	row.word, row.digest, q.digested = q.word, digest, digest

	made, err := records.FindRepeated(ctx, a.DB, row.tenant, row.word, row.digest)
	if err != nil || made == "" {
		return nil, err
	}
	if runs.IsID(made) {
		return a.byRun(ctx, row.tenant, made) // nil if not stored; then the run is found
	}

	isGoing := a.directs.has(made)
	first, err := a.find(ctx, row.tenant, `id = ?`, made)
	if err != nil || first != nil && (isGoing || first.isOver()) {
		return first, err
	}
	return nil, a.remove(ctx, made) // the server stopped before the answer ended, or it was deleted
}

// errNoAnswer reports that the first request with an Idempotency-Key got no direct answer. Of the
// requests that waited for this answer, one then asks the model.
var errNoAnswer = problem.Later(http.StatusConflict, "idempotency_in_use", time.Second,
	"the first request of this answer got none: try again")

// wholeOf waits until a direct answer is complete, and returns it. The wait is bounded, because the
// first request has the time limits of a model call.
func (a *API) wholeOf(ctx context.Context, row *stored) (*stored, error) {
	if err := a.directs.wait(ctx, row.ID); err != nil {
		return nil, err
	}
	whole, err := a.find(ctx, row.tenant, `id = ?`, row.ID)
	if err == nil && whole == nil {
		err = errNoAnswer
	}
	if err == nil && !whole.isOver() {
		whole.Status, whole.Error = "failed", &failure{"interrupted", "the server stopped before the answer: ask again"}
	}
	return whole, err
}

// respondAgain sends an existing response to another request for it.
func (a *API) respondAgain(w http.ResponseWriter, r *http.Request, row *stored, isStream bool) error {
	w.Header().Set(gate.ObjectHeader, row.ID)
	if row.run != "" {
		return a.followRun(w, r, row, isStream)
	}
	if isStream {
		return a.stream(w, r, row, -1)
	}

	if !row.Background {
		whole, err := a.wholeOf(r.Context(), row)
		if err != nil {
			return err
		}
		row = whole
	}
	writeJSON(w, http.StatusOK, row.resource)
	return nil
}

// workOnce is like begin, but requests with the same Idempotency-Key share a direct answer. Base is
// changed to the ID and time of the first request's completion.
func (a *API) workOnce(ctx context.Context, k access.Key, q *asked, base *chunk) (work, error) {
	if q.word == "" || !q.isDirect(a.Long) {
		return a.begin(ctx, k, q), nil
	}
	row := &stored{tenant: k.Tenant, input: q.turns, resource: resource{
		ID: base.ID, Object: "chat.completion", CreatedAt: base.Created, Model: base.Model, Output: []item{},
	}}
	leave, err := a.words.Enter(ctx, k.Tenant, q.word)
	if err != nil {
		return nil, err
	}
	defer leave()
	first, err := a.claimed(ctx, q, row)
	if err != nil {
		return nil, err
	}
	if first != nil {
		base.ID, base.Created = first.ID, first.CreatedAt
		return func(stream func(string), accepted func()) (answered, string, error) {
			if accepted != nil {
				accepted()
			}
			whole, err := a.wholeOf(ctx, first)
			if errors.Is(err, errNoAnswer) {
				var do work
				if do, err = a.workOnce(ctx, k, q, base); err == nil {
					return do(stream, nil)
				}
			}
			if err != nil {
				return answered{}, "", err
			}
			return q.again(whole)
		}, nil
	}

	row.input = nil // the digest replaces it
	t := &teller{resource: row.resource}
	ctx, forget, err := a.keepNow(ctx, row, t)
	if err != nil {
		return nil, err
	}

	do := a.begin(ctx, k, q)
	return func(stream func(string), accepted func()) (answered, string, error) {
		defer forget()
		got, finish, err := do(stream, accepted)
		if err == nil {
			err = t.keepChat(got, finish)
		}
		return got, finish, err
	}, nil
}

// chatFinishes maps the finish reasons of incomplete completions to the reasons that are stored.
var chatFinishes = map[string]string{"length": "max_output_tokens", "content_filter": "content_filter"}

// keepChat stores a completion.
func (t *teller) keepChat(got answered, finish string) error {
	got.incomplete = chatFinishes[finish]
	got.calls = slices.Clone(got.calls)
	t.nameCalls(got.calls)
	return t.end(&got, nil, unixNow())
}

// again returns a stored completion.
func (q *asked) again(row *stored) (answered, string, error) {
	if row.Error != nil {
		return answered{}, "", problem.New(http.StatusBadGateway, row.Error.Code, "%s", row.Error.Message)
	}
	got := answered{text: row.text(), calls: row.calls(), in: row.Usage.InputTokens, out: row.Usage.OutputTokens}

	if row.RLM != nil {
		got.details = *row.RLM
	}
	for i := range got.calls {
		c := &got.calls[i]
		c.isNested = q.functions != nil && slices.ContainsFunc(q.functions.list, func(t tool) bool {
			return t.Name == c.Name && t.isNested
		})
	}

	finish := "stop"
	if len(got.calls) > 0 {
		finish = "tool_calls"
	}
	if row.IncompleteDetails != nil {
		for word, reason := range chatFinishes {
			if reason == row.IncompleteDetails.Reason {
				finish = word
			}
		}
	}
	return got, finish, nil
}
