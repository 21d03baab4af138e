package calls

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/rlmhq/rlm/internal/keep/runlog"
	"github.com/rlmhq/rlm/internal/keep/store"
	"github.com/rlmhq/rlm/internal/text/texts"
	"github.com/rlmhq/rlm/repl/ledger"
	"github.com/rlmhq/rlm/repl/llm"
)

// ending is the outcome of a call, as stored in the run log.
type ending struct {
	Room     room            `json:"room"`
	Used     ledger.Spending `json:"used"`
	Response llm.Response    `json:"response"`
	// Failed is an error of a model's server, Error any other error.
	Failed *failure `json:"failed,omitempty"`
	Error  string   `json:"error,omitempty"`
}

// failure is an [llm.Error].
type failure struct {
	Kind     string    `json:"kind"`
	Provider string    `json:"provider,omitempty"`
	Model    string    `json:"model,omitempty"`
	Status   int       `json:"status,omitempty"`
	Message  string    `json:"message,omitempty"`
	Attempts int       `json:"attempts,omitempty"`
	Usage    llm.Usage `json:"usage"`
	Cause    string    `json:"cause,omitempty"`
}

// describe identifies an ask in the run log, by everything that affects its answer except the
// tokens that remain for the reply.
func (a *Ask) describe() runlog.Request {
	var contract json.RawMessage
	if a.Schema != nil {
		contract = a.Schema.JSONSchema()
	}
	whole, err := json.Marshal(struct {
		Model       string
		Messages    []llm.Message
		Schema      json.RawMessage
		MaxTokens   int
		Temperature *float64
	}{a.Model, a.Messages, contract, a.MaxTokens, a.Temperature})
	if err != nil {
		whole = fmt.Append(nil, a.Model, a.Messages) // the temperature is NaN or infinite
	}
	sum := sha256.Sum256(whole)
	return runlog.Request{
		What: a.Purpose, Digest: hex.EncodeToString(sum[:]), About: a.Model + ": " + findLastUser(a.Messages),
	}
}

// keep writes the ending of a call to the run log before it takes effect. It stores no ending for
// an interrupted call or for a failure that ends the run, so that a later process makes the call
// again. Other failures are stored, because code received them and continued.
func (a *Ask) keep(ctx context.Context, step *runlog.Step, e ending, err error) error {
	cost := store.Cost{
		Calls: e.Used.Calls, InputTokens: e.Used.InputTokens, OutputTokens: e.Used.OutputTokens,
		USD: e.Used.USD, Unpriced: e.Used.Unpriced, ToolCalls: e.Used.ToolCalls,
	}
	var failed *llm.Error
	switch endsRun := a.Depth == 0 && !a.Sub; {
	case err != nil && (ctx.Err() != nil || endsRun):
		step.Drop(cost)
		return nil //nolint:nilerr // the caller has the error
	case errors.As(err, &failed):
		e.Failed = &failure{
			Provider: failed.Provider, Model: failed.Model, Status: failed.Status,
			Message: failed.Message, Attempts: failed.Attempts, Usage: failed.Usage,
		}
		if failed.Kind != nil {
			e.Failed.Kind = failed.Kind.Error()
		}
		if failed.Err != nil {
			e.Failed.Cause = failed.Err.Error()
		}
	case err != nil:
		e.Error = err.Error()
	}
	return step.End(ctx, e, cost)
}

// repeat returns the outcome that a call had in an earlier process. It costs nothing again.
func (c *Caller) repeat(ctx context.Context, a Ask, kept json.RawMessage) (llm.Response, room, error) {
	e, err := decodeEnding(kept)
	if err != nil {
		return llm.Response{}, room{}, fmt.Errorf("cannot read the run log: %w", err)
	}
	err = e.err()
	c.Ledger.Book(e.Used)
	if a.Stream != nil && e.Response.Text != "" {
		a.Stream(e.Response.Text)
	}

	answered := e.Response // observers may keep it
	c.report(ctx, a, ledger.Event{Used: &e.Used, Response: &answered, Err: err})
	e.Response.Text = texts.DropThoughts(e.Response.Text)
	return e.Response, e.Room, err
}

// decodeEnding decodes an ending strictly. A replayed run log may be from anywhere and must not
// enlarge the budget.
func decodeEnding(kept []byte) (e ending, err error) {
	decoder := json.NewDecoder(bytes.NewReader(kept))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&e); err != nil {
		return ending{}, err
	}
	switch {
	case decoder.More():
		return ending{}, errors.New("an ending has more than one value")
	case !IsPlausible(e.Used) || e.Room.Tokens < 0:
		return ending{}, fmt.Errorf("a call cannot have used %+v with room for %d tokens", e.Used, e.Room.Tokens)
	}
	return e, nil
}

// IsPlausible reports whether a single call of a model or a tool can have used this much.
func IsPlausible(used ledger.Spending) bool {
	for _, n := range []int64{used.Calls, used.InputTokens, used.OutputTokens, used.Unpriced, used.ToolCalls} {
		if n < 0 || n > mostUsed {
			return false
		}
	}
	return used.USD >= 0 && used.USD <= mostUsed
}

// mostUsed exceeds any quantity that a call uses.
const mostUsed = 1 << 32

// err returns the error of a call, or nil if it received a reply.
func (e *ending) err() error {
	switch {
	case e.Failed != nil:
		return e.Failed.restore()
	case e.Error != "":
		return errors.New(e.Error)
	}
	return nil
}

// restore returns the original error of the call. Callers test for the kinds that package llm
// exports; for other kinds, only the message is kept.
func (f *failure) restore() error {
	err := &llm.Error{
		Kind: errors.New(f.Kind), Provider: f.Provider, Model: f.Model, Status: f.Status,
		Message: f.Message, Attempts: f.Attempts, Usage: f.Usage,
	}
	for _, known := range []error{llm.ErrContextLength, llm.ErrRateLimited, llm.ErrServer} {
		if known.Error() == f.Kind {
			err.Kind = known
		}
	}
	if f.Cause != "" {
		err.Err = errors.New(f.Cause)
	}
	return err
}
