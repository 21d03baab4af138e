package tools

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync/atomic"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// maxAnswers is the maximum number of answers that wait until a server accepts them. The library
// answers each request of a server in a goroutine, so a server that sends requests without
// accepting answers would fill the memory.
const maxAnswers = 100

// answers counts the waiting answers.
type answers struct{ waiting atomic.Int64 }

var errNotTaken = errors.New("the server asks without taking the answers")

// begin counts an answer. The caller calls end once it has been sent.
func (a *answers) begin() error {
	if a.waiting.Add(1) > maxAnswers {
		a.waiting.Add(-1)
		return errNotTaken
	}
	return nil
}

func (a *answers) end() { a.waiting.Add(-1) }

// isAnswer reports whether an HTTP request contains an answer to a request of the server.
func isAnswer(req *http.Request) bool {
	if req.Method != http.MethodPost || req.GetBody == nil {
		return false
	}
	body, err := req.GetBody()
	if err != nil {
		return false
	}

	// The library writes the method after the ID, which is a number for its own requests. In a
	// server's ID, the quotes would be escaped.
	begin, _ := io.ReadAll(io.LimitReader(body, 200))
	_ = body.Close() // the body is in memory
	return !bytes.Contains(begin, []byte(`"method":`))
}

// patientTransport ends a connection whose server sends requests without accepting the answers.
type patientTransport struct {
	mcp.Transport

	process *process
	asked   *requests
}

// Connect implements [mcp.Transport].
func (t *patientTransport) Connect(ctx context.Context) (mcp.Connection, error) {
	c, err := t.Transport.Connect(ctx)
	if err != nil {
		return nil, err
	}
	return &patientConn{Connection: c, process: t.process, asked: t.asked}, nil
}

type patientConn struct {
	mcp.Connection

	process *process
	asked   *requests
	answers answers
}

// Read implements [mcp.Connection].
func (c *patientConn) Read(ctx context.Context) (jsonrpc.Message, error) {
	message, err := c.Connection.Read(ctx)
	if response, ok := message.(*jsonrpc.Response); ok && err == nil {
		c.asked.open.Delete(fmt.Sprint(response.ID.Raw()))
	}
	return message, err
}

// Write implements [mcp.Connection].
func (c *patientConn) Write(ctx context.Context, message jsonrpc.Message) error {
	if _, ok := message.(*jsonrpc.Response); ok {
		if err := c.answers.begin(); err != nil {
			c.process.stdout.failed.CompareAndSwap(nil, &err)
			_ = c.process.stdin.Close() // which ends the waiting answers
			return err
		}
		defer c.answers.end()
	}
	if request, ok := message.(*jsonrpc.Request); ok && request.IsCall() {
		c.asked.open.Store(fmt.Sprint(request.ID.Raw()), true)
	}
	return c.Connection.Write(ctx, message)
}
