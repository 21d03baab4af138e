// Package store keeps what outlives a process: the logs of runs and sessions, and their
// states.
//
// A [Log] is a named list of entries, to which only the holder of its [Lease] appends. The
// entries belong to turns, so that a log can be cut behind a turn or copied up to one. The
// store knows bytes and names; package journal gives them a meaning.
//
// This package is the contract. Package sqlitestore has the store of a folder. Package
// internal/testing/storetest is the suite for any other store.
package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/rlmhq/rlm/internal/keep/damage"
	"github.com/rlmhq/rlm/internal/text/lazyregexp"
)

// Store keeps logs. It is safe for concurrent use.
type Store interface {
	// Create adds an empty log. The error is [ErrExists] if the name is taken.
	Create(ctx context.Context, log Log) error
	// Log returns a log, or [ErrNotFound].
	Log(ctx context.Context, id ID) (Log, error)
	// Logs returns the logs that a filter lets pass, the latest change first.
	Logs(ctx context.Context, f Filter) ([]Log, error)
	// Acquire takes the lease of a log for this process. The error is an [*OwnedError] while
	// another one has it.
	Acquire(ctx context.Context, id ID) (Lease, error)
	// Owner names the process that has the lease of a log, empty for none.
	Owner(ctx context.Context, id ID) (string, error)
	// Release gives a lease back. The end of the process does so, too.
	Release(lease Lease) error
	// Append adds entries, all or none. When it returns, they survive the end of the process
	// and of the machine. Calls at the same time share the wait for the disk.
	Append(ctx context.Context, lease Lease, entries ...Entry) error
	// Replace puts entries in the place of all entries of a log, as Append adds them. It
	// deletes contents that only the old entries had, or leaves them to Collect.
	Replace(ctx context.Context, lease Lease, entries ...Entry) error
	// Note adds an entry, which is durable with the next Append at the latest. An error
	// comes from that Append.
	Note(lease Lease, entry Entry)
	// Entries returns entries in the order in which they were added.
	Entries(ctx context.Context, id ID, q Query) ([]Entry, error)
	// Blob returns the content that an entry has put aside.
	Blob(ctx context.Context, digest string) ([]byte, error)
	// SetState replaces the part of a log that changes, its state, and adds entries with it, as
	// Append does.
	SetState(ctx context.Context, lease Lease, state State, entries ...Entry) error
	// Cut removes the entries of the turns after a turn.
	Cut(ctx context.Context, lease Lease, turn int) error
	// Copy creates a log with the entries of another up to a turn. The entries of the copy
	// cost nothing. The contents that they put aside are shared.
	Copy(ctx context.Context, from ID, turn int, to Log) error
	// Remove deletes a log and gives its lease back.
	Remove(ctx context.Context, lease Lease) error
	// Collect deletes the contents that no entry refers to any more.
	Collect(ctx context.Context) (Collected, error)
	// IsReadOnly reports whether every change fails with [ErrReadOnly].
	IsReadOnly() bool
	// Close ends the use of the store. What was noted is durable then.
	Close() error
}

// Opener knows where a store is. Package github.com/rlmhq/rlm/store makes openers, which an engine
// gets as a value.
type Opener interface {
	// Open opens the store, and makes it if necessary. If the caller only reads, the store may be on
	// a disk that cannot be written: see IsReadOnly.
	Open(reads bool) (Store, error)
}

// Kind says what a log is of.
type Kind string

// The kinds of logs.
const (
	Run     Kind = "run"
	Session Kind = "session"
)

// ID names a log.
type ID struct {
	Kind Kind
	Name string
}

// String is "run NAME".
func (id ID) String() string { return string(id.Kind) + " " + id.Name }

var validName = lazyregexp.New(`^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$`)

// Check refuses an ID that cannot name a log.
func (id ID) Check() error {
	if id.Kind != Run && id.Kind != Session {
		return fmt.Errorf("unknown kind of log %q", id.Kind)
	}
	if !validName.MatchString(id.Name) {
		return fmt.Errorf("%.80q cannot name a %s: use up to 64 letters, digits, dots, "+
			"underscores and hyphens, and begin with a letter or a digit", id.Name, id.Kind)
	}
	return nil
}

// Log is what the store knows of a run or a session.
type Log struct {
	ID
	// Title is a line for people, such as the question.
	Title string
	// Spec is how it was begun, as JSON.
	Spec json.RawMessage
	// Parent is the log that this one was copied from, up to ParentTurn. It is empty for none,
	// and may be gone.
	Parent     string
	ParentTurn int
	Created    time.Time
	// Epoch counts the processes that have worked on the log.
	Epoch int64

	State
	// Spent is the sum of the costs of all entries, also of those that were cut.
	Spent   Cost
	Updated time.Time
}

