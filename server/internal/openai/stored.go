package openai

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"time"

	"github.com/rlmhq/rlm/internal/text/problem"
	"github.com/rlmhq/rlm/repl/llm"
	"github.com/rlmhq/rlm/server/internal/access"
	"github.com/rlmhq/rlm/server/internal/gate"
	"github.com/rlmhq/rlm/server/internal/records"
)

// stored is a response in the database. For the response of a run, it contains only the request's
// data; the progress is read from the run.
type stored struct {
	resource
	tenant, run, previous string
	input                 []turn
	size                  int // the row's size in bytes

	// The following fields are set for a direct answer with an Idempotency-Key, before it is
	// stored.
	word   string
	digest []byte

	begun func() // called when the response is stored, so that similar requests may begin
}

func (a *API) insert(ctx context.Context, row *stored) error {
	given, err := json.Marshal(row.input)
	if err != nil {
		return err
	}

	body, err := marshal(row.resource)
	if err != nil {
		return err
	}
	return records.Within(ctx, a.DB, func(tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, `INSERT INTO responses (id, tenant, run, previous, input, body, created)
			VALUES (?, ?, ?, ?, ?, ?, ?)`,
			row.ID, row.tenant, row.run, row.previous, string(given), string(body), records.Time(time.Now()))
		if err == nil && row.Conversation != nil {
			err = addEntries(ctx, tx, row.tenant, row.Conversation.ID, []entry{{response: row.ID}}, []string{"{}"})
		}
		if err == nil && row.word != "" {
			err = records.AddRepeated(ctx, tx, row.tenant, row.word, row.digest, row.ID)
		}
		return err
	})
}

// update stores the current state of a response.
func (a *API) update(ctx context.Context, r *resource) error {
	body, err := marshal(r)
	if err != nil {
		return err
	}
	_, err = a.DB.ExecContext(ctx, `UPDATE responses SET body = ? WHERE id = ?`, string(body), r.ID)
	return err
}

// stored returns a response of a tenant. A direct answer that is kept only for its Idempotency-Key
// is not found.
func (a *API) stored(ctx context.Context, tenant, id string) (*stored, error) {
	row, err := a.find(ctx, tenant, `id = ?`, id)
	if err == nil && (row == nil || !row.Store) {
		err = problem.NotFound("response", id)
	}
	if err != nil {
		return nil, err
	}

	if row.run == "" && !row.isOver() && !a.directs.has(id) {
		if again, err := a.find(ctx, tenant, `id = ?`, id); err != nil || again != nil && again.isOver() {
			return again, err // it has ended meanwhile
		}
		row.Status, row.Error = "failed", &failure{"interrupted", "the server stopped before the answer: ask again"}
	}
	return row, nil
}

// byRun returns the response of a run, or nil if there is none.
func (a *API) byRun(ctx context.Context, tenant, run string) (*stored, error) {
	return a.find(ctx, tenant, `run = ?`, run)
}

// find returns a response of a tenant, or nil if there is none. Its size counts towards the
// request's memory.
func (a *API) find(ctx context.Context, tenant, where string, arg any) (*stored, error) {
	row, given, body := &stored{tenant: tenant}, "", ""
	from := ` FROM responses WHERE tenant = ? AND ` + where
	err := a.DB.QueryRowContext(ctx,
		`SELECT octet_length(input) + octet_length(body)`+from, tenant, arg).Scan(&row.size)
	if err == nil {
		err = gate.Hold(ctx, row.size)
	}
	if err == nil {
		err = a.DB.QueryRowContext(ctx, `SELECT run, previous, input, body`+from, tenant, arg).
			Scan(&row.run, &row.previous, &given, &body)
	}

	if errors.Is(err, sql.ErrNoRows) { // it may have been deleted between the two queries
		return nil, nil //nolint:nilnil // documented: none
	}
	if err != nil {
		return nil, err
	}
	return row, errors.Join(json.Unmarshal([]byte(given), &row.input), json.Unmarshal([]byte(body), &row.resource))
}

// earlier returns the messages of a response and of its predecessors.
func (a *API) earlier(ctx context.Context, tenant, id string) (turns []turn, err error) {
	size := 0
	for n := 0; id != ""; n++ {
		if n == maxEarlier {
			return nil, problem.Bad("previous_response_id", "there are more than %d responses before it", maxEarlier)
		}
		row, err := a.stored(ctx, tenant, id)
		if err != nil {
			return nil, err
		}
		if size += row.size; size > 2*maxTexts {
			return nil, problem.Bad("previous_response_id", "the responses before it have more than %d bytes: upload "+
				"the long messages as files", 2*maxTexts)
		}
		answer, err := a.answerOf(ctx, row)
		if err != nil {
			return nil, err
		}
		for _, t := range slices.Backward(answer) {
			turns = append(turns, t)
		}
		for _, t := range slices.Backward(row.input) {
			turns = append(turns, t)
		}
		id = row.previous
	}

	slices.Reverse(turns)
	return turns, nil
}

