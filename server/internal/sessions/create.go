package sessions

import (
	"bytes"
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/rlmhq/rlm"
	"github.com/rlmhq/rlm/inputs"
	"github.com/rlmhq/rlm/internal/text/lazyregexp"
	"github.com/rlmhq/rlm/internal/text/problem"
	"github.com/rlmhq/rlm/server/internal/access"
	"github.com/rlmhq/rlm/server/internal/contents"
	"github.com/rlmhq/rlm/server/internal/records"
	"github.com/rlmhq/rlm/server/internal/runs"
)

// Request describes a session to create. Contents are its contexts; Spec contains none.
type Request struct {
	Spec
	// Name is a name by which later requests can find the session. A second request for the name
	// returns the existing session.
	Name     string
	Contents []Content
	// Idempotency is the client's Idempotency-Key. A second request with the same key repeats the
	// first.
	Idempotency string
}

// Content is a context: a text, the JSON of a value, or a copy of one of the server's contents.
type Content struct {
	runs.Content
	Variable string
	IsValue  bool
}

// maxValue is the maximum size, in bytes, of a context that is a value, because it is kept in
// memory.
const maxValue = 8 << 20

var validName = lazyregexp.New(`^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$`)

// check refuses an invalid request.
func (r *Request) check() error {
	if r.Name != "" && !validName.MatchString(r.Name) {
		return problem.Bad("name", "%.120q cannot name a session: use up to 100 letters, digits, dots, "+
			"underscores and hyphens, and begin with a letter or a digit", r.Name)
	}
	switch r.Durability {
	case "", DurabilityKept, DurabilityIdle:
	default:
		return problem.Bad("durability", "%.40q is not a durability: give %s or %s", r.Durability, DurabilityKept,
			DurabilityIdle)
	}
	return checkContents(r.Contents, 0)
}

// checkContents refuses invalid contents; before is the number of existing contexts.
func checkContents(list []Content, before int) error {
	if before+len(list) > runs.MaxContents {
		return problem.Bad("contexts", "there are %d contexts, more than %d", before+len(list), runs.MaxContents)
	}

	for i := range list {
		c := &list[i]
		c.Name = runs.CleanName(c.Name, before+i)
		if c.IsValue && len(c.Text) > maxValue {
			return problem.Bad("contexts", "the value of context %d has %d bytes, more than %d: send it as a text",
				i, len(c.Text), maxValue)
		}
	}
	return nil
}

// digest returns a digest of the request, to distinguish it from other requests.
func (r *Request) digest() ([]byte, error) {
	sum := sha256.New()
	if err := json.NewEncoder(sum).Encode(r.Spec); err != nil {
		return nil, err
	}
	_, _ = fmt.Fprintf(sum, "%q\n", r.Name)
	for _, c := range r.Contents {
		text := sha256.Sum256([]byte(c.Text))
		_, _ = fmt.Fprintf(sum, "%q %q %v %x %q\n", c.Variable, c.Name, c.IsValue, text, c.Path)
	}
	return sum.Sum(nil), nil
}

// Create opens a session for a key, or returns the one that an earlier request made. The notes
// describe contexts that were changed for snippets. The error is for the client.
func (m *Manager) Create(ctx context.Context, k access.Key, r Request) (_ Record, notes []string, err error) {
	if err := r.check(); err != nil {
		return Record{}, nil, err
	}
	allowed, err := m.Terms(r.Profile)
	if err != nil {
		return Record{}, nil, err
	}

	isDefault := r.Profile == ""
	r.Profile = allowed.Profile
	digest, err := r.digest()
	if err != nil {
		return Record{}, nil, err
	}

	leave, err := m.enter(ctx, k.Tenant, r.Name, r.Idempotency)
	if err != nil {
		return Record{}, nil, err
	}
	defer leave()
	if known, err := m.repeated(ctx, k.Tenant, &r, digest, isDefault); err != nil || known.ID != "" {
		return known, nil, err
	}

	record := m.newRecord(k, r.Name, r.Spec)
	record.digest = digest
	more := int64(0)
	for _, c := range r.Contents {
		more += int64(len(c.Text))
	}
	if err := m.Quota.Check(ctx, k.Tenant, k.Limits.Files, more); err != nil {
		return Record{}, nil, err
	}

	err = m.adopt(ctx, k, record, func(ctx context.Context, l *live) (err error) {
		incoming, err := m.writeContents(ctx, &l.record, r.Contents)
		defer func() {
			if err != nil {
				m.Contents.Drop(incoming)
			}
		}()
		if err != nil {
			return err
		}
		if l.session, err = m.openSession(ctx, &l.record, nil); err != nil {
			return err
		}
		if notes, err = l.session.CheckContexts(ctx); err != nil {
			return err
		}
		record = l.record
		return m.insert(ctx, k, &l.record, incoming, r.Idempotency)
	})
	return record, notes, m.asProblem(ctx, err)
}

