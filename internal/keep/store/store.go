// Package store defines the storage of data that outlives a process: the logs of runs and sessions,
// and their states.
//
// A [Log] is a named list of entries, to which only the holder of its [Lease] appends. The entries
// belong to turns, so a log can be cut after a turn or copied up to a turn. The store handles bytes
// and names; package runlog gives them a meaning.
//
// This package is the contract. Package sqlitestore implements it in a folder, and package pgstore
// in a database for a fleet. Package internal/testing/storetest is the test suite for any other
// implementation.
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
	// Logs returns the logs that match a filter, with the most recently changed one first.
	Logs(ctx context.Context, f Filter) ([]Log, error)
	// Acquire takes the lease of a log for this process. The error is an [*OwnedError] while
	// another process holds it.
	Acquire(ctx context.Context, id ID) (Lease, error)
	// Owner names the process that holds the lease of a log; it is empty if none does.
	Owner(ctx context.Context, id ID) (string, error)
	// Release releases a lease. The end of the process releases it, too.
	Release(lease Lease) error
	// Append adds entries, all or none. When it returns, they survive the end of the process and of
	// the machine. Concurrent calls share the wait for the disk.
	Append(ctx context.Context, lease Lease, entries ...Entry) error
	// Replace replaces all entries of a log with the given ones, with the guarantees of Append. It
	// deletes contents that belonged only to the old entries, or leaves them to Collect.
	Replace(ctx context.Context, lease Lease, entries ...Entry) error
	// Note adds an entry that becomes durable with the next Append at the latest. That Append also
	// returns its error.
	Note(lease Lease, entry Entry)
	// Entries returns entries in the order of their addition.
	Entries(ctx context.Context, id ID, q Query) ([]Entry, error)
	// Blob returns the content of an entry's blob.
	Blob(ctx context.Context, digest string) ([]byte, error)
	// SetState replaces the state of a log, and adds entries in the same way as Append.
	SetState(ctx context.Context, lease Lease, state State, entries ...Entry) error
	// Cut removes the entries of all turns after the given turn.
	Cut(ctx context.Context, lease Lease, turn int) error
	// Copy creates a log with the entries of another one up to the given turn. The copied entries
	// have no cost. The logs share the contents of blobs.
	Copy(ctx context.Context, from ID, turn int, to Log) error
	// Remove deletes a log and releases its lease.
	Remove(ctx context.Context, lease Lease) error
	// Collect deletes the contents to which no entry refers.
	Collect(ctx context.Context) (Collected, error)
	// IsReadOnly reports whether every change fails with [ErrReadOnly].
	IsReadOnly() bool
	// Close closes the store. All notes are then durable.
	Close() error
}

// Watcher is implemented by a store whose leases can end before their release, because they depend
// on a clock. In the store of a folder they do not.
type Watcher interface {
	// Watch returns a channel that is closed when the lease is lost. A process that works under the
	// lease then stops, without waiting for the [ErrLost] of its next change.
	Watch(lease Lease) <-chan struct{}
}

// Opener opens a particular store. Package github.com/rlmhq/rlm/store creates openers, which are
// passed to an engine as values.
type Opener interface {
	// Open opens the store, and creates it if necessary. If the caller only reads, the store may be
	// on a read-only disk: see IsReadOnly.
	Open(reads bool) (Store, error)
}

// Kind is the kind of thing that a log records.
type Kind string

// These are the kinds of logs.
const (
	Run     Kind = "run"
	Session Kind = "session"
)

// ID names a log.
type ID struct {
	Kind Kind
	Name string
}

// String returns the kind and the name, such as "run NAME".
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

// Log describes a run or a session in the store.
type Log struct {
	ID
	// Title is a line for display, such as the question.
	Title string
	// Spec is the specification with which the run or session was started, as JSON.
	Spec json.RawMessage
	// Parent is the log that this one was copied from, up to ParentTurn. It is empty if there was
	// no such log, and the log may no longer exist.
	Parent     string
	ParentTurn int
	Created    time.Time
	// Epoch counts the processes that have worked on the log.
	Epoch int64

	State
	// Spent is the sum of the costs of all entries, including removed ones.
	Spent   Cost
	Updated time.Time
}

// Lease is the right to change a log. Each owner has a higher epoch than its predecessor, and a
// change under an older epoch fails.
//
// In a folder, the end of a process releases its leases, because they are locks of the operating
// system. So ownership of a log does not depend on a clock. In a database, a lease ends when its
// process could not renew it: see [Watcher].
type Lease struct {
	ID    ID
	Epoch int64
}

// State is the mutable part of a log.
type State struct {
	// Status is a word, initially empty.
	Status string
	// Turn is the last committed turn.
	Turn int
	// Reason explains the status in a sentence, or is empty.
	Reason string
}

// Cost is the cost of an entry.
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

// Entry is one fact in a log.
type Entry struct {
	// Seq orders the entries of a log. Entries sets it.
	Seq int64
	// Turn is the turn to which the entry belongs.
	Turn int
	// Kind and Key identify the entry in the run log's terms.
	Kind, Key string
	// Data is the content of the entry.
	Data []byte
	// Blob is content to store separately, for Append. Entries sets Digest instead: its SHA-256, in
	// hexadecimal. Without a Blob, Append also accepts the Digest of another entry.
	Blob   []byte
	Digest string
	Cost   Cost
}

// A store accepts at most these sizes, in bytes.
const (
	MaxKind = 256
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
	case len(e.Kind) > MaxKind:
		return fmt.Errorf("the kind of an entry has %d bytes, more than %d", len(e.Kind), MaxKind)
	case len(e.Key) > MaxKey:
		return fmt.Errorf("the key of an entry has %d bytes, more than %d", len(e.Key), MaxKey)
	case len(e.Data) > MaxData:
		return fmt.Errorf("an entry has %d bytes, more than %d", len(e.Data), MaxData)
	case len(e.Blob) > MaxBlob:
		return fmt.Errorf("a content has %d bytes, more than %d", len(e.Blob), MaxBlob)
	}
	return nil
}

// Filter selects logs. A zero field matches all.
type Filter struct {
	Kind   Kind
	Status string
	// Text is a part of the name or the title, ignoring case.
	Text string
	// MinUSD is the minimum cost, and Since the earliest time of the last change.
	MinUSD float64
	Since  time.Time
	// Limit bounds the number of logs; 0 means no limit.
	Limit int
}

// Query selects entries. A zero field matches all.
type Query struct {
	Kinds []string
	// From is the first turn, and AfterSeq the Seq of the last entry that the caller already has.
	From     int
	AfterSeq int64
	// Last selects only the last entry.
	Last bool
}

// Collected reports what Collect deleted.
type Collected struct {
	Blobs int   `json:"blobs"`
	Bytes int64 `json:"bytes"` // on the disk
}

// These are the errors of a store. Test for them with errors.Is.
var (
	ErrExists   = errors.New("it already exists")
	ErrNotFound = errors.New("it does not exist")
	// ErrLost reports that another process has taken over the log.
	ErrLost = errors.New("another process has taken it over")
	// ErrReadOnly reports that the store was opened for reading only.
	ErrReadOnly = errors.New("the store cannot be written here")
	// ErrDamaged reports that data read differs from data written.
	ErrDamaged = damage.Kind("the store is damaged")
)

// OwnedError reports that another process is working on a log.
type OwnedError struct {
	ID    ID
	Owner string
}

// Error names the owner.
func (e *OwnedError) Error() string {
	return fmt.Sprintf("%s is in use by %s: wait until it has ended, or stop it", e.ID, e.Owner)
}