// codeGoesOn is the error code for a response that has no answer yet.
const codeGoesOn = "response_in_progress"

// answerOf returns the answer of a response: its text, and the calls that it requested.
func (a *API) answerOf(ctx context.Context, row *stored) (answer []turn, err error) {
	text, calls, isOver := row.text(), row.calls(), row.isOver()
	if row.run != "" {
		record, err := a.Runs.Get(ctx, row.tenant, row.run)
		if err != nil {
			return nil, err
		}
		got, _ := outcome(&record) // without an answer, there is no text
		if err := (&teller{resource: row.resource}).split(&got); err != nil {
			return nil, err
		}
		text, calls, isOver = got.text, got.calls, record.IsOver()
	}
	if !isOver {
		e := problem.Bad("previous_response_id", "response %s goes on: wait for its end", row.ID)
		e.Code = codeGoesOn
		return nil, e
	}

	if text != "" || len(calls) == 0 {
		answer = append(answer, turn{Role: llm.RoleAssistant, Texts: []string{text}})
	}
	for _, c := range calls {
		answer = append(answer, c.turn())
	}
	return answer, nil
}

func (a *API) deleteResponse(w http.ResponseWriter, r *http.Request) error {
	ctx, tenant := r.Context(), access.Caller(r.Context()).Tenant
	row, err := a.stored(ctx, tenant, r.PathValue("id"))
	if err != nil {
		return err
	}

	if row.run != "" {
		if err := a.Runs.Delete(ctx, tenant, row.run); err != nil {
			return err
		}
	} else if err := a.directs.cancel(ctx, row.ID); err != nil {
		return err
	}
	if err := a.remove(ctx, row.ID); err != nil {
		return err
	}
	writeJSON(w, http.StatusOK, map[string]any{"id": row.ID, "object": "response", "deleted": true})
	return nil
}

func (a *API) remove(ctx context.Context, id string) error {
	return records.Within(ctx, a.DB, func(tx *sql.Tx) error {
		for _, from := range []string{
			"responses WHERE id", "idempotency WHERE run", "conversation_entries WHERE response",
		} {
			if _, err := tx.ExecContext(ctx, "DELETE FROM "+from+" = ?", id); err != nil {
				return err
			}
		}
		return nil
	})
}

// listInput answers GET /v1/responses/{id}/input_items.
func (a *API) listInput(w http.ResponseWriter, r *http.Request) error {
	row, err := a.stored(r.Context(), access.Caller(r.Context()).Tenant, r.PathValue("id"))
	if err != nil {
		return err
	}

	list := page[fields]{Object: "list", Data: []fields{}}
	for i := range row.input {
		list.Data = append(list.Data, row.input[i].describe(row.inputID(i)))
	}
	writeJSON(w, http.StatusOK, list)
	return nil
}

// describe returns a message as an item in the wire format, with the given ID.
func (t *turn) describe(id string) fields {
	parts := []fields{}
	for _, text := range t.Texts {
		part := fields{"type": "input_text", "text": text}
		if t.Role == llm.RoleAssistant {
			part = fields{"type": "output_text", "text": text, "annotations": []struct{}{}, "logprobs": []struct{}{}}
		}
		parts = append(parts, part)
	}
	for _, image := range t.Images {
		parts = append(parts, fields{"type": "input_image", "detail": "auto", "image_url": addressOf(image)})
	}
	for _, f := range t.Files {
		parts = append(parts, fields{"type": "input_file", "file_id": f.ID, "filename": f.Name})
	}

	c := t.Call
	switch {
	case c == nil:
		return fields{
			"id": id, "type": kindMessage, "status": "completed", "role": t.Role, "content": parts,
		}
	case c.isResult():
		return fields{"id": id, "type": c.Type, "status": "completed", "call_id": c.ID, "output": parts}
	}

	input := "arguments"
	if c.Type == kindCustomCall {
		input = "input"
	}
	return fields{
		"id": id, "type": c.Type, "status": "completed", "call_id": c.ID, "name": c.Name, input: c.Arguments,
	}
}
