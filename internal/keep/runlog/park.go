package runlog

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/rlmhq/rlm/internal/keep/store"
)

// A step may have to wait for a person for longer than a process lasts. It asks a question, and the
// run is parked: its process ends. The decision is added to the run log, and the next process
// begins the step again, and finds the decision.

// StatusParked is the status of a run whose steps wait for decisions.
const StatusParked = "parked"

// Question is the question of a waiting step.
type Question struct {
	// ID identifies the question within the store.
	ID string `json:"id"`
	// Run is the run that asks, Call the complete waiting call, and Why the reason for the
	// question.
	Run   string          `json:"run"`
	Call  json.RawMessage `json:"call"`
	Why   string          `json:"why"`
	Asked time.Time       `json:"asked"`

	turn int
}

// Decision answers a question.
type Decision struct {
	Allow bool `json:"allow"`
	// Reason is passed to the snippet if the call is rejected.
	Reason string `json:"reason,omitempty"`
	// Value is used as the result of the call, which is then not made. If Value is empty, the call
	// is made.
	Value json.RawMessage `json:"value,omitempty"`
}

// maxDecision bounds a waiting call, and each part of a decision, in bytes.
const maxDecision = 1 << 20

// ParkedError is the cause that ends the context of a parked run.
type ParkedError struct{ Questions []Question }

// Error lists the questions.
func (e *ParkedError) Error() string {
	list := make([]string, len(e.Questions))
	for i, q := range e.Questions {
		list[i] = fmt.Sprintf("%s %s", q.ID, q.Why)
	}
	return "it waits for a decision: " + strings.Join(list, "; ")
}

// Decision returns the last decision about the step, or nil.
func (s *Step) Decision() *Decision {
	if s == nil {
		return nil
	}
	s.runLog.mu.Lock()
	defer s.runLog.mu.Unlock()
	var last *Decision
	for {
		next := s.runLog.decisions[s.questionID(s.asked)]
		if next == nil {
			return last
		}
		last = next
		s.asked++
	}
}

// questionID returns the ID of the step's n-th question.
func (s *Step) questionID(n int) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%q %q %q %d", s.runLog.lease.ID.Name, s.key, s.about.Digest, n))
	return hex.EncodeToString(sum[:6])
}

// ErrCannotWait reports that a step cannot wait, because its run cannot outlive the process.
var ErrCannotWait = errors.New("nobody can be asked, and a run without a name cannot wait for an answer")

// Park asks whether to make a call, and ends the run once its calls in flight have ended. A person
// must be able to read the whole call. Park always returns an error; without a run log, or with an
// optional one, it is [ErrCannotWait].
func (s *Step) Park(ctx context.Context, call json.RawMessage, why string) error {
	if s == nil || s.runLog.spare {
		return ErrCannotWait
	}
	if len(call) > maxDecision {
		return fmt.Errorf("its arguments have %d bytes, more than the %d that a person can be asked about",
			len(call), maxDecision)
	}
	j := s.runLog
	q := Question{
		ID: s.questionID(s.asked), Run: j.lease.ID.Name, Call: call, Why: why,
		Asked: time.Now().Round(time.Second), turn: int(j.turn.Load()),
	}
	data, err := json.Marshal(q)
	if err == nil {
		err = j.store.Append(context.WithoutCancel(ctx), j.lease,
			store.Entry{Turn: q.turn, Kind: kindQuestion, Key: q.ID, Data: data})
	}
	if err != nil {
		return j.stop(fmt.Errorf("cannot park: %w", err))
	}

	j.mu.Lock()
	j.questions = append(j.questions, q)
	j.mu.Unlock()
	s.Leave()
	j.awaitOthers(ctx)
	return j.stopParked()
}

// settle is how long the run must have no step in flight before it is parked, so that the questions
// of concurrent steps are asked together.
const settle = 100 * time.Millisecond

// awaitOthers waits until no step is in flight, so that the results they pay for are kept.
func (j *Log) awaitOthers(ctx context.Context) {
	ticker := time.NewTicker(settle)
	defer ticker.Stop()
	for isQuiet := false; ; {
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return
		}

		j.mu.Lock()
		wasQuiet := isQuiet
		isQuiet = j.inFlight == 0
		j.mu.Unlock()
		if wasQuiet && isQuiet {
			return
		}
	}
}

