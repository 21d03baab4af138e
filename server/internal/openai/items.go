package openai

import (
	"context"
	"fmt"
	"net/http"
	"strings"

	"github.com/rlmhq/rlm/internal/text/problem"
	"github.com/rlmhq/rlm/server/internal/gate"
)

// lookUp returns the messages of an item that a request names by its ID. Their size counts towards
// the request's memory.
type lookUp func(id, param string) ([]turn, error)

// known is an item of a stored response or of a conversation.
type known struct {
	id   string
	turn turn
}

// isReference reports whether an item only refers to another one.
func (i *inputItem) isReference() bool {
	return i.Type == "item_reference" || i.Type == "" && i.Role == "" && i.ID != ""
}

// inputID returns the ID of an item of a response's input.
func (row *stored) inputID(i int) string {
	kind := "msg"
	if row.input[i].Call != nil {
		kind = "fc"
	}
	return fmt.Sprintf("%s_%d_%s", kind, i, row.ID)
}

// itemsOf returns the items of a response that has ended: its input and its answer.
func (a *API) itemsOf(ctx context.Context, row *stored) (all []known, err error) {
	for i := range row.input {
		all = append(all, known{row.inputID(i), row.input[i]})
	}

	answer, err := a.answerOf(ctx, row)
	for i := range answer {
		id := "msg_" + strings.TrimPrefix(row.ID, "resp_")
		if c := answer[i].Call; c != nil {
			one := call{ID: c.ID}
			if c.Type == kindCustomCall {
				one.kind = kindCustom
			}
			id = one.itemID()
		}
		all = append(all, known{id, answer[i]})
	}
	return all, err
}

// ownerOf returns the ID of the response to which an item belongs, according to the item's ID, or
// "" if it belongs to none.
func ownerOf(item string) string {
	kind, rest, _ := strings.Cut(item, "_")
	switch kind {
	case "msg", "fc", "ctc":
	default:
		return ""
	}
	if _, response, is := strings.Cut(rest, "_resp_"); is {
		return "resp_" + response
	}
	rest, _, _ = strings.Cut(rest, "_")
	return "resp_" + rest
}

// lookUp returns the function that resolves the references of one request. It reads each response
// once.
func (a *API) lookUp(ctx context.Context, tenant string) lookUp {
	responses := map[string][]known{}
	count := 0
	return func(id, param string) ([]turn, error) {
		if count++; count > maxTurns {
			return nil, problem.Bad("input", "there are more than %d references to items", maxTurns)
		}
		if run, is := strings.CutPrefix(id, "ci_"); is {
			run, _, _ = strings.Cut(run, "_")
			_, err := a.Runs.Get(ctx, tenant, "run_"+run)
			return nil, err // the answer contains the findings of the turn
		}

		owner := ownerOf(id)
		items, isRead := responses[owner]
		if owner != "" && !isRead {
			row, err := a.find(ctx, tenant, `id = ?`, owner)
			if err == nil && row != nil && row.Store {
				items, err = a.itemsOf(ctx, row)
			}
			if err != nil {
				return nil, err
			}
			responses[owner] = items
		}

		for i := range items {
			if items[i].id == id { // encoded once for each reference
				return []turn{items[i].turn}, gate.Hold(ctx, items[i].turn.weight())
			}
		}

		one, err := a.findEntry(ctx, tenant, id)
		if err != nil {
			return nil, err
		}
		if one != nil {
			return []turn{*one}, nil
		}
		e := problem.New(http.StatusNotFound, "item_not_found",
			"Item with id %.80q not found: it is in no stored response and no conversation, so send the item itself",
			id)
		e.Param = param
		return nil, e
	}
}
