package session

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"time"

	"github.com/rlmhq/rlm/internal/snippet/frame"
	"github.com/rlmhq/rlm/internal/snippet/hostcall"
	"github.com/rlmhq/rlm/internal/snippet/session/wire"
	"github.com/rlmhq/rlm/tiers"
)

// Past is a snippet whose effects are in a guest's namespace.
type Past struct {
	Ordinal  int
	Language tiers.Language
	Source   string
	Calls    []AnsweredCall
	// Changed explains why the snippet may have other results when repeated, or is empty if the
	// results should be the same.
	Changed string

	outcome [sha256.Size]byte
	isKnown bool // the outcome is known, because the snippet has run here
	took    time.Duration
}

// History is the history of a session whose guest returns to a state by repeating snippets, with
// the host's earlier answers. Host functions are not called again.
type History struct {
	// Canonical, if set, removes from a snippet's output and calls the parts that may differ when
	// the same snippet is repeated.
	Canonical func([]byte) []byte

	accounts *Accounts
	past     []Past
	kept     int64 // bytes of the answers to all calls
	tape     *Tape // of the snippet that runs; may be nil
}

// NewHistory returns an empty history.
func NewHistory(a *Accounts) *History { return &History{accounts: a} }

// Past returns the snippets, in order. The history owns the slice.
func (h *History) Past() []Past { return h.past }

// Forget removes all snippets from the history.
func (h *History) Forget() { h.past, h.kept = nil, 0 }

// Record makes the accounts record the host calls of the snippet that has just begun. A tape, which
// may be nil, records the calls as well, or provides the answers.
func (h *History) Record(t *Tape) {
	t.Begin()
	h.tape = t
	r := &replay{canonical: h.canonical}
	if t != nil && t.isReplay {
		r = newReplay(t.content.Calls, h.canonical)
	}
	r.kept = h.kept
	h.accounts.calls.replay = r
}

func (h *History) canonical(text []byte) []byte {
	if h.Canonical == nil {
		return text
	}
	return h.Canonical(text)
}

// Add adds the snippet whose accounts have just been closed. verdict identifies how the snippet
// ended: see Accounts.Verdict.
func (h *History) Add(p Past, verdict string) {
	a := h.accounts
	p.Calls, h.kept = a.calls.replay.made, a.calls.replay.kept
	p.outcome, p.isKnown = a.output.digest(verdict, h.canonical), true
	p.took = a.meter.own

	h.tape.takeCalls(&p, a.calls.replay)
	h.past = append(h.past, p)
}

// replaySlack is the time that a repeated snippet may take in addition to three times its first
// duration.
const replaySlack = 10 * time.Second

// RunAgain repeats snippet i of the history. run runs it in the guest and returns its verdict.
// isSame reports whether the snippet did the same as before, and ended whether it ended by itself.
func (h *History) RunAgain(
	ctx context.Context, i int, run func(p *Past) (verdict string, ended bool),
) (isSame, ended bool) {
	p, a := &h.past[i], h.accounts
	limits := a.cfg.Limits
	if p.isKnown {
		limits.Wall = 3*p.took + replaySlack
		limits.Active = limits.Wall
	}

	a.language = p.Language
	a.reset(ctx, limits)
	a.calls.replay = newReplay(p.Calls, h.canonical)
	verdict, ended := run(p)
	took := a.meter.wall()
	a.endCalls()

	if !ended {
		return false, false
	}
	outcome := a.output.digest(verdict, h.canonical)
	if !p.isKnown {
		p.outcome, p.isKnown, p.took = outcome, true, took
	}
	return outcome == p.outcome && !a.calls.replay.strayed, true
}

// snippetRecord is one snippet of a state in format replay.
type snippetRecord struct {
	Source string         `json:"source"`
	Calls  []AnsweredCall `json:"calls"`
}

// MarshalJSON encodes a snippet without calls as a string, as [FormatReplay] describes.
func (s snippetRecord) MarshalJSON() ([]byte, error) {
	if len(s.Calls) == 0 {
		return json.Marshal(s.Source)
	}
	type plain snippetRecord
	return json.Marshal(plain(s))
}

// UnmarshalJSON decodes either form.
func (s *snippetRecord) UnmarshalJSON(data []byte) error {
	if bytes.HasPrefix(data, []byte(`"`)) {
		return json.Unmarshal(data, &s.Source)
	}
	type plain snippetRecord
	return frame.DecodeJSON(data, (*plain)(s))
}

// Export returns the snippets of one language as a state.
func (h *History) Export(tier string, language tiers.Language) (tiers.State, error) {
	state := tiers.State{
		Language: language, Format: FormatReplay, From: tier, Snippet: h.accounts.ordinal,
	}
	snippets := []snippetRecord{}
	for _, p := range h.past {
		switch {
		case p.Language != language:
			state.Left = append(state.Left, p.left("it is in another language"))
			continue
		case p.Changed != "":
			state.Left = append(state.Left, p.left(p.Changed))
		}
		snippets = append(snippets, snippetRecord{p.Source, p.Calls})
	}

	var err error
	state.Data, err = json.Marshal(snippets)
	return state, err
}

func (p *Past) left(reason string) tiers.Left {
	return tiers.Left{
		Name: fmt.Sprintf("snippet %d", p.Ordinal), Type: string(p.Language), Reason: reason,
	}
}

// Bounds of a state in format replay.
const (
	maxReplayState    = 64 << 20 // bytes
	maxReplaySnippets = 10_000
)

// Adopt fills an empty history with the snippets of a state. These snippets have not run here yet:
// see RunAgain.
func (h *History) Adopt(state tiers.State) error {
	if err := checkReplay(state.Data); err != nil {
		return err
	}
	var snippets []snippetRecord
	if err := frame.DecodeJSON(state.Data, &snippets); err != nil {
		return err
	}

	for i, s := range snippets {
		past := Past{Ordinal: i + 1, Language: state.Language, Source: s.Source, Calls: s.Calls}
		h.past = append(h.past, past)
		for _, c := range s.Calls {
			h.kept += c.size()
		}
	}
	return nil
}

// checkReplay checks the bounds of a state in format replay before it is decoded.
func checkReplay(data []byte) error {
	if len(data) > maxReplayState {
		return fmt.Errorf("it is longer than %d bytes", maxReplayState)
	}
	if hostcall.CountValues(data, 1) > maxReplaySnippets+1 {
		return fmt.Errorf("it has more than %d snippets", maxReplaySnippets)
	}
	return nil
}

// verdicts maps package wire's codes to their names in the digest of a snippet.
var verdicts = map[int]string{
	wire.CodeOK: "ok", wire.CodeRaised: "raised", wire.CodeExited: "exited",
}

// Verdict returns a string that identifies how a snippet ended, for Add and RunAgain: its code, and
// the message of its exception. The string is empty if the snippet did not end in order.
func (a *Accounts) Verdict(code int) string {
	name, known := verdicts[code]
	if !known {
		return ""
	}
	if a.raised != nil {
		name += a.raised.Message
	}
	return name
}

// LastVerdict returns the Verdict on the snippet whose accounts were closed last.
func (a *Accounts) LastVerdict() string { return a.verdict }