// enter waits until no other request is creating a session with the same name or Idempotency-Key.
// Call leave when the session is recorded.
func (m *Manager) enter(ctx context.Context, tenant, name, word string) (leave func(), err error) {
	leaveWord, err := m.words.Enter(ctx, tenant, word)
	if err != nil {
		return nil, err
	}
	leaveName, err := m.naming.Enter(ctx, tenant, name)
	if err != nil {
		leaveWord()
		return nil, err
	}
	return func() { leaveName(); leaveWord() }, nil
}

// idPrefix is the beginning of each session's ID.
const idPrefix = "sess_"

// newRecord returns the record of a new session. The record is marked as unsaved, so that the first
// snippet need not do this.
func (m *Manager) newRecord(k access.Key, name string, spec Spec) Record {
	now := time.Now().UTC()
	r := Record{
		ID: runs.NewID(idPrefix), Tenant: k.Tenant, Key: k.ID, Name: name, Spec: spec, Unsaved: true,
		Created: now, Used: now,
	}
	r.Logged = m.keeps(&r)
	return r
}

// repeated returns the session that an earlier request made. Its ID is empty if there is none.
func (m *Manager) repeated(
	ctx context.Context, tenant string, r *Request, digest []byte, isDefault bool,
) (known Record, err error) {
	if r.Idempotency != "" {
		id, err := records.FindRepeated(ctx, m.DB, tenant, r.Idempotency, digest)
		if err != nil {
			return known, err
		}
		if id != "" {
			return m.Get(ctx, tenant, id)
		}
	}

	if r.Name == "" {
		return known, nil
	}
	known, err = m.named(ctx, tenant, r.Name)
	isPlain := len(r.Contents) == 0 && r.isPlain() && (isDefault || known.Spec.Profile == r.Profile)
	if err == nil && known.ID != "" && !bytes.Equal(known.digest, digest) && !isPlain {
		err = problem.New(http.StatusConflict, "name_taken",
			"the session %q was made with other contexts or settings: send the same ones, or none, or "+
				"choose another name", r.Name)
	}
	return known, err
}

// isPlain reports whether a spec requests nothing except a profile.
func (s *Spec) isPlain() bool {
	plain := Spec{Profile: s.Profile}
	a, err := json.Marshal(s)
	b, failed := json.Marshal(plain)
	return err == nil && failed == nil && bytes.Equal(a, b)
}

// adopt registers a new session, and calls begin, which opens it and inserts its record. After an
// error, the session does not exist.
func (m *Manager) adopt(
	ctx context.Context, k access.Key, record Record, begin func(context.Context, *live) error,
) (err error) {
	if err := m.reserve(&k); err != nil {
		return err
	}
	defer func() {
		if err != nil {
			m.unreserve(k.ID, k.Tenant)
		}
	}()

	l := &live{
		id: record.ID, tenant: record.Tenant, record: record, isBusy: true, changes: 1, unsaved: time.Now(),
		isKept: m.keeps(&record),
	}
	l.isUnsaved.Store(true)
	ctx, l.cancel = context.WithCancelCause(ctx)
	defer context.AfterFunc(m.life, func() { m.stop(l.id, errStopping) })()
	m.mu.Lock()
	if m.closed {
		m.mu.Unlock()
		l.cancel(nil)
		return errDraining()
	}
	m.lives[l.id] = l
	m.requests.Add(1)
	m.mu.Unlock()

	l.using.Lock()
	defer m.release(l)
	if err = m.takePlace(l); err == nil {
		err = begin(ctx, l)
	}
	if err != nil {
		err = errors.Join(err, m.close(l))
		m.giveBack(l)
	}
	return err
}

// reserve counts a session of a key, or refuses it.
func (m *Manager) reserve(k *access.Key) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	switch most := k.Limits.Sessions; {
	case most > 0 && m.counts[k.ID] >= most:
		return problem.New(http.StatusTooManyRequests, "too_many_sessions",
			"the key allows %d sessions: delete one", most)
	case m.owned[k.Tenant] >= access.Share(k.Tenant, m.AtMost):
		return problem.New(http.StatusServiceUnavailable, "too_many_sessions",
			"the server keeps %d sessions of this tenant, and no more: delete one", m.owned[k.Tenant])
	case m.total >= m.AtMost:
		return problem.New(http.StatusServiceUnavailable, "too_many_sessions",
			"the server keeps %d sessions, and no more: delete one", m.total)
	}

	m.counts[k.ID]++
	m.owned[k.Tenant]++
	m.total++
	return nil
}

