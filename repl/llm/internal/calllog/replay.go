package calllog

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"

	"github.com/rlmhq/rlm/internal/keep/trajectory"
	"github.com/rlmhq/rlm/repl/internal/usage"
	"github.com/rlmhq/rlm/repl/llm"
	"github.com/rlmhq/rlm/repl/llm/internal/kind"
)

// Replay answers requests from a call log. It is safe for concurrent use.
type Replay struct {
	mu    sync.Mutex
	calls map[string][]call    // by hash, in the order of the call log
	facts map[string]llm.Facts // by provider/model, does not change after Parse
}

// call is the outcome of a recorded call: a response or an error.
type call struct {
	response *response
	failed   *llm.Error
}

// Load reads a call log to replay. The error is of the kind "bad file" and names the line. A run
// log is treated as a call log without calls, because the run itself answers its calls, by
// position.
func Load(path string) (*Replay, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, badFile(path, err)
	}
	defer file.Close()

	lines := bufio.NewReader(file)
	if begin, _ := lines.Peek(16); trajectory.IsRunLog(begin) {
		return &Replay{}, nil
	}
	replay, err := Parse(lines)
	if err != nil {
		return nil, badFile(path, err)
	}
	return replay, nil
}

// Parse reads a call log. It ignores an unfinished last line.
func Parse(r io.Reader) (*Replay, error) {
	replay := &Replay{calls: map[string][]call{}, facts: map[string]llm.Facts{}}
	if _, err := readLines(r, replay.add); err != nil {
		return nil, err
	}
	return replay, nil
}

// add processes a line.
func (p *Replay) add(line []byte) error {
	var e entry
	if err := decodeStrictly(line, &e); err != nil {
		return err
	}

	if e.Facts != nil {
		p.facts[e.Provider+"/"+e.Request.Model] = *e.Facts
		return nil
	}
	hash, err := hashRequest(e.Provider, e.Request)
	switch {
	case err != nil:
		return err
	case hash != e.Hash:
		return errors.New("the hash does not match the request")
	case (e.Response == nil) == (e.Error == nil):
		return errors.New("give either a response or an error")
	}

	ended := call{response: e.Response}
	if e.Error != nil {
		if ended.failed, err = e.Error.restore(); err != nil {
			return err
		}
	}
	p.calls[hash] = append(p.calls[hash], ended)
	return nil
}

// restore returns the error that was recorded.
func (f *failure) restore() (*llm.Error, error) {
	known, ok := kind.Find(f.Kind)
	if !ok {
		return nil, fmt.Errorf("unknown kind of error %q", f.Kind)
	}
	if f.Usage != (llm.Usage{}) && !usage.IsPlausible(f.Usage) {
		return nil, errors.New("the usage has negative or implausible numbers")
	}
	return &llm.Error{Kind: known, Status: f.Status, Message: f.Message, Usage: f.Usage}, nil
}

// Provider returns a provider that answers from the call log instead of the provider recorded
// under a name. Equal requests get their answers in the recorded order; a request without an
// answer fails with the kind "no reply on file".
func (p *Replay) Provider(name string) llm.Provider { return &player{replay: p, name: name} }

// player answers instead of one provider.
type player struct {
	replay *Replay
	name   string
}

// Facts returns the facts that the server reported when the call log was written: see [told.By].
func (p *player) Facts(model string) llm.Facts { return p.replay.facts[p.name+"/"+model] }

// Complete implements [llm.Provider].
func (p *player) Complete(
	ctx context.Context, r llm.Request, stream func(string),
) (llm.Response, error) {
	if err := context.Cause(ctx); err != nil {
		return llm.Response{}, err
	}

	ended, err := p.replay.take(p.name, r)
	if err != nil {
		err.Provider, err.Model = p.name, r.Model
		return llm.Response{}, err
	}
	if stream != nil && ended.Text != "" {
		stream(ended.Text)
	}
	return llm.Response{
		Text: ended.Text, Model: ended.Model, ID: ended.ID, Finish: ended.Finish,
		Structured: ended.Structured, Usage: ended.Usage,
	}, nil
}

// take returns the next recorded answer to a request.
func (p *Replay) take(provider string, r llm.Request) (*response, *llm.Error) {
	hash, err := hashRequest(provider, r)
	if err != nil {
		return nil, &llm.Error{Kind: kind.ErrBadRequest, Err: err}
	}

	p.mu.Lock()
	defer p.mu.Unlock()

	left := p.calls[hash]
	if len(left) == 0 {
		return nil, &llm.Error{Kind: kind.ErrNoReply, Message: fmt.Sprintf(
			"the record has no further answer to this request (%s): "+
				"the run differs from the recorded one", hash[:12])}
	}
	p.calls[hash] = left[1:]
	if failed := left[0].failed; failed != nil {
		again := *failed
		return nil, &again
	}
	return left[0].response, nil
}
