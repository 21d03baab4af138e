package runlog

import (
	"cmp"
	"context"
	"io"
	"slices"

	"github.com/rlmhq/rlm/internal/keep/store"
)

// Reader reads the log of a run that another process may be writing. It never blocks that process.
// It must be used by one goroutine only.
type Reader struct {
	store store.Store
	name  string

	known store.Log // as of the last Read
	count int       // known entries
	last  int64     // the Seq of the last known entry
}

// News is the set of changes in a run since the last Read.
type News struct {
	// Run is the run with its current status.
	Run store.Log
	// IsAnew means that News contains all entries, because it is the first News, or turns were
	// removed.
	IsAnew bool

	entries []store.Entry
}

// NewReader returns a reader that starts at the beginning of a run's log.
func NewReader(s store.Store, name string) *Reader { return &Reader{store: s, name: name} }

// Read returns the changes since the last Read.
func (r *Reader) Read(ctx context.Context) (news News, err error) {
	if news.Run, err = Look(ctx, r.store, r.name); err != nil {
		return news, err
	}
	isFirst := r.known.Name == ""
	isSameOwner := !isFirst && news.Run.Epoch == r.known.Epoch
	switch {
	case isSameOwner && news.Run.Updated.Equal(r.known.Updated) && news.Run.Status == r.known.Status:
		return news, nil
	case isSameOwner && news.Run.Status == StatusRunning && r.known.Status == StatusRunning:
		news.entries, err = r.store.Entries(ctx, news.Run.ID, store.Query{AfterSeq: r.last})
	default:
		err = r.readAll(ctx, &news, isFirst) // turns may have been removed
	}
	if err != nil {
		return news, err
	}

	r.known = news.Run
	if news.IsAnew {
		r.count, r.last = 0, 0
	}
	if n := len(news.entries); n > 0 {
		r.count += n
		r.last = news.entries[n-1].Seq
	}
	return news, nil
}

// readAll reads all entries. It omits known entries as long as all of them still exist.
func (r *Reader) readAll(ctx context.Context, news *News, isFirst bool) (err error) {
	news.IsAnew = true
	news.entries, err = r.store.Entries(ctx, news.Run.ID, store.Query{})
	if isFirst || err != nil {
		return err
	}

	still, _ := slices.BinarySearchFunc(news.entries, r.last+1,
		func(e store.Entry, seq int64) int { return cmp.Compare(e.Seq, seq) })
	if still == r.count {
		news.IsAnew, news.entries = false, news.entries[still:]
	}
	return nil
}

// IsNone reports whether the entries are the same as at the last Read.
func (n *News) IsNone() bool { return !n.IsAnew && len(n.entries) == 0 }

// Write writes the entries as lines of JSON, as [Export] does.
func (n *News) Write(w io.Writer) error { return export(n.entries, w) }
