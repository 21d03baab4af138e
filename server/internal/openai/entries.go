package openai

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"net/http"
	"time"

	"github.com/rlmhq/rlm/internal/text/problem"
	"github.com/rlmhq/rlm/server/internal/access"
	"github.com/rlmhq/rlm/server/internal/gate"
	"github.com/rlmhq/rlm/server/internal/records"
)

// entry is a part of a conversation: an item that a client added, or a response with its input and
// answer.
type entry struct {
	item     string
	turn     turn
	response string
}

// maxEntries bounds the entries of a conversation.
const maxEntries = maxTurns

func (a *API) insertConversation(ctx context.Context, tenant string, c *conversation, all []entry) error {
	data, err := marshal(c.Metadata)
	if err != nil {
		return err
	}
	return a.grow(ctx, tenant, all, func(tx *sql.Tx, turns []string) error {
		now := records.Time(time.Now())
		_, err := tx.ExecContext(ctx,
			`INSERT INTO conversations (id, tenant, metadata, created, used, bytes) VALUES (?, ?, ?, ?, ?, 0)`,
			c.ID, tenant, string(data), now, now)
		if err != nil {
			return err
		}
		return addEntries(ctx, tx, tenant, c.ID, all, turns)
	})
}

// grow calls add, which adds entries with their turns as JSON, unless the tenant would then exceed
// its quota.
func (a *API) grow(
	ctx context.Context, tenant string, all []entry, add func(tx *sql.Tx, turns []string) error,
) error {
	turns, bytes := make([]string, len(all)), int64(0)
	for i := range all {
		data, err := json.Marshal(all[i].turn)
		if err != nil {
			return err
		}
		turns[i] = string(data)
		bytes += int64(len(data))
	}
	return a.Quota.Add(ctx, tenant, access.Caller(ctx).Limits.Files, bytes, func() error {
		return records.Within(ctx, a.DB, func(tx *sql.Tx) error { return add(tx, turns) })
	})
}

// conversation returns a conversation of a tenant.
func (a *API) conversation(ctx context.Context, tenant, id string) (c conversation, err error) {
	c = conversation{ID: id, Object: "conversation"}
	var metadata string
	var created int64
	err = a.DB.QueryRowContext(ctx, `SELECT metadata, created FROM conversations WHERE id = ? AND tenant = ?`,
		id, tenant).Scan(&metadata, &created)
	if errors.Is(err, sql.ErrNoRows) {
		return c, problem.NotFound("conversation", id)
	}
	if err != nil {
		return c, err
	}
	c.CreatedAt = records.ReadTime(created).Unix()
	return c, json.Unmarshal([]byte(metadata), &c.Metadata)
}

func (a *API) removeConversation(ctx context.Context, id string) error {
	return records.Within(ctx, a.DB, func(tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, `DELETE FROM conversation_entries WHERE conversation = ?`, id)
		if err == nil {
			_, err = tx.ExecContext(ctx, `DELETE FROM conversations WHERE id = ?`, id)
		}
		return err
	})
}

func (a *API) addToEnd(ctx context.Context, tenant, id string, all []entry) error {
	return a.grow(ctx, tenant, all, func(tx *sql.Tx, turns []string) error {
		return addEntries(ctx, tx, tenant, id, all, turns)
	})
}

// addEntries adds entries, with their turns as JSON, to the end of a conversation, which must
// exist.
func addEntries(ctx context.Context, tx *sql.Tx, tenant, id string, all []entry, turns []string) error {
	bytes := 0
	for _, turn := range turns {
		bytes += len(turn)
	}
	now := records.Time(time.Now())
	done, err := tx.ExecContext(ctx,
		`UPDATE conversations SET used = ?, bytes = bytes + ? WHERE id = ? AND tenant = ?`, now, bytes, id, tenant)
	if err != nil {
		return err
	}
	if n, err := done.RowsAffected(); err != nil || n == 0 {
		return errors.Join(err, problem.NotFound("conversation", id))
	}

	var count, last int
	err = tx.QueryRowContext(ctx,
		`SELECT count(*), coalesce(max(n), 0) FROM conversation_entries WHERE conversation = ?`, id).Scan(&count, &last)
	if err != nil {
		return err
	}

	if count+len(all) > maxEntries {
		return problem.Bad("conversation", "the conversation would have %d entries, more than %d: begin a new one",
			count+len(all), maxEntries)
	}
	for i := range all {
		_, err = tx.ExecContext(ctx, `INSERT INTO conversation_entries (conversation, n, item, turn, response, created)
			VALUES (?, ?, ?, ?, ?, ?)`, id, last+1+i, all[i].item, turns[i], all[i].response, now)
		if err != nil {
			return err
		}
	}
	return nil
}

