package httpclient

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"

	sse "github.com/tmaxmax/go-sse"

	"github.com/rlmhq/rlm/repl/llm"
)

// ReadJSON decodes the one JSON value that a body is. The body is bounded by
// its client.
func ReadJSON(body io.Reader, into any) error {
	text, err := io.ReadAll(body)
	if err != nil {
		return err
	}
	return Decode(text, into)
}

// Decode decodes one JSON value. A value that ends in its middle was cut off,
// anything else that is wrong is malformed.
func Decode(text []byte, into any) error {
	err := json.Unmarshal(text, into)
	var syntax *json.SyntaxError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &syntax) && syntax.Offset >= int64(len(text)):
		return &llm.Error{Kind: llm.ErrCut, Err: err}
	}
	return &llm.Error{Kind: llm.ErrMalformed, Err: err}
}

// maxItems bounds the items of a list in a reply.
const maxItems = 10_000

// List is a list in a reply. It is decoded item by item, up to a bound: "{}," is three
// bytes, and what it stands for in memory a hundred.
type List[T any] []T

// UnmarshalJSON decodes a list, or null for none.
func (l *List[T]) UnmarshalJSON(data []byte) error {
	*l = nil
	if string(data) == "null" {
		return nil
	}
	decoder := json.NewDecoder(bytes.NewReader(data))
	if begin, err := decoder.Token(); err != nil || begin != json.Delim('[') {
		return errors.Join(errors.New("there should be a list"), err)
	}
	for decoder.More() {
		var item T
		if len(*l) == maxItems {
			return fmt.Errorf("a list has more than %d items", maxItems)
		}
		if err := decoder.Decode(&item); err != nil {
			return err
		}
		*l = append(*l, item)
	}
	return nil
}

// ErrDone is returned by a reader of events that wants no more of them.
var ErrDone = errors.New("done")

// maxEvent bounds one event of a stream.
const maxEvent = 1 << 20

// ReadEvents hands each event of a stream to a function, until that returns an
// error or the body ends. [ErrDone] ends it well.
func ReadEvents(body io.Reader, each func(kind, data string) error) error {
	for event, err := range sse.Read(body, &sse.ReadConfig{MaxEventSize: maxEvent}) {
		switch {
		case errors.Is(err, sse.ErrUnexpectedEOF):
			return &llm.Error{Kind: llm.ErrCut, Err: err}
		case err != nil:
			return &llm.Error{Kind: llm.ErrMalformed, Err: err}
		}
		switch err := each(event.Type, event.Data); {
		case errors.Is(err, ErrDone):
			return nil
		case err != nil:
			return err
		}
	}
	return nil
}

// Ask fetches what the server says about itself, once. A server that does not
// know the question is not at fault: into stays as it is.
func (c *Client) Ask(ctx context.Context, path, model string, into any) error {
	call := Call{Method: http.MethodGet, Path: path, Model: model, Read: func(body io.Reader) error { return ReadJSON(body, into) }}
	hint, err := c.send(ctx, call)
	failure, _ := c.failed(err, call, hint)
	if failure == nil {
		return err
	}
	failure.Attempts = 1
	if failure.Status == http.StatusNotFound && failure.Kind != llm.ErrUnknownModel || failure.Status == http.StatusMethodNotAllowed {
		return nil //nolint:nilerr // it is another server than the vendor's, and cannot be asked this
	}
	return failure
}

// Partial adds to the error of a stream what its part of a reply used.
func Partial(err error, r llm.Request, text string) error {
	var failure *llm.Error
	if text != "" && errors.As(err, &failure) {
		failure.Usage = llm.EstimateUsage(r, text)
	}
	return err
}

// maxName bounds the names that a server gives.
const maxName = 200

// Finished completes a response: the usage, if what the server says can be
// true, with what failed attempts used, and names in bounds.
func Finished(out llm.Response, used llm.Usage, r llm.Request, outcome Outcome) llm.Response {
	out = out.Filled(r)
	out.Usage = used.Or(r, out.Text).Add(outcome.Wasted)
	out.Model = out.Model[:min(len(out.Model), maxName)]
	out.Finish = out.Finish[:min(len(out.Finish), maxName)]
	return out
}
