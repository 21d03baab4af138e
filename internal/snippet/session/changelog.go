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

// ChangeLog collects what changes a session during one use, so that another process can do the same
// with an earlier state of the session. A session finds it in the context of its calls. All methods
// accept nil.
type ChangeLog struct {
	// Entries are the changes, in order.
	Entries []Change
	// Gap explains why the entries do not lead to the session's state, and is empty if they do.
	Gap string
	// HasRun reports that the use may have changed the session.
	HasRun bool

	tape *Tape // of the snippet that runs; nil after a gap
}

// Change is a snippet of a session.
type Change struct {
	Language tiers.Language `json:"language,omitempty"`
	Source   []byte         `json:"source"`
	// Tape is what the snippet got from its host, Outcome what it ended with, and Variables
	// identifies the variables after it: see Outcome and SumVariables.
	Tape      json.RawMessage `json:"tape,omitempty"`
	Outcome   []byte          `json:"outcome,omitempty"`
	Variables []byte          `json:"variables,omitempty"`
	// Moved is the variable that the snippet moves to or from the host, empty for a snippet of
	// the caller's. IsLook means that it only moves the value out.
	Moved  string `json:"moved,omitempty"`
	IsLook bool   `json:"look,omitempty"`
	// Active is the time for which the snippet computed, in nanoseconds.
	Active time.Duration `json:"active,omitempty"`
}

// Bounds of an encoded entry.
const (
	// MaxChange is in bytes. It is more than a tape and a long source take.
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

// With returns a context whose uses of a session are in the changes.
func (l *ChangeLog) With(ctx context.Context) context.Context {
	return context.WithValue(ctx, changeLogKey{}, l)
}

// ChangeLogOf returns the changes of a context, nil for none.
func ChangeLogOf(ctx context.Context) *ChangeLog {
	l, _ := ctx.Value(changeLogKey{}).(*ChangeLog)
	return l
}

// Begin returns the context of a snippet, which End ends.
func (l *ChangeLog) Begin(ctx context.Context) context.Context {
	if l == nil || l.Gap != "" {
		return ctx
	}
	l.tape = NewTape()
	return l.tape.With(ctx)
}

// End adds the snippet of Begin with its result. The fields of e that describe a move of a variable
// are set. A snippet that no tier has begun changes nothing.
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

// Break records why the entries do not lead to the session's state.
func (l *ChangeLog) Break(why string) {
	if l == nil {
		return
	}
	l.HasRun = true
	if l.Gap == "" {
		l.Gap, l.Entries = why, nil
	}
}

// Outcome identifies how a snippet ended, as far as its caller can see and a repeated snippet does
// the same.
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
		return nil // texts and numbers can be encoded
	}
	sum := sha256.Sum256(text)
	return sum[:]
}