// stopParked ends the run with the questions that it asked.
func (j *Log) stopParked() error {
	j.mu.Lock()
	questions := slices.Clone(j.questions)
	j.mu.Unlock()
	return j.stop(&ParkedError{questions})
}

// Leave records that the step is no longer in flight. The caller must call it for every step that
// Begin returns.
func (s *Step) Leave() {
	if s == nil || s.left {
		return
	}
	s.left = true
	s.runLog.mu.Lock()
	defer s.runLog.mu.Unlock()
	s.runLog.inFlight--
}

// Questions returns the undecided questions of a run, or of all parked runs if the name is empty.
func Questions(ctx context.Context, s store.Store, run string) (open []Question, err error) {
	names := []string{run}
	if run == "" {
		logs, err := s.Logs(ctx, store.Filter{Kind: store.Run, Status: StatusParked})
		if err != nil {
			return nil, err
		}
		names = nil
		for _, log := range logs {
			names = append(names, log.Name)
		}
	}

	for _, name := range names {
		more, err := readQuestions(ctx, s, store.ID{Kind: store.Run, Name: name})
		if err != nil {
			return nil, err
		}
		open = append(open, more...)
	}
	return open, nil
}

// readQuestions returns the open questions of one run.
func readQuestions(ctx context.Context, s store.Store, id store.ID) (open []Question, err error) {
	entries, err := s.Entries(ctx, id, store.Query{Kinds: []string{kindQuestion, kindDecision}})
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		isSame := func(q Question) bool { return q.ID == e.Key }
		if e.Kind == kindDecision {
			open = slices.DeleteFunc(open, isSame)
			continue
		}

		q := Question{turn: e.Turn}
		if err := decodeStrictly(e.Data, &q); err != nil {
			return nil, fmt.Errorf("cannot read a question of %s: %w", id, err)
		}
		if !slices.ContainsFunc(open, isSame) { // a later process may have repeated the question
			open = append(open, q)
		}
	}
	return open, nil
}

// Decide answers a question, and returns the question. The run continues when it is resumed.
func Decide(ctx context.Context, s store.Store, id string, d Decision) (q Question, err error) {
	if len(d.Reason) > maxDecision || len(d.Value) > maxDecision {
		return q, fmt.Errorf("a reason or a value has more than %d bytes", maxDecision)
	}
	if d.Value != nil && !json.Valid(d.Value) {
		return q, errors.New("the value is not JSON")
	}
	all, err := Questions(ctx, s, "")
	if err != nil {
		return q, err
	}
	i := slices.IndexFunc(all, func(q Question) bool { return q.ID == id })
	if i < 0 {
		return q, fmt.Errorf("no parked run waits for the decision %.40q: rlm runs show RUN has the ID of its call", id)
	}

	q = all[i]
	lease, err := s.Acquire(ctx, store.ID{Kind: store.Run, Name: q.Run})
	if err != nil {
		return q, err
	}
	err = keepDecision(ctx, s, lease, &q, d)
	return q, errors.Join(err, s.Release(lease))
}

// keepDecision adds a decision to the run log. A run without further questions is no longer parked.
func keepDecision(ctx context.Context, s store.Store, lease store.Lease, q *Question, d Decision) error {
	open, err := readQuestions(ctx, s, lease.ID) // read again, now that no other process can change it
	if err != nil {
		return err
	}
	if !slices.ContainsFunc(open, func(other Question) bool { return other.ID == q.ID }) {
		return fmt.Errorf("the question %s has been decided", q.ID)
	}
	data, err := json.Marshal(d)
	if err != nil {
		return err
	}
	err = s.Append(ctx, lease, store.Entry{Turn: q.turn, Kind: kindDecision, Key: q.ID, Data: data})
	if err != nil || len(open) > 1 {
		return err
	}

	log, err := s.Log(ctx, lease.ID)
	if err != nil {
		return err
	}
	return s.SetState(ctx, lease, store.State{
		Status: StatusInterrupted, Turn: log.Turn, Reason: "every call that waited has a decision",
	})
}

// decodeStrictly decodes one JSON value without unknown fields.
func decodeStrictly(data []byte, into any) error {
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(into); err != nil {
		return fmt.Errorf("%w: %w", store.ErrDamaged, err)
	}
	if decoder.More() {
		return fmt.Errorf("%w: there is more than one value", store.ErrDamaged)
	}
	return nil
}
