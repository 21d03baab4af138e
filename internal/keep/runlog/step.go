package runlog

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/rlmhq/rlm/internal/keep/store"
	"github.com/rlmhq/rlm/internal/text/texts"
)

// Request describes the work of a step before it begins.
type Request struct {
	// What is a word for the request, such as the purpose of a model call.
	What string
	// Digest identifies the whole request.
	Digest string
	// About describes the request for display. It may be shortened.
	About string
}

// maxAbout bounds a request's description in the run log, in characters.
const maxAbout = 300

// Step is one step of a run. A nil Step belongs to a run without a run log.
type Step struct {
	runLog *Log
	key    string
	about  about
	known  *step // nil for none
	asked  int   // number of questions with a decision
	left   bool
}

// step is an entry of a step that an earlier process finished or began.
type step struct {
	key string
	content
	ended, taken bool
}

// about is the run log's description of a request.
type about struct {
	Digest string `json:"digest"`
	About  string `json:"about"`
}

// content is the data of an entry.
type content struct {
	about
	Ending json.RawMessage `json:"ending,omitempty"`
}

// CourseError reports that a run took a different course than in an earlier process.
type CourseError struct {
	// Place is the place of the difference; Was and Is are the earlier and the current request
	// there.
	Place, Was, Is string
}

// Error describes the difference and the possible remedies.
func (e *CourseError) Error() string {
	return fmt.Sprintf("the run takes another course than before, so it was stopped before it pays: "+
		"at%s, it asked %q, and now %q; return to an earlier turn with rlm runs rewind, "+
		"or start a new run under another name", e.Place, e.Was, e.Is)
}

// Begin begins the next step at the place of a context. It calls describe only if the context has a
// run log. The caller ends the step with [Step.Leave]. The error is a [*CourseError] if the run
// does something different here than before, or the reason why the run was stopped.
func Begin(ctx context.Context, describe func() Request) (*Step, error) {
	p, ok := ctx.Value(placeKey{}).(place)
	if !ok {
		return nil, nil //nolint:nilnil // documented: a nil Step
	}
	if err := p.queue.wait(ctx); err != nil {
		return nil, err
	}
	if p.queue != nil {
		defer p.queue.begun()
	}

	j := p.runLog
	if err := j.load(ctx); err != nil {
		return nil, j.stop(err)
	}

	r := describe()
	s := &Step{runLog: j, key: p.key(r.What), about: about{r.Digest, texts.Truncate(r.About, maxAbout)}}
	if err := s.find(); err != nil {
		return nil, j.stop(err)
	}

	if _, ok := s.Ending(); !ok {
		data, err := json.Marshal(content{about: s.about})
		if err != nil {
			return nil, err
		}
		j.store.Note(j.lease, store.Entry{Turn: int(j.turn.Load()), Kind: kindBegun, Key: s.key, Data: data})
	}
	return s, nil
}

// load reads the steps to repeat, once.
func (j *Log) load(ctx context.Context) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.stopped != nil || j.loaded {
		return j.stopped
	}
	entries, err := j.store.Entries(ctx, j.lease.ID,
		store.Query{Kinds: replayedKinds, From: j.from})
	if err != nil {
		return fmt.Errorf("cannot read the run log of %s: %w", j.lease.ID, err)
	}

	j.steps, j.byWhat = map[string]*step{}, map[string][]*step{}
	j.decisions, j.starts = map[string]*Decision{}, map[string]Start{}
	for i := range entries {
		if err := j.take(&entries[i]); err != nil {
			return fmt.Errorf("cannot read the run log of %s: %s: %w", j.lease.ID, entries[i].Key, err)
		}
	}
	for _, known := range j.steps {
		j.byWhat[known.Digest] = append(j.byWhat[known.Digest], known)
	}

	if err := j.followPast(ctx); err != nil {
		return fmt.Errorf("cannot read the run log of %s: %w", j.lease.ID, err)
	}
	j.loaded = true
	return nil
}

// take records the content of an entry. The caller holds j.mu.
func (j *Log) take(e *store.Entry) (err error) {
	switch e.Kind {
	case kindDecision:
		d := &Decision{}
		err = decodeStrictly(e.Data, d)
		j.decisions[e.Key] = d
		return err
	case kindStart:
		j.starts[e.Key], err = decodeStart(e.Data)
		return err
	}

	c, err := decodeContent(e.Data)
	if err != nil {
		return err
	}
	known := j.steps[e.Key]
	if known == nil {
		known = &step{key: e.Key}
		j.steps[e.Key] = known
	}
	known.content = c
	known.ended = known.ended || e.Kind == kindStep
	return nil
}

// decodeContent decodes the data of an entry strictly.
func decodeContent(data []byte) (c content, err error) {
	err = decodeStrictly(data, &c)
	return c, err
}

// find finds an earlier process's record of a step: the record at the same place, or else one with
// the same request. Threads may have swapped places.
func (s *Step) find() error {
	j := s.runLog
	j.mu.Lock()
	defer j.mu.Unlock()
	here := j.steps[s.key]
	if s.known = here; here == nil || here.taken || here.Digest != s.about.Digest {
		s.known = j.findElsewhere(s.about.Digest)
	}
	if s.known == nil && here != nil && !here.taken {
		return &CourseError{Place: s.key, Was: here.About, Is: s.about.About}
	}

	if s.known != nil {
		s.known.taken, s.key = true, s.known.key
	} else if here != nil {
		s.key += " instead" // the key belongs to a step that swapped places
	}

	switch {
	case s.known == nil:
		j.counted.Made++
	case s.known.ended:
		j.counted.Replayed++
	default:
		j.counted.Made++
		j.counted.Again++
	}

	s.left = s.known != nil && s.known.ended
	if !s.left {
		j.inFlight++
	}
	return nil
}

// findElsewhere returns an unclaimed step with the same request, preferably one that has ended. The
// caller holds j.mu.
func (j *Log) findElsewhere(digest string) (found *step) {
	for _, known := range j.byWhat[digest] {
		if !known.taken && (found == nil || known.ended && !found.ended) {
			found = known
		}
	}
	return found
}

// Ending returns how the step ended, if it did.
func (s *Step) Ending() (ending json.RawMessage, ok bool) {
	if s == nil || s.known == nil || !s.known.ended {
		return nil, false
	}
	return s.known.Ending, true
}

// End records how the step ended. The record is durable when End returns. After an error the run
// cannot continue.
func (s *Step) End(ctx context.Context, ending any, cost store.Cost) error {
	if s == nil {
		return nil
	}
	j := s.runLog

	raw, err := json.Marshal(ending)
	var data []byte
	if err == nil {
		data, err = json.Marshal(content{about: s.about, Ending: raw})
	}
	if err == nil {
		err = j.store.Append(context.WithoutCancel(ctx), j.lease,
			store.Entry{Turn: int(j.turn.Load()), Kind: kindStep, Key: s.key, Data: data, Cost: cost})
	}
	if err != nil {
		return j.stop(fmt.Errorf("cannot keep the result of %s: %w", s.about.About, err))
	}
	return nil
}

// Drop records the cost of an aborted step. A later process begins the step again.
func (s *Step) Drop(cost store.Cost) {
	if s == nil || cost == (store.Cost{}) {
		return
	}
	j := s.runLog
	j.store.Note(j.lease, store.Entry{Turn: int(j.turn.Load()), Kind: kindLost, Key: s.key, Cost: cost})
}
