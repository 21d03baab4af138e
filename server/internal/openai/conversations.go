package openai

import (
	"cmp"
	"encoding/json"
	"net/http"
	"slices"
	"time"

	"github.com/rlmhq/rlm/internal/text/problem"
	"github.com/rlmhq/rlm/server/internal/access"
	"github.com/rlmhq/rlm/server/internal/gate"
	"github.com/rlmhq/rlm/server/internal/records"
	"github.com/rlmhq/rlm/server/internal/runs"
)

// conversation is the wire format of a conversation.
type conversation struct {
	ID        string            `json:"id"`
	Object    string            `json:"object"`
	CreatedAt int64             `json:"created_at"`
	Metadata  map[string]string `json:"metadata"`
}

// conversationID names a conversation in a request. In JSON, it is a string or an object with an
// ID.
type conversationID struct {
	ID string `json:"id"`
}

// UnmarshalJSON implements [json.Unmarshaler].
func (c *conversationID) UnmarshalJSON(data []byte) error {
	if json.Unmarshal(data, &c.ID) == nil {
		return nil
	}
	type plain conversationID
	return json.Unmarshal(data, (*plain)(c))
}

// conversationRequest is the body of the requests that make and change a conversation.
type conversationRequest struct {
	Items    input             `json:"items"`
	Metadata map[string]string `json:"metadata"`
}

// These are the bounds of a conversation's metadata.
const (
	maxPairs     = 16
	maxPairBytes = 64 + 512 // of a name with its value
)

func checkMetadata(metadata map[string]string) error {
	if len(metadata) > maxPairs {
		return problem.Bad("metadata", "there are %d pairs, more than %d", len(metadata), maxPairs)
	}
	for name, value := range metadata {
		if n := len(name) + len(value); n > maxPairBytes {
			return problem.Bad("metadata", "the pair %.40q has %d bytes, more than %d", name, n, maxPairBytes)
		}
	}
	return nil
}

// entries returns the items of a request as entries of a conversation.
func (a *API) entries(r *http.Request, items input) (all []entry, err error) {
	turns, err := items.turns(a.lookUp(r.Context(), access.Caller(r.Context()).Tenant))
	if err != nil {
		return nil, err
	}
	if len(turns) > maxTurns {
		return nil, problem.Bad("items", "there are %d items, more than %d", len(turns), maxTurns)
	}
	for _, t := range turns {
		kind := "msg_"
		if t.Call != nil {
			kind = "fc_"
		}
		all = append(all, entry{item: runs.NewID(kind), turn: t})
	}
	return all, nil
}

// createConversation answers POST /v1/conversations.
func (a *API) createConversation(w http.ResponseWriter, r *http.Request) error {
	var c conversationRequest
	if err := readJSON(r, &c); err != nil {
		return err
	}
	if err := checkMetadata(c.Metadata); err != nil {
		return err
	}
	all, err := a.entries(r, c.Items)
	if err != nil {
		return err
	}

	made := conversation{runs.NewID("conv_"), "conversation", time.Now().Unix(), c.Metadata}
	if made.Metadata == nil {
		made.Metadata = map[string]string{}
	}
	if err := a.insertConversation(r.Context(), access.Caller(r.Context()).Tenant, &made, all); err != nil {
		return err
	}
	w.Header().Set(gate.ObjectHeader, made.ID)
	writeJSON(w, http.StatusOK, made)
	return nil
}

// getConversation answers GET /v1/conversations/{id}.
func (a *API) getConversation(w http.ResponseWriter, r *http.Request) error {
	c, err := a.conversation(r.Context(), access.Caller(r.Context()).Tenant, r.PathValue("id"))
	if err == nil {
		writeJSON(w, http.StatusOK, c)
	}
	return err
}

// updateConversation answers POST /v1/conversations/{id}, which replaces the metadata.
func (a *API) updateConversation(w http.ResponseWriter, r *http.Request) error {
	ctx, tenant := r.Context(), access.Caller(r.Context()).Tenant
	c, err := a.conversation(ctx, tenant, r.PathValue("id"))
	if err != nil {
		return err
	}

	var change conversationRequest
	if err := readJSON(r, &change); err != nil {
		return err
	}
	if err := checkMetadata(change.Metadata); err != nil {
		return err
	}

	if change.Metadata != nil {
		c.Metadata = change.Metadata
	}
	data, err := marshal(c.Metadata)
	if err != nil {
		return err
	}
	_, err = a.DB.ExecContext(ctx, `UPDATE conversations SET metadata = ?, used = ? WHERE id = ? AND tenant = ?`,
		string(data), records.Time(time.Now()), c.ID, tenant)
	if err == nil {
		writeJSON(w, http.StatusOK, c)
	}
	return err
}