func (m *Manager) unreserve(key, tenant string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.counts[key]--
	m.owned[tenant]--
	m.total--
}

// insert adds the record of a session with its contexts, and the Idempotency-Key of its request.
func (m *Manager) insert(
	ctx context.Context, k access.Key, r *Record, incoming []*contents.Incoming, word string,
) error {
	bytes := sizeOf(incoming)
	err := m.Quota.Add(ctx, k.Tenant, k.Limits.Files, bytes, func() error {
		return m.Contents.Keep(ctx, incoming, func(tx *sql.Tx) error {
			if err := r.insert(ctx, tx, bytes); err != nil || word == "" {
				return err
			}
			return records.AddRepeated(ctx, tx, r.Tenant, word, r.digest, r.ID)
		})
	})
	if err != nil && strings.Contains(err.Error(), "UNIQUE") {
		return problem.Later(http.StatusConflict, "name_taken", time.Second,
			"another request makes the session %q just now: try again", r.Name)
	}

	return err
}

// sizeOf returns the total size of the contents.
func sizeOf(incoming []*contents.Incoming) (bytes int64) {
	for _, d := range incoming {
		bytes += d.Bytes
	}
	return bytes
}

// writeContents writes contents as additional contexts of a session.
func (m *Manager) writeContents(
	ctx context.Context, r *Record, list []Content,
) (incoming []*contents.Incoming, err error) {
	for i := range list {
		c := &list[i]
		d, err := c.Write(ctx, m.Contents, contextPath(r.ID, len(r.Spec.Contexts)))
		if err != nil {
			return incoming, err
		}
		incoming = append(incoming, d)
		r.Spec.Contexts = append(r.Spec.Contexts, Context{
			Variable: c.Variable, Name: c.Name, IsValue: c.IsValue, Bytes: d.Bytes,
		})
	}
	return incoming, nil
}

// openContexts returns the contexts of a session, starting at the given number. Close their files
// once the engine has opened the contexts.
func (m *Manager) openContexts(
	ctx context.Context, r *Record, from int,
) (all []rlm.Context, closeFiles func(), err error) {
	var opened []*contents.Content
	closeFiles = func() {
		for _, c := range opened {
			_ = c.Close() // the file was only read
		}
	}
	for i := from; i < len(r.Spec.Contexts); i++ {
		c := &r.Spec.Contexts[i]
		content, err := m.Contents.Read(ctx, contextPath(r.ID, i))
		if err != nil {
			closeFiles()
			return nil, nil, asDamagedContext(err, r, i)
		}
		opened = append(opened, content)

		made := inputs.Stream(m.Inputs, c.Name, content, m.MaxContext)
		if c.IsValue {
			value, err := io.ReadAll(io.LimitReader(content, maxValue+1))
			if err != nil {
				closeFiles()
				return nil, nil, asDamagedContext(err, r, i)
			}
			made = rlm.Value(c.Name, json.RawMessage(value))
		}
		all = append(all, made.As(c.Variable))
	}
	return all, closeFiles, nil
}

// openSession opens a session in the engine.
func (m *Manager) openSession(ctx context.Context, r *Record, functions []rlm.Function) (*rlm.Session, error) {
	allowed, err := m.Terms(r.Spec.Profile)
	if err != nil {
		return nil, err
	}
	cfg := rlm.SessionConfig{
		Deterministic: allowed.Deterministic || r.Spec.Deterministic, Out: r.Spec.Out,
		Functions: functions, Labels: map[string]string{"tenant": r.Tenant, "session": r.ID},
	}

	if cfg.Limits, err = r.Spec.Limits.Within(allowed.Limits); err != nil {
		return nil, problem.Bad("limits", "%v", err)
	}
	if cfg.Policy, err = r.Spec.Policy.Narrow(allowed.Policy, m.Engine.Tiers()); err != nil {
		return nil, problem.Bad("policy", "%v", err)
	}

	contexts, closeFiles, err := m.openContexts(ctx, r, 0)
	if err != nil {
		return nil, err
	}
	defer closeFiles()
	cfg.Contexts = contexts

	session, err := m.Engine.Open(ctx, cfg)
	if damaged := asDamagedSession(err, r); damaged != nil { // a context whose digest is wrong
		return nil, damaged
	}
	if err != nil && ctx.Err() == nil && !errors.Is(err, rlm.ErrBusy) && !errors.Is(err, rlm.ErrClosed) {
		return nil, problem.Bad("contexts", "%v", err)
	}
	return session, err
}
