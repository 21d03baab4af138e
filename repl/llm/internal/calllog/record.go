// Package calllog records model calls in a file and replays them without the models.
//
// A call log is a file of JSON Lines: a header, then one line for each call, written when the call
// ends. Requests contain no keys, so a call log contains none. It contains every prompt.
// docs/reference/models.md describes the format.
package calllog

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"sync"

	"github.com/rlmhq/rlm/repl/llm"
	"github.com/rlmhq/rlm/repl/llm/internal/kind"
	"github.com/rlmhq/rlm/repl/llm/internal/told"
)

// header is the first line of a call log.
type header struct {
	Format  string `json:"format"`
	Version int    `json:"version"`
}

// currentHeader is the header of the call logs that this program writes.
var currentHeader = header{Format: "rlm-llm-record", Version: 1}

// entry is one call, with either a response or an error. An entry with facts holds what the
// provider's server reported about the model of the request.
type entry struct {
	Hash     string       `json:"hash,omitempty"` // hash of provider and request
	Provider string       `json:"provider"`
	Metadata llm.Metadata `json:"metadata"`
	Request  llm.Request  `json:"request"`
	Response *response    `json:"response,omitempty"`
	Error    *failure     `json:"error,omitempty"`
	Facts    *llm.Facts   `json:"facts,omitempty"`
}

// response is a reply.
type response struct {
	Text       string    `json:"text"`
	Model      string    `json:"model"`
	ID         string    `json:"id,omitempty"`
	Finish     string    `json:"finish"`
	Structured bool      `json:"structured,omitempty"`
	Usage      llm.Usage `json:"usage"`
}

// failure is an error.
type failure struct {
	Kind    string    `json:"kind"`
	Status  int       `json:"status,omitempty"`
	Message string    `json:"message,omitempty"`
	Usage   llm.Usage `json:"usage"`
}

// newFailure returns the recorded form of an error.
func newFailure(err *llm.Error) *failure {
	f := &failure{Status: err.Status, Message: err.Message, Usage: err.Usage}
	if err.Kind != nil {
		f.Kind = err.Kind.Error()
	}
	return f
}

// hashRequest identifies a request to a provider. Metadata is left out, because the place of a
// question in a run does not change its answer.
func hashRequest(provider string, r llm.Request) (string, error) {
	text, err := json.Marshal(r)
	if err == nil && bytes.Contains(text, []byte(`\ufffd`)) {
		text, err = encodeTwice(text)
	}
	if err != nil {
		return "", err
	}

	sum := sha256.Sum256(append([]byte(provider+"\n"), text...))
	return hex.EncodeToString(sum[:]), nil
}

// encodeTwice decodes a request and encodes it again. Bytes that are not UTF-8 first encode as
// \ufffd; after decoding, they encode as the character itself.
func encodeTwice(text []byte) ([]byte, error) {
	var r llm.Request
	if err := json.Unmarshal(text, &r); err != nil {
		return nil, err
	}
	return json.Marshal(r)
}

// Log is a call log that is being written. It is safe for concurrent use within one process.
type Log struct {
	mu   sync.Mutex
	file *os.File
	err  error // the reason why the first lost line could not be written
}

// Open opens a call log for appending, or creates one that only its owner can read. It removes a
// last line that a killed program left unfinished.
func Open(path string) (*Log, error) {
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return nil, badFile(path, err)
	}

	l := &Log{file: file}
	if err := l.prepare(); err != nil {
		return nil, errors.Join(badFile(path, err), file.Close())
	}
	return l, nil
}

// badFile returns the error for a call log that cannot be used.
func badFile(path string, err error) error {
	return &llm.Error{Kind: kind.ErrBadFile, Provider: "record", Message: path, Err: err}
}

// prepare writes the header of a new file, or removes an unfinished last line from an existing
// one.
func (l *Log) prepare() error {
	whole, err := readLines(l.file, func([]byte) error { return nil })
	if err != nil {
		return err
	}
	if err := l.file.Truncate(whole); err != nil {
		return err
	}
	if whole == 0 {
		return l.write(currentHeader)
	}
	return nil
}

// write adds a line. After a line that could not be written completely it stops writing, because
// the next line would continue the broken one.
func (l *Log) write(line any) error {
	text, err := json.Marshal(line)
	if err != nil {
		return err
	}

	l.mu.Lock()
	defer l.mu.Unlock()

	if l.err == nil {
		_, l.err = l.file.Write(append(text, '\n'))
	}
	return l.err
}

// Close closes the file.
func (l *Log) Close() error { return l.file.Close() }

// Wrap returns a provider that asks p and records the call. A call that cannot be recorded
// fails, because an incomplete call log is worse than none. Calls that end with their context
// are not recorded.
func (l *Log) Wrap(name string, p llm.Provider) llm.Provider {
	return &recorder{log: l, name: name, inner: p}
}

// recorder is a provider whose calls are recorded.
type recorder struct {
	log   *Log
	name  string
	inner llm.Provider
}

// Complete implements [llm.Provider].
func (rec *recorder) Complete(
	ctx context.Context, r llm.Request, stream func(string),
) (llm.Response, error) {
	out, err := rec.inner.Complete(ctx, r, stream)
	line := entry{Provider: rec.name, Metadata: r.Metadata, Request: r}
	var failed *llm.Error
	switch {
	case err == nil:
		line.Response = &response{
			Text: out.Text, Model: out.Model, ID: out.ID, Finish: out.Finish,
			Structured: out.Structured, Usage: out.Usage,
		}
	case errors.As(err, &failed):
		line.Error = newFailure(failed)
	default:
		return out, err
	}

	if writeErr := rec.write(line); writeErr != nil {
		return out, errors.Join(err, fmt.Errorf("cannot record the call: %w", writeErr))
	}
	return out, err
}

// write adds an entry to the call log.
func (rec *recorder) write(line entry) (err error) {
	if line.Hash, err = hashRequest(rec.name, line.Request); err != nil {
		return err
	}
	return rec.log.write(line)
}

// Check asks the recorded provider: see [llm.Check]. It records the facts that the server reports
// about the model, because the requests of a run depend on them.
func (rec *recorder) Check(ctx context.Context, model string) error {
	err := llm.Check(ctx, rec.inner, model)
	facts := rec.Facts(model)
	if facts == (llm.Facts{}) {
		return err
	}

	line := entry{Provider: rec.name, Request: llm.Request{Model: model}, Facts: &facts}
	if writeErr := rec.log.write(line); writeErr != nil {
		return errors.Join(err, fmt.Errorf("cannot record the model: %w", writeErr))
	}
	return err
}

// Facts asks the recorded provider: see [told.By].
func (rec *recorder) Facts(model string) llm.Facts { return told.By(rec.inner, model) }
