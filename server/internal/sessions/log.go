package sessions

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/rlmhq/rlm/internal/snippet/session"
	"github.com/rlmhq/rlm/internal/text/problem"
	"github.com/rlmhq/rlm/server/internal/records"
)

// The durability of a session determines which changes are lost if the server is killed.
const (
	// DurabilityKept loses no change whose answer the client received. It is the default.
	DurabilityKept = "kept"
	// DurabilityIdle loses all changes since the session was last saved, which happens when it
	// rests.
	DurabilityIdle = "idle"
)

// Bounds on a session's log. Beyond them, the state is saved instead.
const (
	maxLogEntries = 500
	maxLogBytes   = 8 << 20
	// maxLogActive bounds how long a request may wait until the snippets of the log are repeated.
	maxLogActive = 20 * time.Second
)

// maxBatch bounds the size of a transaction for all logs, in bytes, so that other writers need not
// wait long.
const maxBatch = 2 << 20

// logged describes the log of an open session.
type logged struct {
	last    int           // the number of the last entry
	bytes   int64         // of all entries
	active  time.Duration // the computing time of all entries
	waiting [][]byte
	// gap explains why a repetition of the log would not restore the session's state. It is empty
	// if it would.
	gap string
}

// keep makes the changes of a use durable before the client gets the answer, by writing them to the
// log or by saving the state. It returns an error if both fail. The caller holds using.
func (m *Manager) keep(ctx context.Context, l *live, j *session.ChangeLog) error {
	if l.session == nil || j == nil || !j.HasRun {
		return nil
	}

	ctx = context.WithoutCancel(ctx)
	why := j.Gap
	if why == "" {
		err := m.addToLog(ctx, l, j.Entries)
		if err == nil {
			return nil
		}
		why = err.Error()
	}
	return m.saveInstead(ctx, l, why)
}

// changeLog returns a log for the changes of the session's next use, or nil if the changes need not
// be kept.
func (l *live) changeLog() *session.ChangeLog {
	switch {
	case !l.isKept:
		return nil
	case l.log.gap == "" && len(l.functions) > 0:
		return &session.ChangeLog{Gap: "its snippets can call functions of a connection"}
	}
	return &session.ChangeLog{Gap: l.log.gap}
}

// saveInstead saves a session whose log has a gap. If that fails, it records in the row that
// changes are unsaved.
func (m *Manager) saveInstead(ctx context.Context, l *live, why string) error {
	m.Log.Debug("a session is saved before an answer", "session", l.id, "reason", why)
	if m.canSave(l) {
		m.trySave(l)
	}

	if !l.record.Unsaved || l.log.gap != "" && !l.record.Logged {
		return nil
	}

	_, err := m.DB.ExecContext(ctx, `UPDATE sessions SET unsaved = ? WHERE id = ?`, unsavedYes, l.id)
	if err != nil {
		m.Log.Error("a session cannot be kept", "session", l.id, "error", err)
		return problem.New(http.StatusInsufficientStorage, "not_kept",
			"the snippet has run, but what it has done is lost if the server is killed: "+
				"neither the log nor the state of the session can be written: see the server's log")
	}
	l.record.Logged, l.log.gap = false, why
	return nil
}

// addToLog writes entries to the log of a session. An entry that only read a value is held back
// until the next change.
func (m *Manager) addToLog(ctx context.Context, l *live, entries []session.Change) error {
	isChange := false
	add := l.log.waiting
	size, active := int64(0), l.log.active
	for i := range entries {
		data, err := json.Marshal(&entries[i])
		if err != nil {
			return err
		}
		if len(data) > session.MaxChange {
			return fmt.Errorf("an entry of the log has %d bytes", len(data))
		}
		add = append(add, data)
		active += entries[i].Active
		isChange = isChange || !entries[i].IsLook
	}

	for _, data := range add {
		size += int64(len(data))
	}
	if l.log.last+len(add) > maxLogEntries || l.log.bytes+size > maxLogBytes || active > maxLogActive {
		return errors.New("the log is full")
	}
	l.log.active = active

	if !isChange {
		l.log.waiting = add
		return nil
	}

	err := m.log.append(ctx, m.DB, &addition{session: l.id, after: l.log.last, entries: add, bytes: size})
	if err != nil {
		return fmt.Errorf("the log cannot be written: %w", err)
	}

	l.log.last += len(add)
	l.log.bytes += size
	l.log.waiting = nil
	return nil
}

// writer writes to the logs of all sessions. The entries that arrive while a transaction is written
// go into the next one together, so that many sessions share the wait for the disk.
type writer struct {
	mu        sync.Mutex // guards the fields below
	queue     []*addition
	isWriting bool
}

