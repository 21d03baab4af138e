package pykernel

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/rlmhq/rlm/tiers"
)

// Bounds on a state that moves.
const (
	maxState = 1 << 30
	maxLeft  = 1000
)

// moving is the state on its way into or out of the guest.
type moving struct {
	data  []byte
	left  []tiers.Left
	out   bool // the guest may give a state
	moved int
	each  time.Duration // what a variable may take
	until time.Time     // when no variable gets time of its own any more
}

// The time of a move. A variable may take mostEach, or the session's limit if that
// is less; each that took longer halves it for the others, so that those that never
// end take twice as much together, whatever their number.
const (
	mostEach  = 10 * time.Second
	leastEach = 100 * time.Millisecond
)

// texts is what a state says to the host of the other tier: the files of
// directories that the guest knows by number, in order. It stands before the
// guest's own bytes, its length first.
type texts struct {
	Files []textFile `json:"files"`
}

type textFile struct {
	Input int    `json:"input"`
	Path  []byte `json:"path"` // no string: a path need not be UTF-8
}

// Runner runs the guest's run function, as the tier does for a snippet.
type Runner func(source string, flags int) (code int, err error)

// Export takes the namespace out of the guest. The accounts of the last snippet
// are lost.
func (s *Session) Export(ctx context.Context, tier string, run Runner) (tiers.State, error) {
	s.moving = moving{out: true}
	defer func() { s.moving = moving{} }()
	if err := s.transfer(ctx, run, FlagExport); err != nil {
		return tiers.State{}, fmt.Errorf("cannot take the variables out of tier %s: %w", tier, err)
	}
	head, err := json.Marshal(texts{s.fileList()})
	if err != nil {
		return tiers.State{}, err
	}
	data := binary.LittleEndian.AppendUint32(make([]byte, 0, 4+len(head)+len(s.moving.data)), uint32(len(head)))
	data = append(append(data, head...), s.moving.data...)
	return tiers.State{
		Language: tiers.Python, Format: tiers.FormatPickle, From: tier, Snippet: s.snippet,
		Data: data, Left: s.moving.left,
	}, nil
}

// Import brings a namespace into a guest that has run no snippet.
func (s *Session) Import(ctx context.Context, tier string, state tiers.State, run Runner) (tiers.Report, error) {
	if state.Format == tiers.FormatReplay {
		return s.replay(ctx, tier, state, run)
	}
	if state.Format != tiers.FormatPickle {
		return tiers.Report{}, &tiers.RejectedError{
			Tier: tier, Missing: state.Format, Effects: tiers.EffectsNeverRan,
			Reason: fmt.Sprintf("it does not know the format %q of the variables from tier %s", state.Format, state.From),
		}
	}
	data, err := s.adopt(state.Data)
	if err != nil {
		return tiers.Report{}, fmt.Errorf("cannot read the state from tier %s: %w", state.From, err)
	}
	s.snippet = state.Snippet
	s.moving = moving{data: data}
	defer func() { s.moving = moving{} }()
	if err := s.transfer(ctx, run, FlagImport); err != nil {
		return tiers.Report{}, fmt.Errorf("cannot bring the variables into tier %s: %w", tier, err)
	}
	return tiers.Report{Moved: s.moving.moved, Left: append(state.Left[:len(state.Left):len(state.Left)], s.moving.left...)}, nil
}

// replay runs the snippets of a session of pure ones again.
func (s *Session) replay(ctx context.Context, tier string, state tiers.State, run Runner) (tiers.Report, error) {
	var sources []string
	if err := json.Unmarshal(state.Data, &sources); err != nil {
		return tiers.Report{}, fmt.Errorf("cannot read the state from tier %s: %w", state.From, err)
	}
	for _, source := range sources {
		if err := s.Begin(ctx, tiers.Job{}); err != nil {
			return tiers.Report{}, err
		}
		code, err := run(source, s.snippet<<OrdinalShift)
		if s.End(code); err != nil {
			return tiers.Report{}, fmt.Errorf("cannot repeat snippet %d in tier %s: %w", s.snippet, tier, err)
		}
	}
	s.snippet = state.Snippet
	return tiers.Report{Moved: len(sources), Left: state.Left}, nil
}

