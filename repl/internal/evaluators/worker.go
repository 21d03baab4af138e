package evaluators

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime/debug"

	"github.com/rlmhq/rlm/internal/snippet/frame"
	"github.com/rlmhq/rlm/internal/wall/jail"
)

// workerName is the worker's name in package jail.
const workerName = "jailed"

func init() { jail.Register(workerName, func(conn *os.File) int { return serve(conn) }) }

// The kinds of frames.
const (
	kindReady   = 'Y' // worker: empty
	kindRequest = 'Q' // host: a request
	kindReply   = 'A' // worker: a reply
)

// The tasks.
const (
	taskRender = "render"
	taskCheck  = "check"
	taskLua    = "lua"
	taskProlog = "prolog"
)

// request is the task of a worker.
type request struct {
	Task      string         `json:"task"`
	Source    string         `json:"source"`
	Texts     []string       `json:"texts"`
	Value     any            `json:"value"`
	Variables map[string]any `json:"variables"`
}

// reply is the outcome of a request: a value, mistakes, or the failure of the program.
type reply struct {
	Value    json.RawMessage `json:"value"`
	Mistakes []Mistake       `json:"mistakes"`
	Kind     Kind            `json:"kind"`
	Message  string          `json:"message"`
}

// Bounds inside the worker. They are narrower than the jail's, because their errors are more
// informative than the end of the process.
const (
	maxStack   = 64 << 20 // bytes of one goroutine's stack
	maxMessage = 2_000    // bytes
	maxNesting = 100      // levels of a result
	maxValues  = 200_000  // values in a result
)

// serve answers one request. It runs in the jail.
func serve(conn io.ReadWriter) int {
	debug.SetMaxStack(maxStack)
	out := frame.NewWriter(conn, maxRequest) // the host reports requests that are too large
	if out.Write(kindReady) != nil {
		return 1
	}
	kind, body, err := frame.NewReader(conn, maxRequest).Next()
	if err != nil || kind != kindRequest {
		return 1
	}

	answer, err := json.Marshal(answer(body))
	if err != nil || out.Write(kindReply, answer) != nil {
		return 1
	}
	return 0
}

// answer carries out a request.
func answer(body []byte) (r reply) {
	defer func() {
		if p := recover(); p != nil { // a program made its interpreter panic
			r = reply{Kind: Raised, Message: clip(fmt.Sprint(p))}
		}
	}()
	var q request
	decoder := json.NewDecoder(bytes.NewReader(body))
	decoder.UseNumber()
	if err := decoder.Decode(&q); err != nil {
		return reply{Kind: Raised, Message: clip(err.Error())}
	}

	var value any
	var err error
	switch q.Task {
	case taskCheck:
		return reply{Mistakes: checkTemplates(q.Texts)}
	case taskRender:
		value, err = renderAll(q.Value, q.Variables)
	case taskLua:
		value, err = runLua(q.Source, q.Variables)
	case taskProlog:
		value, err = runProlog(q.Source, q.Variables)
	default:
		err = fmt.Errorf("unknown task %q", q.Task)
	}

	var ended *ProgramError
	switch {
	case errors.As(err, &ended):
		return reply{Kind: ended.Kind, Message: clip(ended.Message)}
	case err != nil:
		return reply{Kind: Raised, Message: clip(err.Error())}
	}

	data, err := json.Marshal(value)
	if err != nil {
		return reply{Kind: Raised, Message: clip(err.Error())}
	}
	if len(data) > maxReply/2 { // this leaves room for the rest of the reply
		return reply{
			Kind:    Size,
			Message: fmt.Sprintf("the result has %d bytes, more than %d", len(data), maxReply/2),
		}
	}

	return reply{Value: data}
}

func clip(message string) string {
	if len(message) > maxMessage {
		return message[:maxMessage] + "…"
	}
	return message
}

// decodeValue decodes one JSON value strictly, with exact numbers.
func decodeValue(raw []byte) (any, error) {
	if len(raw) == 0 {
		return nil, nil //nolint:nilnil // no value is null
	}
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.UseNumber()
	var value any
	if err := decoder.Decode(&value); err != nil {
		return nil, err
	}
	if decoder.More() {
		return nil, errReply
	}

	return value, nil
}

// counter bounds the size of a program's result, because tables and terms can contain themselves.
type counter struct{ left int }

func (c *counter) take(depth int) error {
	if c.left--; c.left < 0 {
		return &ProgramError{Size, fmt.Sprintf("the result has more than %d values", maxValues)}
	}
	if depth > maxNesting {
		return &ProgramError{
			Size, fmt.Sprintf("the result is nested more than %d levels deep", maxNesting),
		}
	}

	return nil
}

// numberOf converts a JSON number to an integer if that is exact, else to a float.
func numberOf(n json.Number) any {
	if whole, err := n.Int64(); err == nil {
		return whole
	}
	f, err := n.Float64()
	if err != nil {
		return n.String() // too large for Lua and Prolog
	}

	return f
}
