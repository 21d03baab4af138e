package session

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	mathrand "math/rand/v2"

	"github.com/rlmhq/rlm/internal/snippet/frame"
	"github.com/rlmhq/rlm/internal/snippet/hostcall"
	"github.com/rlmhq/rlm/tiers"
)

// MaxTape is the maximum size of an encoded tape, in bytes. A snippet that received more from its
// host cannot be repeated.
const MaxTape = 256 << 10

// Tape records everything that a snippet receives from outside its guest: the time, random bytes,
// and the host's answers to its calls. The rest of its execution is a function of its code and of
// its guest's state. So a guest in the same state that receives the same data from a tape does the
// same, without calling host functions or using the network again.
//
// Tiers find a tape in the context of a run: see [Tape.With]. One tape is for one snippet, which
// several tiers may try.
type Tape struct {
	content  tapeContent
	size     int    // approximate size of the encoded content, in bytes
	why      string // why the snippet cannot be repeated; empty if it can
	isReplay bool
	order    []byte // the encoded content, if it is a replay
	began    bool   // a guest uses the tape
	moves    bool   // see MoveVariable

	// The fields below are those of a replay: the remaining readings and answers, and the first
	// difference.
	walls, monotonics clockTape
	left              []tapedAnswer
	strayed           string
	random            io.Reader
}

type tapeContent struct {
	// Tier is the tier that ran the snippet.
	Tier string `json:"tier"`
	// Seed determines the random bytes.
	Seed []byte `json:"seed,omitempty"`
	// Walls and Monotonics are the readings of the two clocks, in nanoseconds, as varints of the
	// differences between successive readings.
	Walls      []byte `json:"walls,omitempty"`
	Monotonics []byte `json:"monotonics,omitempty"`
	// Answers are those to a guest that sends its requests in an order that the tape determines.
	// Calls are those of a guest that makes its calls in any order.
	Answers []tapedAnswer  `json:"answers,omitempty"`
	Calls   []AnsweredCall `json:"calls,omitempty"`
}

// tapedAnswer is the answer to one request.
type tapedAnswer struct {
	// Request identifies the request by a part of its SHA-256.
	Request []byte `json:"request"`
	Data    []byte `json:"data,omitempty"`
	Failed  bool   `json:"failed,omitempty"`
	ASCII   bool   `json:"ascii,omitempty"`
}

// requestSum is the length of tapedAnswer.Request, in bytes.
const requestSum = 8

// NewTape returns an empty tape.
func NewTape() *Tape { return &Tape{why: "it has not run"} }

// ReadTape returns a tape that replays the content of an earlier one.
func ReadTape(data []byte) (*Tape, error) {
	if len(data) > 2*MaxTape || hostcall.CountValues(data, 3) > MaxTape {
		return nil, fmt.Errorf("the tape of a snippet is longer than %d bytes", MaxTape)
	}
	t := &Tape{isReplay: true, order: data}
	if err := frame.DecodeJSON(data, &t.content); err != nil {
		return nil, fmt.Errorf("cannot read the tape of a snippet: %w", err)
	}
	if n := len(t.content.Seed); n != 0 && n != 32 {
		return nil, errors.New("cannot read the tape of a snippet: its seed is not one")
	}
	return t, nil
}

// MoveVariable records that the snippet moves a variable to or from the host, so the session must
// offer it the functions for that.
func (t *Tape) MoveVariable() { t.moves = true }

// MovesVariable reports whether MoveVariable was called.
func (t *Tape) MovesVariable() bool { return t != nil && t.moves }

type tapeKey struct{}

// With returns a context whose snippet uses the tape.
func (t *Tape) With(ctx context.Context) context.Context {
	return context.WithValue(ctx, tapeKey{}, t)
}

// TapeOf returns the tape of a context, or nil if there is none. All methods accept nil.
func TapeOf(ctx context.Context) *Tape {
	t, _ := ctx.Value(tapeKey{}).(*Tape)
	return t
}

