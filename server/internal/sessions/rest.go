package sessions

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/rlmhq/rlm"
	"github.com/rlmhq/rlm/internal/keep/snapshot"
	"github.com/rlmhq/rlm/internal/plan/results"
	"github.com/rlmhq/rlm/internal/text/problem"
	"github.com/rlmhq/rlm/internal/text/quantity"
	"github.com/rlmhq/rlm/server/internal/access"
	"github.com/rlmhq/rlm/server/internal/contents"
	"github.com/rlmhq/rlm/server/internal/failures"
	"github.com/rlmhq/rlm/server/internal/records"
	"github.com/rlmhq/rlm/tiers"
)

// maxState is the maximum size of saved variables, in bytes. A session with larger ones lasts only
// as long as the process.
const maxState = 256 << 20

// takePlace gives a session a place among the open ones. If all are taken, the session that has
// rested longest gives up its place. If a tenant has used up its share, one of its own sessions
// gives up its place.
func (m *Manager) takePlace(l *live) error {
	tried := map[*live]bool{}
	for {
		m.mu.Lock()
		taken, most := m.places[l.tenant], m.share(l.tenant)
		if m.open < m.Open && taken < most {
			m.open++
			m.places[l.tenant]++
			l.hasPlace = true
			m.mu.Unlock()
			return nil
		}
		among := ""
		if taken >= most {
			among = l.tenant
		}
		oldest := m.oldest(among, tried)
		m.mu.Unlock()

		switch {
		case oldest != nil:
		case among != "" && most < m.Open:
			return problem.Later(http.StatusServiceUnavailable, "busy", time.Second,
				"%d sessions of this tenant are in use, and the other places are for other tenants: try again", taken)
		default:
			return problem.Later(http.StatusServiceUnavailable, "busy", time.Second,
				"%d sessions are in use, and no more can be: try again", m.Open)
		}
		tried[oldest] = true
		if oldest.using.TryLock() {
			m.rest(oldest, 0)
			oldest.using.Unlock()
		}
	}
}

// share returns the maximum number of open sessions of a tenant. A quarter of the places is
// reserved for other tenants, because sessions can keep their places for long. Without keys there
// are no other tenants.
func (m *Manager) share(tenant string) int { return access.Share(tenant, m.Open) }

// oldest returns the session that has rested longest and may give up its place, or nil if there is
// none. If among is set, only sessions of this tenant are considered. The caller holds mu.
func (m *Manager) oldest(among string, tried map[*live]bool) (oldest *live) {
	for _, l := range m.lives {
		if among != "" && l.tenant != among {
			continue
		}
		if l.hasPlace && !l.isBusy && !l.pinned.Load() && !tried[l] &&
			(oldest == nil || l.lastUse.Before(oldest.lastUse)) {
			oldest = l
		}
	}
	return oldest
}

// giveBack frees a session's place, if it has one.
func (m *Manager) giveBack(l *live) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if l.hasPlace {
		l.hasPlace = false
		m.open--
		if m.places[l.tenant]--; m.places[l.tenant] == 0 {
			delete(m.places, l.tenant)
		}
	}
}

// lookAfter saves and closes resting sessions until the manager ends. No tenant waits for another
// tenant's saves, which may be slow.
func (m *Manager) lookAfter() {
	ticker := time.NewTicker(lookEvery)
	defer ticker.Stop()
	var underWay sync.Map // tenants
	for {
		select {
		case <-m.life.Done():
			return
		case <-ticker.C:
		}
		for tenant, list := range m.listOpen() {
			if _, is := underWay.LoadOrStore(tenant, true); is {
				continue
			}
			m.janitor.Go(func() {
				defer underWay.Delete(tenant)
				m.restAll(list)
			})
		}
	}
}

func (m *Manager) restAll(list []*live) {
	for _, l := range list {
		if m.life.Err() != nil {
			return
		}
		if l.using.TryLock() {
			m.rest(l, closeAfter)
			l.using.Unlock()
		}
	}
}