// transfer runs the guest's run for a state instead of a snippet.
func (s *Session) transfer(ctx context.Context, run Runner, flag int) error {
	snippet := s.snippet
	if err := s.Begin(ctx, tiers.Job{}); err != nil {
		return err
	}
	s.snippet = snippet // it is none
	wall := s.cfg.Limits.Wall
	s.moving.each = min(wall, mostEach)
	s.moving.until = time.Now().Add(wall + 2*s.moving.each)
	s.time()
	code, err := run("", flag)
	r := s.End(code)
	switch {
	case err != nil:
		return err
	case r.Status != tiers.StatusOK && r.Exception != nil:
		return fmt.Errorf("%s: %s", r.Exception.Type, r.Exception.Message)
	case r.Status != tiers.StatusOK:
		return fmt.Errorf("%s %s", r.Status, r.Limit)
	}
	return nil
}

// time gives the next variable its time.
func (s *Session) time() {
	limits := s.cfg.Limits
	limits.Wall, limits.Active = s.moving.each, min(limits.Active, s.moving.each)
	s.meter.begin(limits)
}

// next begins with the next variable of a state. With "!" the guest was interrupted at
// the last one, and asks why.
func (s *Session) next(body []byte) Reply {
	if s.moving.until.IsZero() {
		return fail(errRequest)
	}
	if time.Now().After(s.moving.until) {
		return ok("")
	}
	reason := ""
	if string(body) == "!" {
		reason = fmt.Sprintf("it took longer than %s to copy", s.moving.each)
		s.moving.each = max(s.moving.each/2, leastEach)
	}
	s.time()
	return ok(reason)
}

func (s *Session) fileList() []textFile {
	list := []textFile{}
	for _, o := range s.texts[len(s.cfg.Inputs):] {
		for i, in := range s.cfg.Inputs {
			if in.Dir == o.dir {
				list = append(list, textFile{i, []byte(o.path)})
				break
			}
		}
	}
	return list
}

var errState = errors.New("its head is damaged")

// adopt makes the texts known that the state refers to and returns the guest's
// part of it.
func (s *Session) adopt(data []byte) ([]byte, error) {
	if len(data) < 4 || len(data) > maxState {
		return nil, errState
	}
	length := binary.LittleEndian.Uint32(data)
	if uint64(length) > uint64(len(data)-4) {
		return nil, errState
	}
	var head texts
	if err := json.Unmarshal(data[4:4+length], &head); err != nil || len(head.Files) > maxTexts {
		return nil, errState
	}
	for _, f := range head.Files {
		if f.Input < 0 || f.Input >= len(s.cfg.Inputs) || s.cfg.Inputs[f.Input].Dir == nil {
			return nil, errState
		}
		file := openText{dir: s.cfg.Inputs[f.Input].Dir, path: string(f.Path)}
		s.files[file] = len(s.texts)
		s.texts = append(s.texts, file)
	}
	return data[4+length:], nil
}

// put takes the state that the guest gives.
func (s *Session) put(body []byte) Reply {
	if !s.moving.out || s.moving.data != nil || len(body) > maxState {
		return fail(errRequest)
	}
	s.moving.data = append(make([]byte, 0, len(body)), body...)
	return Reply{ASCII: true}
}

// get gives the guest the state to take.
func (s *Session) get(body []byte) Reply {
	if len(body) > 0 || s.moving.out || s.moving.data == nil {
		return fail(errRequest)
	}
	return Reply{Data: s.moving.data}
}

// left takes the guest's word on what could not move, and on how many variables
// did.
func (s *Session) left(body []byte) Reply {
	var report struct {
		Moved int          `json:"moved"`
		Left  []tiers.Left `json:"left"`
	}
	if err := json.Unmarshal(body, &report); err != nil || report.Moved < 0 || len(report.Left) > maxLeft {
		return fail(errRequest)
	}
	for i := range report.Left {
		l := &report.Left[i]
		l.Name, l.Type, l.Reason = short(l.Name), short(l.Type), short(l.Reason)
	}
	s.moving.left, s.moving.moved = report.Left, report.Moved
	return Reply{ASCII: true}
}

func short(s string) string {
	const most = 300
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most], "") + "..."
}