// Enter begins an attempt of a tier. canRepeat means that its guest uses tapes. The error is a
// [*tiers.RejectedError] if the repeated snippet ran in another tier the first time, or if the
// guest would call the host again.
func (t *Tape) Enter(tier string, canRepeat bool) error {
	switch {
	case t == nil:
		return nil
	case !t.isReplay:
		t.content, t.size, t.began = tapeContent{Tier: tier}, 0, false
		t.why = "tier " + tier + " cannot repeat a snippet"
	case tier != t.content.Tier:
		return &tiers.RejectedError{
			Tier: tier, Effects: tiers.EffectsNeverRan,
			Reason: "the snippet that is repeated ran in tier " + t.content.Tier,
		}
	case !canRepeat:
		return &tiers.RejectedError{
			Tier: tier, Effects: tiers.EffectsNeverRan,
			Reason: "it cannot repeat a snippet with this engine, or in a deterministic session",
		}
	}
	return nil
}

// Begin is called by a guest that uses the tape for the snippet that begins.
func (t *Tape) Begin() {
	if t == nil {
		return
	}
	t.began, t.why = true, ""
	if t.isReplay {
		t.walls, t.monotonics = clockTape{left: t.content.Walls}, clockTape{left: t.content.Monotonics}
		t.left, t.strayed = t.content.Answers, ""
	} else {
		t.walls, t.monotonics, t.size = clockTape{}, clockTape{}, 0
		t.content = tapeContent{Tier: t.content.Tier, Seed: make([]byte, 32)}
		_, _ = rand.Read(t.content.Seed) // never fails
	}
	var seed [32]byte
	copy(seed[:], t.content.Seed)
	t.random = mathrand.NewChaCha8(seed)
}

// Refuse records why the snippet cannot be repeated.
func (t *Tape) Refuse(why string) {
	if t != nil && t.why == "" {
		t.why = why
	}
}

// Why returns the reason why the snippet cannot be repeated, or "" if it can.
func (t *Tape) Why() string { return t.why }

// Strayed describes how the requests of a repeated snippet differed from those of its first run; it
// is empty if they did not.
func (t *Tape) Strayed() string {
	switch {
	case !t.isReplay || t.strayed != "":
		return t.strayed
	case !t.began:
		return "it did not run"
	case len(t.left) > 0 || len(t.walls.left) > 0 || len(t.monotonics.left) > 0:
		return "it asked its host for less"
	}
	return ""
}

// Encode returns the content for ReadTape, or an error with the reason why the snippet cannot be
// repeated.
func (t *Tape) Encode() ([]byte, error) {
	if t.why != "" {
		return nil, errors.New(t.why)
	}
	data, err := json.Marshal(&t.content)
	if err == nil && len(data) > 2*MaxTape {
		err = errTapeFull
	}
	return data, err
}

// Order returns the data with which another process runs the snippet with the tape: whether there
// is a tape, and the content that a replay repeats.
func (t *Tape) Order() (is bool, content []byte) {
	if t == nil {
		return false, nil
	}
	return true, t.order
}

// TapeReport is a tape's result in another process.
type TapeReport struct {
	Content []byte `json:"content,omitempty"`
	Why     string `json:"why,omitempty"`
	Strayed string `json:"strayed,omitempty"`
}

// Report returns the result of a tape, or nil if there is no tape.
func (t *Tape) Report() *TapeReport {
	switch {
	case t == nil:
		return nil
	case t.isReplay:
		return &TapeReport{Strayed: t.Strayed()}
	}
	content, err := t.Encode()
	if err != nil {
		return &TapeReport{Why: err.Error()}
	}
	return &TapeReport{Content: content}
}

// Adopt takes over the result of a tape from another process, which may be hostile.
func (t *Tape) Adopt(r *TapeReport) error {
	switch {
	case t == nil || r == nil:
		return nil
	case len(r.Why)+len(r.Strayed) > maxName:
		return errors.New("the report on a tape is too long")
	case t.isReplay:
		t.began, t.strayed = true, r.Strayed
		return nil
	case r.Why != "":
		t.why = r.Why
		return nil
	}

	read, err := ReadTape(r.Content)
	if err != nil {
		return err
	}
	if read.content.Tier != t.content.Tier {
		return errors.New("a tape names another tier")
	}
	t.content, t.why = read.content, ""
	return nil
}

