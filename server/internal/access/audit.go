package access

import (
	"bytes"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"
)

// Audit is the log of the actions of each key. It contains no secrets and no contents. It is safe
// for concurrent use.
type Audit struct {
	// Noted, if set, is called for each request within a connection, with the first word of its
	// action, such as "mcp", and its outcome.
	Noted func(wire, outcome string)
	// Grown, if set, is called after each entry with the size of the log, in bytes.
	Grown func(bytes int64)

	mu    sync.Mutex
	file  *os.File
	isCut bool // the last line is incomplete
	// failures bound the number of lines for failed requests. Each key has its own bound, and all
	// clients without a key share one. So strangers cannot hide the actions of a key.
	failures map[string]*bucket
	missed   int64
}

// failuresNoted is the maximum number of lines per second for the failed requests of a key.
const failuresNoted = 10

// Entry is a line of the audit log.
type Entry struct {
	Time    time.Time `json:"time"`
	Request string    `json:"request,omitempty"` // its ID
	Key     string    `json:"key,omitempty"`
	KeyID   string    `json:"key_id,omitempty"` // another key may have the name later
	Tenant  string    `json:"tenant,omitempty"`
	From    string    `json:"from,omitempty"` // the client's address
	// Action is the method and the path's pattern, a command such as "keys create", or a request
	// within a connection, such as "mcp tools/call".
	Action string `json:"action"`
	Object string `json:"object,omitempty"` // such as the ID of a run, or the name of a tool
	Status int    `json:"status,omitempty"`
	// Missed is the number of failed requests before this entry that were not logged.
	Missed int64 `json:"missed,omitempty"`
	// Outcome is the outcome of a request within a connection: ok or the kind of failure.
	Outcome string `json:"outcome,omitempty"`
}

// maxWord bounds each client-chosen part of an entry, in bytes.
const maxWord = 200

// Note logs a request within a connection of a key.
func (a *Audit) Note(k *Key, request, action, object, outcome string) error {
	if a.Noted != nil {
		wire, _, _ := strings.Cut(action, " ")
		a.Noted(wire, outcome)
	}
	return a.Add(Entry{
		Request: request, Key: k.Name, KeyID: k.ID, Tenant: k.Tenant,
		Action: action[:min(len(action), maxWord)], Object: object[:min(len(object), maxWord)], Outcome: outcome,
	})
}

// AuditFile is the name of the log in a data folder.
const AuditFile = "audit.jsonl"

// OpenAudit opens the log in a data folder for appending. Only the user can read it.
func OpenAudit(dir string) (*Audit, error) {
	path := filepath.Join(dir, AuditFile)
	if info, err := os.Lstat(path); err == nil && info.Mode().Type() != 0 {
		return nil, fmt.Errorf("the audit log %s is not a regular file: %w", path, fs.ErrInvalid)
	}
	file, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, fmt.Errorf("cannot open the audit log: %w", err)
	}
	return &Audit{file: file, failures: map[string]*bucket{}}, nil
}

// sumFormat is the format of the end of a line: a last member with the checksum of everything
// before it.
const sumFormat = `,"sum":"%08x"}`

var (
	castagnoli = crc32.MakeTable(crc32.Castagnoli)
	sumLength  = len(fmt.Sprintf(sumFormat, 0))
)

// seal appends the checksum to a line of JSON.
func seal(line []byte) []byte {
	line = line[:len(line)-1] // without the brace
	return fmt.Appendf(line, sumFormat, crc32.Checksum(line, castagnoli))
}

// isWhole reports whether a line has a checksum, and whether it is correct. Lines of an earlier
// version have none.
func isWhole(line []byte) (hasSum, is bool) {
	at := len(line) - sumLength
	if at < 1 || !bytes.HasPrefix(line[at:], []byte(`,"sum":"`)) {
		return false, isEntry(line)
	}
	return true, bytes.Equal(seal(append(line[:at:at], '}')), line)
}

// isEntry reports whether a line contains only the members of an entry. A line with a damaged name
// of the checksum member must not pass as a line of an earlier version.
func isEntry(line []byte) bool {
	decoder := json.NewDecoder(bytes.NewReader(line))
	decoder.DisallowUnknownFields()
	return json.Valid(line) && decoder.Decode(&Entry{}) == nil
}

// Add writes an entry with the current time, unless the key has too many failed requests.
func (a *Audit) Add(e Entry) error {
	e.Time = time.Now().UTC()
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.isNoted(&e) {
		return nil
	}

	line, err := json.Marshal(e)
	if err != nil {
		return err
	}

	line = append(seal(line), '\n')
	if a.isCut {
		line = append([]byte{'\n'}, line...)
	}
	n, err := a.file.Write(line) // in a single write, because other processes also append
	a.isCut = err != nil && (a.isCut || n > 0)
	if err != nil || a.Grown == nil {
		return err
	}
	info, err := a.file.Stat()
	if err == nil {
		a.Grown(info.Size())
	}
	return err
}

// isNoted reports whether an entry should be logged, and sets its number of missed entries. The
// caller holds mu.
func (a *Audit) isNoted(e *Entry) bool {
	isStranger := e.KeyID == "" && e.Request != ""

	if isStranger || e.hasFailed() {
		lines := a.failures[e.KeyID]
		if lines == nil {
			lines = newBucket(failuresNoted, 10*failuresNoted)
			a.failures[e.KeyID] = lines // the map has at most one element per key
		}
		if lines.take(time.Now()) > 0 {
			a.missed++
			return false
		}
	}
	e.Missed, a.missed = a.missed, 0
	return true
}

// hasFailed reports whether a request failed.
func (e *Entry) hasFailed() bool {
	return e.Status >= http.StatusBadRequest || e.Outcome != "" && e.Outcome != "ok" && e.Outcome != "failed"
}

// Close closes the log.
func (a *Audit) Close() error { return a.file.Close() }
