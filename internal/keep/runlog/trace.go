package runlog

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/rlmhq/rlm/internal/keep/store"
	"github.com/rlmhq/rlm/internal/keep/trajectory"
)

// These bounds, in bytes, apply to the whole record of a turn, to one line, and to the lines in one
// entry. A larger line could not be read.
const (
	maxTrace = 32 << 20
	maxLine  = 12 << 20
	maxPart  = 2 << 20
)

// Follower writes the record of a run elsewhere as well. Its methods are called one at a time, and
// must not call the Log.
type Follower interface {
	// Past receives the record of a turn of an earlier process. Such turns precede all lines, in
	// order.
	Past(turn int, data []byte) error
	// Line receives the next line.
	Line(line *trajectory.Kept)
}

// traced is the record of the run since the last committed turn.
type traced struct {
	follower Follower // may be nil
	lines    []trajectory.Kept
	size     int
	leftOut  int
}

// Follow sets the follower of the record, before its first line.
func (j *Log) Follow(f Follower) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.traced.follower = f
}

// Trace adds a line to the record of the run. The line is stored when the turn is committed: until
// then, the turn may be repeated. Once Trace has returned false, the Log keeps no more lines of the
// turn.
func (j *Log) Trace(line *trajectory.Kept) (kept bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	t := &j.traced
	if j.loaded && t.follower != nil {
		t.follower.Line(line)
	}
	size := line.Size()
	if t.leftOut > 0 || size > maxLine || t.size+size > maxTrace {
		t.leftOut++
		return false
	}
	t.size += size
	t.lines = append(t.lines, *line)
	return true
}

// followPast passes the existing record to the follower when the first step begins: the record up
// to the turn after which the run continues, and the lines of this process. The caller holds j.mu.
func (j *Log) followPast(ctx context.Context) error {
	if j.traced.follower == nil {
		return nil
	}
	entries, err := j.store.Entries(ctx, j.lease.ID, store.Query{Kinds: []string{kindTrace}})
	if err != nil {
		return err
	}
	for _, e := range entries {
		if e.Turn >= j.from {
			continue
		}
		if err := j.traced.follower.Past(e.Turn, e.Data); err != nil {
			return fmt.Errorf("the record of turn %d: %w", e.Turn, err)
		}
	}
	j.followLines()
	return nil
}

// followLines passes the lines of this process to the follower. The caller holds j.mu.
func (j *Log) followLines() {
	for i := range j.traced.lines {
		j.traced.follower.Line(&j.traced.lines[i])
	}
}

// EndTrace ends the record. A run that began no step still has lines for the follower, unless it
// continues the run of another process, whose record exists already.
func (j *Log) EndTrace() {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.traced.follower != nil && !j.loaded && j.isNew {
		j.followLines()
	}
	j.traced.follower = nil
}

// takeTrace returns the entries of the record since the last turn.
func (j *Log) takeTrace(turn int) (entries []store.Entry, err error) {
	j.mu.Lock()
	t := j.traced
	j.traced = traced{follower: t.follower}
	j.mu.Unlock()

	for part := 0; len(t.lines) > 0 && err == nil; part++ {
		n, size := 0, 0
		for n < len(t.lines) && (n == 0 || size+t.lines[n].Size() <= maxPart) {
			size += t.lines[n].Size()
			n++
		}
		kept := trajectory.KeptTurn{Part: part, Lines: t.lines[:n]}
		if t.lines = t.lines[n:]; len(t.lines) == 0 {
			kept.LeftOut = t.leftOut
		}

		e := store.Entry{Turn: turn, Kind: kindTrace}
		e.Data, err = json.Marshal(kept)
		entries = append(entries, e)
	}
	return entries, err
}

// endTrace stores the rest of the record: the lines of the turn that was unfinished when the
// process ended.
func (j *Log) endTrace(ctx context.Context, last int) error {
	j.mu.Lock()
	counts := j.stopped == nil && (j.loaded || j.isNew) // otherwise an earlier process got further
	j.mu.Unlock()
	if !counts {
		return nil
	}
	entries, err := j.takeTrace(last + 1)
	if err != nil || len(entries) == 0 {
		return err
	}
	return j.store.Append(ctx, j.lease, entries...)
}