var errTapeFull = fmt.Errorf("it got more than %d KiB from its host", MaxTape>>10)

// grow counts bytes of the content, and reports whether they fit.
func (t *Tape) grow(bytes int) bool {
	if t.size += bytes; t.size > MaxTape {
		t.Refuse(errTapeFull.Error())
	}
	return t.why == ""
}

func (t *Tape) stray(what string) {
	if t.strayed == "" {
		t.strayed = what
	}
}

// Random returns the source of the snippet's random bytes, or nil without a tape.
func (t *Tape) Random() io.Reader {
	if t == nil {
		return nil
	}
	return t.random
}

// Wall records a reading of the wall clock, in nanoseconds, or returns the recorded one.
func (t *Tape) Wall(now int64) int64 {
	if t == nil {
		return now
	}
	return t.read(&t.walls, &t.content.Walls, now)
}

// Monotonic is like Wall, for the monotonic clock.
func (t *Tape) Monotonic(now int64) int64 {
	if t == nil {
		return now
	}
	return t.read(&t.monotonics, &t.content.Monotonics, now)
}

// clockTape is the state of one clock: its last reading, and the remaining readings of a replay.
type clockTape struct {
	last int64
	left []byte
}

func (t *Tape) read(c *clockTape, content *[]byte, now int64) int64 {
	if !t.isReplay {
		if t.why == "" {
			before := len(*content)
			*content = binary.AppendVarint(*content, now-c.last)
			t.grow((len(*content) - before) * 4 / 3)
		}
		c.last = now
		return now
	}

	more, n := binary.Varint(c.left)
	if n <= 0 {
		t.stray("it read a clock more often")
		return now
	}
	c.left = c.left[n:]
	c.last += more
	return c.last
}

// answer records the answer to a request, or returns the recorded one.
func (t *Tape) answer(request []byte, handle func() Reply) Reply {
	sum := sha256.Sum256(request)
	if t.isReplay {
		return t.repeat(sum[:requestSum])
	}

	reply := handle()
	const overhead = 64
	if t.why == "" && t.grow(overhead+len(reply.Data)*4/3) {
		t.content.Answers = append(t.content.Answers, tapedAnswer{
			Request: sum[:requestSum], Data: reply.Data, Failed: reply.Failed, ASCII: reply.ASCII,
		})
	}
	return reply
}

func (t *Tape) repeat(request []byte) Reply {
	if t.strayed != "" || len(t.left) == 0 || !bytes.Equal(t.left[0].Request, request) {
		t.stray("it asked its host for something else")
		return fail(errors.New("this call was not made in the first run"))
	}
	next := t.left[0]
	t.left = t.left[1:]
	return Reply{Data: next.Data, Failed: next.Failed, ASCII: next.ASCII}
}

// takeCalls records the calls of a snippet that a History has added, or compares them with the
// recorded ones.
func (t *Tape) takeCalls(p *Past, r *replay) {
	switch {
	case t == nil:
	case t.isReplay && r.strayed:
		t.stray("it made another call")
	case t.isReplay && r.countLeft() > 0:
		t.stray("it made fewer calls")
	case t.isReplay:
	case p.Language == tiers.Go:
		t.Refuse("the order of goroutines and maps in Go may be different")
	case p.Changed != "":
		t.Refuse(p.Changed)
	default:
		for _, c := range p.Calls {
			t.grow(int(c.size()) * 4 / 3)
		}
		if t.content.Calls = p.Calls; t.why != "" {
			t.content.Calls = nil
		}
	}
}

// isTaped reports whether the answer to an operation depends on anything outside the session.
func isTaped(operation byte) bool {
	switch operation {
	case 'c', 's', 'w', 'x', 'z':
		return true
	}
	return false
}

// UseTape makes the accounts use a tape until the guest's run ends; nil ends the use.
func (a *Accounts) UseTape(t *Tape) {
	t.Begin()
	a.tape = t
}

// Tape returns the tape in use, or nil if there is none.
func (a *Accounts) Tape() *Tape { return a.tape }
