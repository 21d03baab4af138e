package record

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"

	"github.com/rlmhq/rlm/repl/llm"
)

// Replay is a record that is played again. It is safe for concurrent use.
type Replay struct {
	mu    sync.Mutex
	calls map[string][]call // by hash, in the order of the record
}

// call is how a recorded call ended.
type call struct {
	response *response
	failure  *failure
}

// Load reads a record to play. The error is of kind [llm.ErrBadFile] and names the line.
func Load(path string) (*Replay, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, badFile(path, err)
	}
	defer file.Close()
	replay, err := Parse(file)
	if err != nil {
		return nil, badFile(path, err)
	}
	return replay, nil
}

// Parse reads a record. A last line that was not finished is ignored.
func Parse(r io.Reader) (*Replay, error) {
	replay := &Replay{calls: map[string][]call{}}
	if _, err := readLines(r, replay.add); err != nil {
		return nil, err
	}
	return replay, nil
}

// add takes in a line.
func (p *Replay) add(_ int, line []byte) error {
	var e entry
	if err := strict(line, &e); err != nil {
		return err
	}
	switch name, err := hash(e.Provider, e.Request); {
	case err != nil:
		return err
	case name != e.Hash:
		return errors.New("the hash is not that of the request")
	case (e.Response == nil) == (e.Error == nil):
		return errors.New("it needs a response or an error")
	case e.Error != nil && !e.Error.Kind.Known():
		return fmt.Errorf("there is no kind of error %q", string(e.Error.Kind))
	case e.Error != nil && e.Error.Usage != (llm.Usage{}) && !e.Error.Usage.Plausible():
		return errors.New("its usage cannot be")
	}
	p.calls[e.Hash] = append(p.calls[e.Hash], call{response: e.Response, failure: e.Error})
	return nil
}

// Provider returns what answers, from the record, in place of the provider
// that was called name. Equal requests get the recorded answers one after the
// other; one more than was recorded fails with [llm.ErrNoReply].
func (p *Replay) Provider(name string) llm.Provider { return &player{replay: p, name: name} }

// player answers in place of one provider.
type player struct {
	replay *Replay
	name   string
}

// Complete implements [llm.Provider].
func (p *player) Complete(ctx context.Context, r llm.Request, stream func(string)) (llm.Response, error) {
	if err := context.Cause(ctx); err != nil {
		return llm.Response{}, err
	}
	name, err := hash(p.name, r)
	if err != nil {
		return llm.Response{}, &llm.Error{Kind: llm.ErrBadRequest, Provider: p.name, Model: r.Model, Err: err}
	}
	c, ok := p.replay.take(name)
	switch {
	case !ok:
		return llm.Response{}, &llm.Error{
			Kind: llm.ErrNoReply, Provider: p.name, Model: r.Model,
			Message: "the record has no further answer to this request (" + name[:12] + "): the run takes another course than the recorded one",
		}
	case c.failure != nil:
		f := c.failure
		return llm.Response{}, &llm.Error{Kind: f.Kind, Provider: p.name, Model: r.Model, Status: f.Status, Message: f.Message, Usage: f.Usage}
	}
	out := c.response
	if stream != nil && out.Text != "" {
		stream(out.Text)
	}
	return llm.Response{Text: out.Text, Model: out.Model, Finish: out.Finish, Structured: out.Structured, Usage: out.Usage}, nil
}

// take returns the next recorded answer to a request.
func (p *Replay) take(name string) (call, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	left := p.calls[name]
	if len(left) == 0 {
		return call{}, false
	}
	p.calls[name] = left[1:]
	return left[0], true
}

// lineReader reads finished lines of bounded length.
type lineReader struct{ r *bufio.Reader }

// newLineReader returns a reader of lines.
func newLineReader(r io.Reader) *lineReader { return &lineReader{r: bufio.NewReaderSize(r, 64<<10)} }

// next returns the next finished line without its end, or io.EOF.
func (l *lineReader) next() ([]byte, error) {
	var line []byte
	for {
		part, err := l.r.ReadSlice('\n')
		line = append(line, part...)
		switch {
		case len(line) > maxLine:
			return nil, fmt.Errorf("it has more than %d bytes", maxLine)
		case err == nil:
			return line[:len(line)-1], nil
		case !errors.Is(err, bufio.ErrBufferFull):
			return nil, err
		}
	}
}