// addition holds the entries that one use adds to a log.
type addition struct {
	session string
	after   int // the number of the previous entry
	entries [][]byte
	bytes   int64
	done    chan error
}

func (w *writer) append(ctx context.Context, db *sql.DB, a *addition) error {
	a.done = make(chan error, 1)
	w.mu.Lock()
	w.queue = append(w.queue, a)

	if !w.isWriting {
		w.isWriting = true
		go w.write(ctx, db)
	}
	w.mu.Unlock()
	return <-a.done
}

// write writes the queue until it is empty. If a transaction fails, write retries each addition in
// a separate transaction, so that one failure does not affect the others.
func (w *writer) write(ctx context.Context, db *sql.DB) {
	writeTogether := func(all []*addition) error {
		return records.Within(ctx, db, func(tx *sql.Tx) error { return writeAll(ctx, tx, all) })
	}
	for {
		all := w.take()
		if len(all) == 0 {
			return
		}

		err := writeTogether(all)
		for _, a := range all {
			if err != nil && len(all) > 1 {
				a.done <- writeTogether([]*addition{a})
				continue
			}
			a.done <- err
		}
	}
}

// take removes the next batch from the queue. If the queue is empty, it marks the writer as ended.
func (w *writer) take() []*addition {
	w.mu.Lock()
	defer w.mu.Unlock()
	n, bytes := 0, int64(0)
	for n < len(w.queue) && (n == 0 || bytes+w.queue[n].bytes <= maxBatch) {
		bytes += w.queue[n].bytes
		n++
	}
	all := w.queue[:n:n]
	w.queue = w.queue[n:]
	w.isWriting = n > 0
	return all
}

func writeAll(ctx context.Context, tx *sql.Tx, all []*addition) error {
	for _, a := range all {
		for i, entry := range a.entries {
			_, err := tx.ExecContext(ctx, `INSERT INTO session_log (session, n, entry) VALUES (?, ?, ?)`,
				a.session, a.after+i+1, entry)
			if err != nil {
				return err
			}
		}
		if err := addBytes(ctx, tx, a.session, a.bytes); err != nil {
			return err
		}
	}
	return nil
}

// errLogDamaged means that reading a log again would not help.
var errLogDamaged = errors.New("the log is damaged")

// readLog returns the log of a session. If the error is errLogDamaged, it also returns the entries
// before the damage; other errors come from the database.
func (m *Manager) readLog(ctx context.Context, id string) (entries []session.Change, all logged, err error) {
	rows, err := m.DB.QueryContext(ctx, `SELECT n, entry FROM session_log WHERE session = ? ORDER BY n`, id)
	if err != nil {
		return nil, all, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()

	for rows.Next() {
		var n int
		var data []byte
		if err := rows.Scan(&n, &data); err != nil {
			return nil, all, err
		}
		if n != all.last+1 {
			return entries, all, fmt.Errorf("%w: entry %d is missing", errLogDamaged, all.last+1)
		}
		all.last = n
		e, err := session.ReadChange(data)
		if err != nil {
			return entries, all, fmt.Errorf("%w: entry %d: %w", errLogDamaged, n, err)
		}
		entries = append(entries, e)
		all.active += e.Active
		all.bytes += int64(len(data))
	}
	return entries, all, rows.Err()
}

// LogTable is the table of the logs.
const LogTable = "session_log"

// distrustLog is like DistrustLogs, for one session.
func distrustLog(ctx context.Context, tx *sql.Tx, id string) error {
	_, err := tx.ExecContext(ctx, `UPDATE sessions SET unsaved = ? WHERE id = ? AND unsaved = ?`,
		unsavedYes, id, unsavedLogged)
	return err
}

// DistrustLogs makes the next use of each session report that its log may be incomplete.
func DistrustLogs(ctx context.Context, tx *sql.Tx) error {
	_, err := tx.ExecContext(ctx, `UPDATE sessions SET unsaved = ? WHERE unsaved = ?`, unsavedYes, unsavedLogged)
	return err
}

// noteChange records on disk, before a snippet runs, that the saved state will be out of date. The
// caller holds using.
func (m *Manager) noteChange(ctx context.Context, l *live) error {
	l.changes++
	if l.changes == l.kept+1 {
		l.unsaved = time.Now()
	}
	if l.record.Unsaved && (l.isKept || !l.record.Logged) {
		return nil
	}

	after := l.record
	after.Unsaved, after.Logged = true, l.isKept
	_, err := m.DB.ExecContext(ctx, `UPDATE sessions SET unsaved = ? WHERE id = ?`, after.unsaved(), l.id)
	if err == nil {
		l.record = after
	}

	l.isUnsaved.Store(l.record.Unsaved)
	return err
}