// deleteConversation answers DELETE /v1/conversations/{id}. Its responses stay.
func (a *API) deleteConversation(w http.ResponseWriter, r *http.Request) error {
	ctx, tenant := r.Context(), access.Caller(r.Context()).Tenant
	c, err := a.conversation(ctx, tenant, r.PathValue("id"))
	if err != nil {
		return err
	}
	if err := a.removeConversation(ctx, c.ID); err != nil {
		return err
	}
	writeJSON(w, http.StatusOK, fields{"id": c.ID, "object": "conversation.deleted", "deleted": true})
	return nil
}

// addToConversation answers POST /v1/conversations/{id}/items.
func (a *API) addToConversation(w http.ResponseWriter, r *http.Request) error {
	ctx, tenant := r.Context(), access.Caller(r.Context()).Tenant
	c, err := a.conversation(ctx, tenant, r.PathValue("id"))
	if err != nil {
		return err
	}

	var more conversationRequest
	if err := readJSON(r, &more); err != nil {
		return err
	}
	all, err := a.entries(r, more.Items)
	if err != nil {
		return err
	}
	if err := a.addToEnd(ctx, tenant, c.ID, all); err != nil {
		return err
	}

	items := make([]known, len(all))
	for i := range all {
		items[i] = known{all[i].item, all[i].turn}
	}
	writeJSON(w, http.StatusOK, pageOf(items, len(items)))
	return nil
}

// pageOf returns the first items of a list in the wire format.
func pageOf(items []known, limit int) page[fields] {
	list := page[fields]{Object: "list", Data: []fields{}, HasMore: len(items) > limit}
	for i := range items[:min(len(items), limit)] {
		list.Data = append(list.Data, items[i].turn.describe(items[i].id))
		list.FirstID, list.LastID = items[0].id, items[i].id
	}
	return list
}

// listConversation answers GET /v1/conversations/{id}/items. The newest items come first.
func (a *API) listConversation(w http.ResponseWriter, r *http.Request) error {
	ctx, tenant := r.Context(), access.Caller(r.Context()).Tenant
	limit, err := limitOf(r, 20, 100)
	if err != nil {
		return err
	}
	items, err := a.itemsIn(ctx, tenant, r.PathValue("id"), false)
	if err != nil {
		return err
	}

	switch order := r.FormValue("order"); order {
	case "asc":
	case "", "desc":
		slices.Reverse(items)
	default:
		return problem.Bad("order", "%.40q is no order: give asc or desc", order)
	}
	if after := r.FormValue("after"); after != "" {
		at := slices.IndexFunc(items, func(k known) bool { return k.id == after })
		if at < 0 {
			return problem.Bad("after", "there is no item %.80q in the conversation", after)
		}
		items = items[at+1:]
	}
	writeJSON(w, http.StatusOK, pageOf(items, limit))
	return nil
}

// getConversationItem answers GET /v1/conversations/{id}/items/{item}.
func (a *API) getConversationItem(w http.ResponseWriter, r *http.Request) error {
	items, err := a.itemsIn(r.Context(), access.Caller(r.Context()).Tenant, r.PathValue("id"), false)
	if err != nil {
		return err
	}
	for i := range items {
		if items[i].id == r.PathValue("item") {
			writeJSON(w, http.StatusOK, items[i].turn.describe(items[i].id))
			return nil
		}
	}
	return problem.NotFound("item", r.PathValue("item"))
}

// deleteConversationItem answers DELETE /v1/conversations/{id}/items/{item}.
func (a *API) deleteConversationItem(w http.ResponseWriter, r *http.Request) error {
	ctx, tenant := r.Context(), access.Caller(r.Context()).Tenant
	c, err := a.conversation(ctx, tenant, r.PathValue("id"))
	if err != nil {
		return err
	}

	item := r.PathValue("item")
	isDeleted, err := a.removeItem(ctx, c.ID, item)
	if err != nil {
		return err
	}
	if !isDeleted {
		items, err := a.itemsIn(ctx, tenant, c.ID, false)
		if err == nil && slices.ContainsFunc(items, func(k known) bool { return k.id == item }) {
			err = problem.New(http.StatusConflict, "item_of_response",
				"the item is a part of response %s: delete the response", ownerOf(item))
		}
		return cmp.Or(err, error(problem.NotFound("item", item)))
	}
	writeJSON(w, http.StatusOK, c)
	return nil
}