// findEntry returns the message of an item that a client added to a conversation, or nil if there
// is none.
func (a *API) findEntry(ctx context.Context, tenant, item string) (*turn, error) {
	var data string
	err := a.DB.QueryRowContext(ctx, `SELECT turn FROM conversation_entries JOIN conversations ON id = conversation
		WHERE item = ? AND item != '' AND tenant = ?`, item, tenant).Scan(&data)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, nil //nolint:nilnil // documented: none
	}
	if err == nil {
		err = gate.Hold(ctx, len(data))
	}
	if err != nil {
		return nil, err
	}

	var t turn
	return &t, json.Unmarshal([]byte(data), &t)
}

// removeItem removes an item that a client added to a conversation, and reports whether there was
// one.
func (a *API) removeItem(ctx context.Context, id, item string) (bool, error) {
	removed := false
	err := records.Within(ctx, a.DB, func(tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, `UPDATE conversations SET bytes = bytes -
			(SELECT coalesce(sum(octet_length(turn)), 0) FROM conversation_entries
				WHERE conversation = ?1 AND item = ?2 AND item != '')
			WHERE id = ?1`, id, item)
		if err != nil {
			return err
		}
		done, err := tx.ExecContext(ctx,
			`DELETE FROM conversation_entries WHERE conversation = ? AND item = ? AND item != ''`, id, item)
		if err != nil {
			return err
		}
		n, err := done.RowsAffected()
		removed = n > 0
		return err
	})
	return removed, err
}

// readEntries returns the entries of a conversation. They count towards the request's memory.
func (a *API) readEntries(ctx context.Context, id string) (all []entry, size int, err error) {
	err = a.DB.QueryRowContext(ctx,
		`SELECT coalesce(sum(octet_length(turn)), 0) FROM conversation_entries WHERE conversation = ?`, id).Scan(&size)

	if err == nil && size > 2*maxTexts {
		err = problem.Bad("conversation", "the conversation has more than %d bytes: begin a new one", 2*maxTexts)
	}
	if err == nil {
		err = gate.Hold(ctx, size)
	}
	if err != nil {
		return nil, 0, err
	}

	all, err = records.List(ctx, a.DB, func(row records.Row) (e entry, err error) {
		var data string
		if err := row.Scan(&e.item, &data, &e.response); err != nil {
			return e, err
		}
		return e, json.Unmarshal([]byte(data), &e.turn)
	}, `SELECT item, turn, response FROM conversation_entries WHERE conversation = ? ORDER BY n`, id)
	return all, size, err
}

// itemsIn returns the items of a conversation of a tenant, in order. Of a response in progress, it
// returns only the input, or an error if isWhole is set.
func (a *API) itemsIn(ctx context.Context, tenant, id string, isWhole bool) (items []known, err error) {
	if _, err := a.conversation(ctx, tenant, id); err != nil {
		return nil, err
	}
	all, size, err := a.readEntries(ctx, id)
	if err != nil {
		return nil, err
	}

	for i := range all {
		e := &all[i]
		if e.response == "" {
			items = append(items, known{e.item, e.turn})
			continue
		}
		row, err := a.find(ctx, tenant, `id = ?`, e.response)
		if err != nil {
			return nil, err
		}
		if row == nil {
			continue // the response was deleted
		}
		if size += row.size; size > 2*maxTexts {
			return nil, problem.Bad("conversation", "the conversation has more than %d bytes: begin a new one",
				2*maxTexts)
		}

		answer, err := a.itemsOf(ctx, row)
		var goesOn *problem.Error
		if err != nil && (isWhole || !errors.As(err, &goesOn)) {
			return nil, err
		}
		items = append(items, answer...)
	}
	return items, nil
}

// turnsOf returns the messages of a conversation of a tenant.
func (a *API) turnsOf(ctx context.Context, tenant, id string) ([]turn, error) {
	items, err := a.itemsIn(ctx, tenant, id, true)
	var goesOn *problem.Error
	if errors.As(err, &goesOn) && goesOn.Code == codeGoesOn {
		// This is OpenAI's own error, after which its clients do not retry.
		locked := problem.Later(http.StatusBadRequest, "conversation_locked", time.Second,
			"another process is currently operating on this conversation: %s", goesOn.Detail)
		locked.Param = "conversation"
		return nil, locked
	}
	turns := make([]turn, len(items))
	for i := range items {
		turns[i] = items[i].turn
	}
	return turns, err
}
