package runs

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/rlmhq/rlm/internal/serve/problem"
	"github.com/rlmhq/rlm/internal/serve/records"
	"github.com/rlmhq/rlm/schema"
)

// Request asks for a run.
type Request struct {
	Spec
	// Contents are its contexts.
	Contents   []Content
	Background bool
	// Idempotency is a word of the client. A second request with it is the first one again.
	Idempotency string
}

// Content is a context: a text, or a file on this machine.
type Content struct {
	Name string
	Text string
	Path string
}

// Bounds of a request, in bytes.
const (
	MaxQuestion = 1 << 20
	MaxContents = 100
	MaxSchema   = 1 << 20
	maxName     = 255
	maxWord     = 255
)

// check refuses a request that no run could serve.
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
	case len(r.Idempotency) > maxWord:
		return problem.Bad("Idempotency-Key", "the header has %d bytes, more than %d", len(r.Idempotency), maxWord)
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

// CleanName returns a name that is safe to show, in prompts and on terminals.
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

// digest tells requests apart. A file counts by its name and size, because it never changes.
func (r *Request) digest() ([]byte, error) {
	sum := sha256.New()
	if err := json.NewEncoder(sum).Encode(r.Spec); err != nil {
		return nil, err
	}
	for _, c := range r.Contents {
		_, _ = fmt.Fprintf(sum, "%q %q %q\n", c.Name, c.Text, c.Path)
	}
	return sum.Sum(nil), nil
}

// repeated returns the run of an earlier request with the same word, empty for none.
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

// save writes the contexts and the record of a run.
func (m *Manager) save(ctx context.Context, record *Record, r *Request) (err error) {
	defer func() {
		if err != nil {
			err = errors.Join(err, m.removeContent(ctx, record.ID))
		}
	}()

	folder := filepath.Join(m.folder(record.ID), "contexts")
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return err
	}
	for i, c := range r.Contents {
		if err := c.Save(filepath.Join(folder, strconv.Itoa(i))); err != nil {
			return err
		}
	}

	if record.Spec.Parent != "" {
		if err := m.branch(ctx, record); err != nil {
			return err
		}
	}
	digest, err := r.digest()
	if err != nil {
		return err
	}
	return records.Within(ctx, m.db, func(tx *sql.Tx) error {
		if err := record.insert(ctx, tx); err != nil || r.Idempotency == "" {
			return err
		}
		return records.AddRepeated(ctx, tx, record.Tenant, r.Idempotency, digest, record.ID)
	})
}

// Save keeps a context in a new file. A file is linked, so that it outlives its deletion by the
// client.
func (c *Content) Save(path string) error {
	if c.Path == "" {
		return os.WriteFile(path, []byte(c.Text), 0o600)
	}
	if os.Link(c.Path, path) == nil {
		return nil
	}
	return copyFile(c.Path, path) // another file system
}

func copyFile(from, to string) (err error) {
	source, err := os.Open(from)
	if err != nil {
		return err
	}
	defer source.Close()
	target, err := os.OpenFile(to, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, target.Close()) }()
	_, err = io.Copy(target, source)
	return err
}
