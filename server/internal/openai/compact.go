package openai

import (
	"cmp"
	"context"
	"encoding/base64"
	"net/http"
	"slices"
	"strings"

	"github.com/rlmhq/rlm/internal/text/problem"
	"github.com/rlmhq/rlm/repl/llm"
	"github.com/rlmhq/rlm/server/internal/access"
	"github.com/rlmhq/rlm/server/internal/runs"
)

// kindCompaction is the kind of an item that replaces a part of a conversation. Its content is a
// summary, which clients send back unchanged.
const kindCompaction = "compaction"

// compactionMark is the prefix of the content of a compaction by this server; base64 follows.
const compactionMark = "rlm1."

const summarise = "Write a summary of the conversation so far, for a model that continues it and will see nothing " +
	"else of it. Keep what the user wants, all decisions, facts, names, numbers and results, and what is still to " +
	"be done. Answer with the summary alone."

func newCompaction(summary string) fields {
	return fields{
		"id": runs.NewID("cmp_"), "type": kindCompaction,
		"encrypted_content": compactionMark + base64.StdEncoding.EncodeToString([]byte(summary)),
	}
}

// readCompaction returns a compaction as a message.
func readCompaction(content, param string) (turn, error) {
	encoded, isOurs := strings.CutPrefix(content, compactionMark)
	summary, err := base64.StdEncoding.DecodeString(encoded)
	if !isOurs || err != nil {
		return turn{}, problem.Bad(param+".encrypted_content",
			"the compaction is not one of this server: send one of POST /v1/responses/compact")
	}
	return turn{Role: llm.RoleUser, Texts: []string{"Summary of the conversation so far:\n" + string(summary)}}, nil
}

// readWhole reads a request that concerns a whole conversation, with its earlier messages, and asks
// no question.
func (a *API) readWhole(r *http.Request) (*asked, error) {
	var c responseRequest
	if err := readJSON(r, &c); err != nil {
		return nil, err
	}

	ctx, tenant := r.Context(), access.Caller(r.Context()).Tenant
	c.Model = cmp.Or(c.Model, owner+"/"+runs.DefaultProfile)
	q, fresh, err := c.read(r, a.lookUp(ctx, tenant))
	if err != nil {
		return nil, err
	}
	if q.turns, err = a.before(ctx, tenant, &c); err != nil {
		return nil, err
	}
	if q.turns = append(q.turns, fresh...); len(q.turns) == 0 {
		err = problem.Bad("input", "the conversation is empty: give input, previous_response_id or conversation")
	}
	return q, err
}

// countInput answers POST /v1/responses/input_tokens. The number is an estimate.
func (a *API) countInput(w http.ResponseWriter, r *http.Request) error {
	q, err := a.readWhole(r)
	if err != nil {
		return err
	}
	n, err := a.Runs.CountInput(r.Context(), q.ask())
	if err == nil {
		writeJSON(w, http.StatusOK, fields{"object": "response.input_tokens", "input_tokens": n})
	}
	return err
}

// compact answers POST /v1/responses/compact. For a long conversation, it starts a run.
func (a *API) compact(w http.ResponseWriter, r *http.Request) error {
	q, err := a.readWhole(r)
	if err != nil {
		return err
	}

	output := a.keepWords(q.turns)
	q.functions, q.Schema, q.background, q.word = nil, nil, false, ""
	q.turns = append(q.turns, turn{Role: llm.RoleUser, Texts: []string{summarise}})
	if err := q.check("input"); err != nil {
		return err
	}

	got, err := a.summarise(r.Context(), q)
	if err != nil {
		return err
	}
	writeJSON(w, http.StatusOK, fields{
		"id": runs.NewID("resp_"), "object": "response.compaction", "created_at": unixNow(),
		"output": append(output, newCompaction(got.text)),
		"usage":  &usage{InputTokens: got.in, OutputTokens: got.out, TotalTokens: got.in + got.out},
		"rlm":    got.details,
	})
	return nil
}

// summarise returns a summary, or an error if the summary is incomplete.
func (a *API) summarise(ctx context.Context, q *asked) (answered, error) {
	got, finish, err := a.begin(ctx, access.Caller(ctx), q)(nil, nil)
	if err == nil && (finish != "stop" || strings.TrimSpace(got.text) == "") {
		err = problem.New(http.StatusBadGateway, "no_summary",
			"the model's summary is not whole (%s): allow more tokens, or send less", finish)
	}
	return got, err
}

// keepWords returns the newest messages of the user, which a compaction keeps unchanged.
func (a *API) keepWords(turns []turn) []fields {
	kept, left := []fields{}, a.Long/2
	for i := range slices.Backward(turns) {
		t := &turns[i]
		if t.Role != llm.RoleUser || t.Call != nil {
			continue
		}
		if left -= t.size(); left < 0 {
			break
		}
		kept = append(kept, t.describe(runs.NewID("msg_")))
	}
	slices.Reverse(kept)
	return kept
}
