package session

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"time"

	"github.com/rlmhq/rlm/internal/snippet/frame"
	"github.com/rlmhq/rlm/internal/snippet/hostcall"
	"github.com/rlmhq/rlm/tiers"
)

// ChangeLog collects the changes of a session during one use, so that another process can repeat
// them on an earlier state of the session. A session finds it in the context of its calls. All
// methods accept nil.
type ChangeLog struct {
	// Entries are the changes, in order.
	Entries []Change
	// Gap explains why the entries do not lead to the session's state, and is empty if they do.
	Gap string
	// HasRun reports that the use may have changed the session.
	HasRun bool

	tape *Tape // of the running snippet; nil after a gap
}

// Change is a snippet that changed a session.
type Change struct {
	Language tiers.Language `json:"language,omitempty"`
	Source   []byte         `json:"source"`
	// Tape is the snippet's encoded tape. Outcome identifies the snippet's outcome, and Variables
	// the variables after the snippet: see Outcome and SumVariables.
	Tape      json.RawMessage `json:"tape,omitempty"`
	Outcome   []byte          `json:"outcome,omitempty"`
	Variables []byte          `json:"variables,omitempty"`
	// Moved is the variable that the snippet moves to or from the host, empty for a snippet of the
	// caller. IsLook means that the snippet only moves the value out.
	Moved  string `json:"moved,omitempty"`
	IsLook bool   `json:"look,omitempty"`
	// Active is the time for which the snippet computed, in nanoseconds.
	Active time.Duration `json:"active,omitempty"`
}

// Bounds of an encoded entry.
const (
	// MaxChange bounds an entry, in bytes. It exceeds the size of a tape and a long source.
	MaxChange       = 4 << 20
	maxChangeValues = 1 << 20
)

// ReadChange decodes an entry.
func ReadChange(data []byte) (e Change, err error) {
	if len(data) > MaxChange || hostcall.CountValues(data, 4) > maxChangeValues {
		return e, errRequest
	}

	err = frame.DecodeJSON(data, &e)
	return e, err
}

type changeLogKey struct{}

// With returns a context in which the log records the changes of a session.
func (l *ChangeLog) With(ctx context.Context) context.Context {
	return context.WithValue(ctx, changeLogKey{}, l)
}

// ChangeLogOf returns the log of a context, or nil if there is none.
func ChangeLogOf(ctx context.Context) *ChangeLog {
	l, _ := ctx.Value(changeLogKey{}).(*ChangeLog)
	return l
}

// Begin returns the context of a snippet, until End.
func (l *ChangeLog) Begin(ctx context.Context) context.Context {
	if l == nil || l.Gap != "" {
		return ctx
	}
	l.tape = NewTape()
	return l.tape.With(ctx)
}

// End adds the snippet of Begin with its result. In e, only the fields that describe a move of a
// variable need to be set. A snippet that no tier has begun changes nothing.
func (l *ChangeLog) End(e Change, job *tiers.Job, r *tiers.Result, failed error) {
	switch {
	case l == nil:
		return
	case l.Gap != "":
		l.HasRun = true
		return
	case l.tape.content.Tier == "":
		return
	}

	tape, err := l.tape.Encode()
	var broken *tiers.BrokenError
	switch {
	case errors.As(failed, &broken) && broken.Effects == tiers.EffectsNeverRan && broken.Lost == nil:
		return
	case failed != nil:
		l.Break("a snippet did not end in order")
	case r.Lost != nil:
		l.Break("the session has lost something")
	case r.Limit != "" || r.Status == tiers.StatusCrashed:
		l.Break("a snippet met a limit, or crashed")
	case err != nil:
		l.Break(err.Error())
	}

	e.Language, e.Source, e.Tape = job.Language, []byte(job.Source), tape
	e.Outcome, e.Variables, e.Active = Outcome(r), SumVariables(r), r.Usage.Active
	l.HasRun = true
	if l.Gap == "" {
		l.Entries = append(l.Entries, e)
	}
}

// Break records the reason why the entries do not lead to the session's state.
func (l *ChangeLog) Break(why string) {
	if l == nil {
		return
	}
	l.HasRun = true
	if l.Gap == "" {
		l.Gap, l.Entries = why, nil
	}
}

// Outcome identifies the outcome of a snippet: the parts that are visible to its caller and that a
// repeated snippet reproduces.
func Outcome(r *tiers.Result) []byte {
	seen := []any{r.Status, []byte(r.Stdout), []byte(r.Stderr)}
	if r.Exception != nil {
		seen = append(seen, r.Exception.Type, []byte(r.Exception.Message))
	}
	if r.Final != nil {
		seen = append(seen, r.Final.Name, []byte(r.Final.Value))
	}
	return sumOf(seen)
}

// SumVariables identifies the names and kinds of the variables after a snippet.
func SumVariables(r *tiers.Result) []byte { return sumOf(r.Variables) }

func sumOf(v any) []byte {
	text, err := json.Marshal(v)
	if err != nil {
		return nil // strings and numbers can be encoded
	}
	sum := sha256.Sum256(text)
	return sum[:]
}
