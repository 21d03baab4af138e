package runs

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/rlmhq/rlm/internal/text/problem"
	"github.com/rlmhq/rlm/schema"
	"github.com/rlmhq/rlm/server/internal/contents"
	"github.com/rlmhq/rlm/server/internal/failures"
	"github.com/rlmhq/rlm/server/internal/records"
)

// Request describes a run to start.
type Request struct {
	Spec
	// Contents are the run's contexts.
	Contents   []Content
	Background bool
	// Idempotency is the client's Idempotency-Key. A second request with the same key repeats the
	// first.
	Idempotency string
	// Digest, if set, distinguishes requests with the same Idempotency-Key. Otherwise, the digest
	// of the request itself is used.
	Digest []byte
}

// Content is a context: a text, or a copy of one of the server's contents.
type Content struct {
	Name string
	Text string
	// Path is the path of the content, such as an uploaded file: see package contents.
	Path string
}

// Limits on a request, in bytes.
const (
	MaxQuestion = 1 << 20
	MaxContents = 100
	MaxSchema   = 1 << 20
	maxName     = 255
	MaxWord     = 255 // maximum size of an Idempotency-Key
)

// check refuses an invalid request.
func (r *Request) check() error {
	switch {
	case strings.TrimSpace(r.Question) == "":
		return problem.Bad("question", "the question is empty")
	case len(r.Question) > MaxQuestion:
		return problem.Bad("question", "the question has %d bytes, more than %d: send the rest as a context",
			len(r.Question), MaxQuestion)
	case len(r.System) > MaxQuestion:
		return problem.Bad("system", "the instructions have %d bytes, more than %d", len(r.System), MaxQuestion)
	case len(r.Contents) > MaxContents:
		return problem.Bad("contexts", "there are %d contexts, more than %d", len(r.Contents), MaxContents)
	case len(r.Idempotency) > MaxWord:
		return problem.Bad("Idempotency-Key", "the header has %d bytes, more than %d", len(r.Idempotency), MaxWord)
	case r.MaxTurns < 0 || r.MaxTurns > 1_000:
		return problem.Bad("max_turns", "give 1 to 1000 turns")
	}

	b := r.Budget
	if min(b.Calls, b.ToolCalls, b.Tokens, b.InputTokens, b.OutputTokens, int64(b.Wall)) < 0 || !(b.USD >= 0) {
		return problem.Bad("budget", "the budget has a negative number: give a positive one, or none")
	}

	r.Contexts = nil
	for i := range r.Contents {
		name := CleanName(r.Contents[i].Name, i)
		r.Contents[i].Name = name
		r.Contexts = append(r.Contexts, name)
	}
	return checkSchema(r.Schema)
}

func checkSchema(contract json.RawMessage) error {
	if len(contract) == 0 {
		return nil
	}

	if len(contract) > MaxSchema {
		return problem.Bad("schema", "the schema has %d bytes, more than %d", len(contract), MaxSchema)
	}
	if _, err := schema.Parse(contract); err != nil {
		return problem.Bad("schema", "cannot use the schema: %v", err)
	}
	return nil
}

// CleanName returns a name that is safe to show in prompts and on terminals.
func CleanName(name string, i int) string {
	name = strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f || r == '/' || r == '\\' || r == utf8.RuneError {
			return '_'
		}
		return r
	}, name)
	for len(name) > maxName {
		_, size := utf8.DecodeLastRuneInString(name)
		name = name[:len(name)-size]
	}

	if strings.Trim(name, ". ") == "" {
		return "context-" + strconv.Itoa(i)
	}
	return name
}

// digest returns a digest of the request, to distinguish it from others. It includes only the name
// and size of a file, because files never change.
func (r *Request) digest() ([]byte, error) {
	if r.Digest != nil {
		return r.Digest, nil
	}
	sum := sha256.New()
	if err := json.NewEncoder(sum).Encode(r.Spec); err != nil {
		return nil, err
	}
	for _, c := range r.Contents {
		_, _ = fmt.Fprintf(sum, "%q %q %q\n", c.Name, c.Text, c.Path)
	}
	return sum.Sum(nil), nil
}

// repeated returns the ID of the run that an earlier request with the same Idempotency-Key started,
// or "" if there is none.
func (m *Manager) repeated(ctx context.Context, tenant string, r *Request) (run string, err error) {
	if r.Idempotency == "" {
		return "", nil
	}
	digest, err := r.digest()
	if err != nil {
		return "", err
	}

	return records.FindRepeated(ctx, m.db, tenant, r.Idempotency, digest)
}

// save writes the contexts, the first events and the record of a run.
func (m *Manager) save(ctx context.Context, record *Record, r *Request) (err error) {
	defer func() {
		if err != nil {
			err = errors.Join(err, m.removeRunLog(ctx, record.ID))
		}
	}()
	digest, err := r.digest()
	if err != nil {
		return err
	}

	if record.Spec.Parent != "" {
		if err := m.branch(ctx, record); err != nil {
			return err
		}
	}

	incoming, err := m.writeAll(ctx, record, r.Contents)
	if err != nil {
		m.Contents.Drop(incoming)
		return err
	}

	return m.Contents.Keep(ctx, incoming, func(tx *sql.Tx) error {
		if err := record.insert(ctx, tx); err != nil || r.Idempotency == "" {
			return err
		}
		return records.AddRepeated(ctx, tx, record.Tenant, r.Idempotency, digest, record.ID)
	})
}

// writeAll writes the contexts and the first events of a run.
func (m *Manager) writeAll(
	ctx context.Context, record *Record, list []Content,
) (incoming []*contents.Incoming, err error) {
	for i := range list {
		d, err := list[i].Write(ctx, m.Contents, m.contextPath(record.ID, i))
		if err != nil {
			return incoming, err
		}
		incoming = append(incoming, d)
	}

	events, err := m.Contents.WriteSelfChecked(m.eventsPath(record.ID), func(w io.Writer) error {
		return m.beginEvents(record, w)
	})
	if err != nil {
		return incoming, err
	}
	return append(incoming, events), nil
}

// Write writes a context. A copy of an existing content shares its file, so that the context
// survives when the client deletes the content. The error is for the client.
func (c *Content) Write(ctx context.Context, all *contents.Contents, path string) (*contents.Incoming, error) {
	if c.Path == "" {
		return all.Write(path, func(w io.Writer) error {
			_, err := io.WriteString(w, c.Text)
			return err
		})
	}

	d, err := all.Copy(ctx, c.Path, path)
	return d, DamagedContext(err, c.Name)
}

// DamagedContext converts an error of a context's content for the client.
func DamagedContext(err error, name string) error {
	var damaged *contents.DamageError
	if errors.As(err, &damaged) {
		return problem.New(http.StatusGone, failures.Damaged, "the context %q is damaged on the server's disk: %s",
			name, damaged.Problem)
	}
	return err
}