// listOpen returns, by tenant, the sessions that have a place and are not in use.
func (m *Manager) listOpen() map[string][]*live {
	m.mu.Lock()
	defer m.mu.Unlock()
	all := map[string][]*live{}
	for _, l := range m.lives {
		if l.hasPlace && (!l.isBusy || l.isHeld) {
			all[l.tenant] = append(all[l.tenant], l)
		}
	}
	return all
}

// rest saves a resting session, and closes it if it has rested long enough and no connection holds
// it. The caller holds using.
func (m *Manager) rest(l *live, longest time.Duration) {
	m.mu.Lock()
	rested := time.Since(l.lastUse)
	isFree, isHeld := (!l.isBusy || l.isHeld) && !l.isDeleted, l.isHeld
	saveAfter := m.SaveAfter
	if 4*m.open > 3*m.Open { // other sessions need the place soon, and should not wait for the save
		saveAfter /= 8
	}
	m.mu.Unlock()
	if l.session == nil || !isFree {
		return
	}
	if m.canSave(l) && (rested >= saveAfter || longest == 0) {
		m.trySave(l)
	}

	if l.pinned.Load() {
		longest = loseAfter
	}
	if isHeld || rested < longest {
		return
	}
	if err := m.close(l); err != nil {
		m.Log.Warn("cannot close a session", "session", l.id, "error", err)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if !l.isBusy && !l.isDeleted && m.lives[l.id] == l {
		delete(m.lives, l.id)
	}
}

const (
	// saveChanges and saveWait bound the loss of a busy session if this process ends: the session
	// is saved after that many uses or that much time. saveShare bounds the cost: the time between
	// two saves is at least that many times the duration of a save.
	saveChanges = 20
	saveWait    = 5 * time.Second
	saveShare   = 8
	// saveShareAgain replaces saveShare after a failed attempt.
	saveShareAgain = 20
)

// canSave reports whether a session has unsaved changes and may be saved now. The caller holds
// using.
func (m *Manager) canSave(l *live) bool {
	return l.session != nil && l.record.Unsaved && l.tried != l.changes && time.Now().After(l.again)
}

// free releases a session for the next use. If a save is due, free first saves the session in the
// background, which does not delay the answer to this use. The caller holds using, and is counted
// in requests or holders.
func (m *Manager) free(l *live) {
	isDue := l.changes-l.kept >= saveChanges || time.Since(l.unsaved) >= saveWait
	if !isDue || !m.canSave(l) || time.Since(l.savedAt) < saveShare*l.saveCost {
		l.using.Unlock()
		return
	}

	m.janitor.Go(func() {
		defer l.using.Unlock()
		m.trySave(l)
	})
}

// putAway saves and closes a session when the server ends.
func (m *Manager) putAway(l *live) {
	l.using.Lock()
	defer l.using.Unlock()
	if l.session != nil && l.record.Unsaved && l.tried != l.changes {
		m.trySave(l)
	}
	if err := m.close(l); err != nil {
		m.Log.Warn("cannot close a session", "session", l.id, "error", err)
	}
}

const (
	// saveWithin is the time limit of a save for which no request waits.
	saveWithin = time.Minute
	// saveAgain is the time to the next attempt after a disk failure.
	saveAgain = 10 * time.Second
)

// trySave saves a session. A session that cannot be saved completely is pinned. The caller holds
// using.
func (m *Manager) trySave(l *live) {
	ctx, cancel := context.WithTimeout(context.Background(), saveWithin)
	defer cancel()
	begun := time.Now()
	l.tried = l.changes
	err := m.save(ctx, l)
	l.savedAt = time.Now()
	l.saveCost = l.savedAt.Sub(begun)
	if err == nil {
		return
	}

	l.again = l.savedAt.Add(saveShareAgain * l.saveCost)
	if failures.IsDisk(err) { // the disk may recover even if the session does not change
		l.tried, l.again = l.changes-1, l.savedAt.Add(saveAgain)
	}
	if m.Unsavable != nil {
		m.Unsavable(failures.IsDisk(err))
	}
	if wasPinned := l.pinned.Swap(true); !wasPinned {
		m.Log.Warn("a session cannot be saved, and lasts as long as the process", "session", l.id, "error", err)
	}
}

// save writes the variables of a session, and then the row that records it. The caller holds
// using.
func (m *Manager) save(ctx context.Context, l *live) error {
	standing := l.record.Standing
	if known := l.session.Variables(); known != nil {
		standing.Variables = known
	}
	written, err := m.writeState(ctx, l.session, statePath(l.id))
	if err != nil {
		return err
	}

	more := written.content.Bytes - standing.Bytes
	standing.Bytes, standing.Snippets = written.content.Bytes, written.snippets()
	var lost *tiers.Loss
	standing.Left, lost = splitLeft(written.left())
	standing.Lost = results.JoinLosses(l.lost, lost)
	err = m.Contents.Keep(ctx, []*contents.Incoming{written.content}, func(tx *sql.Tx) error {
		return setStanding(ctx, tx, l.id, standing, more)
	})
	if err != nil {
		l.log.gap = "saving the session failed" // although the commit may have succeeded
		return err
	}
	l.record.Standing, l.record.Unsaved, l.kept = standing, false, l.changes
	l.log = logged{}
	if len(standing.Left) > 0 {
		l.log.gap = "its saved state lacks values that it has"
	}
	l.isUnsaved.Store(false)
	l.pinned.Store(len(standing.Left) > 0 || l.record.Spec.Out || l.record.Spec.Deterministic)
	return nil
}

// splitLeft separates the values that a state lacks from an earlier, unreported loss, which the
// state also lists, under the name "*".
func splitLeft(all []tiers.Left) (values []tiers.Left, lost *tiers.Loss) {
	for _, left := range all {
		if left.Name == "*" && left.Type == "session" {
			lost = results.JoinLosses(lost, newLoss(left.Reason))
			continue
		}
		values = append(values, left)
	}

	return values, lost
}

// setStanding records a saved state, and deletes the log, whose changes the state includes.
func setStanding(ctx context.Context, tx *sql.Tx, id string, s Standing, more int64) error {
	text, err := json.Marshal(s)
	if err != nil {
		return err
	}
	_, err = tx.ExecContext(ctx, `UPDATE sessions SET standing = ?1, unsaved = 0, used = ?2, bytes = bytes + ?3 -
		(SELECT coalesce(sum(octet_length(entry)), 0) FROM session_log WHERE session = ?4) WHERE id = ?4`,
		string(text), records.Time(time.Now()), more, id)
	if err == nil {
		_, err = tx.ExecContext(ctx, `DELETE FROM session_log WHERE session = ?`, id)
	}
	return err
}

// written is a snapshot that is not committed yet.
type written struct {
	content *contents.Incoming
	header  *snapshot.Header
}

// left lists the values that are missing from the snapshot.
func (w *written) left() (all []tiers.Left) {
	for _, n := range w.header.Namespaces {
		all = append(all, n.Left...)
	}
	return all
}

// snippets returns the number of snippets that had run before the snapshot.
func (w *written) snippets() (n int) {
	for _, namespace := range w.header.Namespaces {
		n += namespace.Snippet
	}
	return n
}

// writeState writes the variables of a session.
func (m *Manager) writeState(ctx context.Context, session *rlm.Session, path string) (w written, err error) {
	w.content, err = m.Contents.Write(path, func(to io.Writer) error {
		return session.Snapshot(ctx, &limitedWriter{to: to, left: maxState})
	})
	if err != nil {
		return w, err
	}

	content, err := m.Contents.Read(ctx, path)
	if err == nil {
		w.header, err = snapshot.ReadHeader(content)
		err = errors.Join(err, content.Close())
	}
	if err != nil {
		m.Contents.Drop([]*contents.Incoming{w.content})
	}
	return w, err
}

// limitedWriter is a writer that fails beyond a number of bytes.
type limitedWriter struct {
	to   io.Writer
	left int64
}

// Room implements [snapshot.Bounded]. There is only room for portable states, because a saved state
// counts against the tenant's quota, and may be downloaded.
func (w *limitedWriter) Room() int64 { return 0 }

// Write implements [io.Writer].
func (w *limitedWriter) Write(data []byte) (int, error) {
	if int64(len(data)) > w.left {
		return 0, fmt.Errorf("the variables have more than %s: delete some", quantity.IBytes(maxState))
	}
	n, err := w.to.Write(data)
	w.left -= int64(n)
	return n, err
}
