// Package record writes down what models were asked and what they answered, and
// plays it again without them.
//
// A record is a file of JSON Lines: a first line that says what it is, then a
// line for each call, written as the call ends. Requests hold no keys, so a
// record holds none; it does hold every prompt. docs/models.md has the format.
package record

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"

	"github.com/rlmhq/rlm/repl/llm"
)

// header is the first line of a record.
type header struct {
	Format  string `json:"format"`
	Version int    `json:"version"`
}

// current is the header of the records that are written.
var current = header{Format: "rlm-llm-record", Version: 1}

// entry is one call. It has a response or an error.
type entry struct {
	Hash     string       `json:"hash"` // of provider and request
	Provider string       `json:"provider"`
	Metadata llm.Metadata `json:"metadata"`
	Request  llm.Request  `json:"request"`
	Response *response    `json:"response,omitempty"`
	Error    *failure     `json:"error,omitempty"`
}

// response is a reply.
type response struct {
	Text       string    `json:"text"`
	Model      string    `json:"model"`
	Finish     string    `json:"finish"`
	Structured bool      `json:"structured,omitempty"`
	Usage      llm.Usage `json:"usage"`
}

// failure is an error.
type failure struct {
	Kind    llm.KindError `json:"kind"`
	Status  int           `json:"status,omitempty"`
	Message string        `json:"message,omitempty"`
	Usage   llm.Usage     `json:"usage"`
}

// hash names a request to a provider. Metadata is no part of it: where in a run
// a question comes up does not change its answer.
func hash(provider string, r llm.Request) (string, error) {
	text, err := json.Marshal(r)
	if err == nil && bytes.Contains(text, []byte(`\ufffd`)) {
		text, err = again(text)
	}
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(append([]byte(provider+"\n"), text...))
	return hex.EncodeToString(sum[:]), nil
}

// again decodes and encodes a request once more. Bytes that are not UTF-8 are
// written as \ufffd, and what is read from that is written as the character.
func again(text []byte) ([]byte, error) {
	var r llm.Request
	if err := json.Unmarshal(text, &r); err != nil {
		return nil, err
	}
	return json.Marshal(r)
}

// Log is a record that is being written. It is safe for concurrent use, within
// one process.
type Log struct {
	mu   sync.Mutex
	file *os.File
	err  error // of the first line that could not be written
}

// Open opens a record to add to, or creates it, readable by its owner only. A
// last line that was not finished, because its program was killed, is removed.
func Open(path string) (*Log, error) {
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return nil, badFile(path, err)
	}
	l := &Log{file: file}
	if err := l.begin(); err != nil {
		return nil, errors.Join(badFile(path, err), file.Close())
	}
	return l, nil
}

// badFile is the error of a record that cannot be used.
func badFile(path string, err error) error {
	return &llm.Error{Kind: llm.ErrBadFile, Provider: "record", Message: path, Err: err}
}

// begin writes the header into an empty file, and mends the end of any other.
func (l *Log) begin() error {
	whole, err := readLines(l.file, func(int, []byte) error { return nil })
	if err != nil {
		return err
	}
	if err := l.file.Truncate(whole); err != nil {
		return err
	}
	if whole == 0 {
		return l.write(current)
	}
	return nil
}

// write adds a line. After one that could not be written whole there are no more: they
// would be the rest of it.
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

// Wrap returns a provider that asks p and writes down the call. A call that
// cannot be written down fails: a record with holes is worse than none. Calls
// that end with their context are not written.
func (l *Log) Wrap(name string, p llm.Provider) llm.Provider {
	return &recorder{log: l, name: name, inner: p}
}

// recorder is a provider whose calls are written down.
type recorder struct {
	log   *Log
	name  string
	inner llm.Provider
}

// Complete implements [llm.Provider].
func (rec *recorder) Complete(ctx context.Context, r llm.Request, stream func(string)) (llm.Response, error) {
	out, err := rec.inner.Complete(ctx, r, stream)
	line := entry{Provider: rec.name, Metadata: r.Metadata, Request: r}
	var failed *llm.Error
	switch {
	case err == nil:
		line.Response = &response{Text: out.Text, Model: out.Model, Finish: out.Finish, Structured: out.Structured, Usage: out.Usage}
	case errors.As(err, &failed):
		line.Error = &failure{Kind: failed.Kind, Status: failed.Status, Message: failed.Message, Usage: failed.Usage}
	default:
		return out, err
	}
	name, hashed := hash(rec.name, r)
	if line.Hash = name; hashed == nil {
		hashed = rec.log.write(line)
	}
	if hashed != nil {
		return out, errors.Join(err, fmt.Errorf("cannot record the call: %w", hashed))
	}
	return out, err
}

// Check implements [llm.Checker].
func (rec *recorder) Check(ctx context.Context, model string) error {
	return llm.Check(ctx, rec.inner, model)
}

// maxLine bounds one line of a record.
const maxLine = 64 << 20

// readLines checks a record's header, hands over each line that is finished,
// counted from 2, and returns how many bytes the finished lines have.
func readLines(r io.Reader, each func(number int, line []byte) error) (whole int64, err error) {
	lines := newLineReader(r)
	for number := 1; ; number++ {
		line, err := lines.next()
		if errors.Is(err, io.EOF) {
			return whole, nil
		}
		if err == nil && number == 1 {
			err = checkHeader(line)
		} else if err == nil {
			err = each(number, line)
		}
		if err != nil {
			return whole, fmt.Errorf("line %d: %w", number, err)
		}
		whole += int64(len(line)) + 1
	}
}

// checkHeader checks a record's first line.
func checkHeader(line []byte) error {
	var h header
	if err := strict(line, &h); err != nil {
		return fmt.Errorf("it is no record: %w", err)
	}
	if h != current {
		return fmt.Errorf("it is a record of format %q, version %d: this program reads %q, version %d",
			h.Format, h.Version, current.Format, current.Version)
	}
	return nil
}

// strict decodes one JSON value with nothing in it that is not known.
func strict(text []byte, into any) error {
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(into); err != nil {
		return err
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return errors.New("there is more than one value")
	}
	return nil
}
