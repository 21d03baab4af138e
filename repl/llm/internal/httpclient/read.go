package httpclient

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/rlmhq/rlm/repl/llm"
	"github.com/rlmhq/rlm/repl/llm/internal/kind"
)

// ReadJSON decodes a body that holds one JSON value. It skips a byte order mark before the value,
// and lines of an event stream after it, which are comments and [LastEvent].
func ReadJSON(body io.Reader, into any) error {
	text, err := io.ReadAll(body)
	if err != nil {
		return err
	}

	text = bytes.TrimPrefix(bytes.TrimSpace(text), byteOrderMark)
	for {
		at := bytes.LastIndexByte(text, '\n') + 1
		if !isTrailer(text[at:]) {
			return Decode(text, into)
		}
		text = bytes.TrimSpace(text[:at])
	}
}

// isTrailer reports whether a line may follow a JSON value: it belongs to an event stream and has
// no data.
func isTrailer(line []byte) bool {
	return bytes.HasPrefix(line, []byte(":")) || bytes.HasPrefix(line, []byte("event:")) ||
		IsLast(string(bytes.TrimPrefix(line, []byte("data:"))))
}

// byteOrderMark is the mark that some servers write before UTF-8.
var byteOrderMark = []byte("\ufeff")

// Word is a name in a reply, such as its ID. Some servers send a number, which is kept as written;
// any other value is ignored, so that the reply does not fail.
type Word string

// UnmarshalJSON decodes a string or a number and ignores other values. It never fails.
func (w *Word) UnmarshalJSON(data []byte) error {
	*w = ""
	switch {
	case len(data) == 0:
	case data[0] == '"':
		return json.Unmarshal(data, (*string)(w))
	case data[0] == '-' || data[0] >= '0' && data[0] <= '9':
		*w = Word(data)
	}
	return nil
}

// Decode decodes one JSON value. A value that ends early is an error of the kind "reply cut off";
// any other mistake makes it malformed.
func Decode(text []byte, into any) error {
	err := json.Unmarshal(text, into)
	if err == nil {
		return nil
	}

	var syntax *json.SyntaxError
	if errors.As(err, &syntax) && syntax.Offset >= int64(len(text)) {
		return &llm.Error{Kind: kind.ErrCut, Err: err}
	}
	return &llm.Error{Kind: kind.ErrMalformed, Err: err}
}

// maxItems bounds the items of a list in a reply.
const maxItems = 10_000

// List is a list in a reply. It is decoded item by item up to a limit: an item such as "{}," has
// three bytes but takes a hundred bytes of memory.
type List[T any] []T

// UnmarshalJSON decodes a list, or null for an empty one.
func (l *List[T]) UnmarshalJSON(data []byte) error {
	*l = nil
	if string(data) == "null" {
		return nil
	}

	decoder := json.NewDecoder(bytes.NewReader(data))
	if begin, err := decoder.Token(); err != nil || begin != json.Delim('[') {
		return errors.Join(errors.New("expected a list"), err)
	}
	for decoder.More() {
		if len(*l) == maxItems {
			return fmt.Errorf("a list has more than %d items", maxItems)
		}
		var item T
		if err := decoder.Decode(&item); err != nil {
			return err
		}
		*l = append(*l, item)
	}
	return nil
}

// fetchTimeout bounds an attempt to fetch the server's description of itself.
const fetchTimeout = 30 * time.Second

// Fetch decodes the server's description of itself. Servers of other vendors might not support the
// request; then Fetch leaves into unchanged and returns no error. The call has a path, and a body
// if the server requires one.
func (c *Client) Fetch(ctx context.Context, call Call, into any) error {
	call.Method, call.Timeout = cmp.Or(call.Method, http.MethodGet), fetchTimeout
	call.Read = func(body io.Reader) error { return ReadJSON(body, into) }

	_, err := c.Do(ctx, call)
	var failure *llm.Error
	if errors.As(err, &failure) && isUnsupported(failure) {
		return nil
	}
	return err
}

// isUnsupported reports whether the server does not support a request.
func isUnsupported(failure *llm.Error) bool {
	return failure.Status == http.StatusMethodNotAllowed ||
		failure.Status == http.StatusNotFound && !errors.Is(failure, kind.ErrUnknownModel)
}