// Lease is the right to change a log. Each owner has a higher epoch than the one before it,
// and a change under an older epoch fails.
//
// In a folder, the end of a process ends its leases, because they are locks of the operating
// system. So no clock decides who owns a log.
type Lease struct {
	ID    ID
	Epoch int64
}

// State is the part of a log that changes.
type State struct {
	// Status is a word, empty at the beginning.
	Status string
	// Turn is the last turn that counts.
	Turn int
	// Reason says in a sentence why the status is what it is, empty for no reason.
	Reason string
}

// Cost is what an entry has cost.
type Cost struct {
	Calls        int64   `json:"calls"`
	InputTokens  int64   `json:"input_tokens"`
	OutputTokens int64   `json:"output_tokens"`
	USD          float64 `json:"usd"`
	Unpriced     int64   `json:"unpriced_calls,omitempty"`
	ToolCalls    int64   `json:"tool_calls,omitempty"`
}

// Add adds another cost.
func (c *Cost) Add(other Cost) {
	c.Calls += other.Calls
	c.InputTokens += other.InputTokens
	c.OutputTokens += other.OutputTokens
	c.USD += other.USD
	c.Unpriced += other.Unpriced
	c.ToolCalls += other.ToolCalls
}

// Entry is one fact of a log.
type Entry struct {
	// Seq orders the entries of a store. Entries sets it.
	Seq int64
	// Turn is the turn that the entry belongs to.
	Turn int
	// Kind and Key say what it is, in the words of the journal.
	Kind, Key string
	// Data is the entry itself.
	Data []byte
	// Blob is a content to put aside, for Append. Entries sets Digest instead: its
	// SHA-256, in hexadecimal. Append takes the Digest of another entry without a Blob, too.
	Blob   []byte
	Digest string
	Cost   Cost
}

// Limits of what a store takes, in bytes.
const (
	MaxKey  = 4 << 10
	MaxData = 64 << 20
	MaxBlob = 512 << 20
	MaxSpec = 1 << 20
	// MaxTitle bounds a title, a reason and a status; the rest is cut off.
	MaxTitle = 2_000
)

// Check refuses an entry that is too large.
func (e *Entry) Check() error {
	switch {
	case len(e.Key) > MaxKey:
		return fmt.Errorf("the key of an entry has %d bytes, more than %d", len(e.Key), MaxKey)
	case len(e.Data) > MaxData:
		return fmt.Errorf("an entry has %d bytes, more than %d", len(e.Data), MaxData)
	case len(e.Blob) > MaxBlob:
		return fmt.Errorf("a content has %d bytes, more than %d", len(e.Blob), MaxBlob)
	}
	return nil
}

// Filter chooses logs. A zero field lets all pass.
type Filter struct {
	Kind   Kind
	Status string
	// Text is a part of the name or the title, in any case of letters.
	Text string
	// MinUSD is the least cost, Since the earliest last change.
	MinUSD float64
	Since  time.Time
	// Limit bounds the number of logs, 0 for no bound.
	Limit int
}

// Query chooses entries. A zero field lets all pass.
type Query struct {
	Kinds []string
	// From is the first turn, AfterSeq the Seq of the last entry that is known already.
	From     int
	AfterSeq int64
	// Last returns the last entry alone.
	Last bool
}

// Collected says what Collect has deleted.
type Collected struct {
	Blobs int   `json:"blobs"`
	Bytes int64 `json:"bytes"` // on the disk
}

// Errors of a store. Test for them with errors.Is.
var (
	ErrExists   = errors.New("it already exists")
	ErrNotFound = errors.New("it does not exist")
	// ErrLost says that another process has taken the log over.
	ErrLost = errors.New("another process has taken it over")
	// ErrReadOnly says that the store was opened to be read.
	ErrReadOnly = errors.New("the store cannot be written here")
	// ErrDamaged says that what was read is not what was written.
	ErrDamaged = damage.Kind("the store is damaged")
)

// OwnedError says that another process works on a log.
type OwnedError struct {
	ID    ID
	Owner string
}

// Error names the owner.
func (e *OwnedError) Error() string {
	return fmt.Sprintf("%s is in use by %s: wait until it has ended, or stop it", e.ID, e.Owner)
}
