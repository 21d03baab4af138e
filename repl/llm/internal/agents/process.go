package agents

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"sync"
	"time"

	"github.com/coder/acp-go-sdk"

	"github.com/rlmhq/rlm/internal/machine/procgroup"
	"github.com/rlmhq/rlm/repl/llm"
	"github.com/rlmhq/rlm/repl/llm/internal/kind"
	"github.com/rlmhq/rlm/repl/toolprogram"
)

// process is a running program.
type process struct {
	agent       *Agent
	cmd         *exec.Cmd
	folder      string // contains only the folders of sessions
	stdin       io.WriteCloser
	stdout      io.ReadCloser
	stderr      *toolprogram.Tail
	ended       chan struct{} // closed after the program has ended
	conn        *acp.ClientSideConnection
	takesImages bool
	mayClose    bool   // whether it can close sessions
	logins      string // the ways to log in, empty for none

	lines *bufio.Reader
	rest  []byte // of the line that the library is reading

	mu       sync.Mutex // guards the fields below
	sessions map[acp.SessionId]*session
	others   int
	failed   *llm.Error // the reason why its output is no longer read
}

// startProcess starts a program and agrees on the protocol with it.
func startProcess(ctx context.Context, a *Agent) (p *process, err error) {
	p = &process{
		agent: a, stderr: &toolprogram.Tail{}, ended: make(chan struct{}), sessions: map[acp.SessionId]*session{},
	}
	if p.folder, err = os.MkdirTemp("", "rlm-agent-"); err != nil {
		return nil, &llm.Error{Kind: kind.ErrMisconfigured, Provider: a.name, Model: a.command, Err: err}
	}
	if err := p.run(); err != nil {
		return nil, &llm.Error{
			Kind: kind.ErrMisconfigured, Provider: a.name, Model: a.command,
			Err: errors.Join(err, os.RemoveAll(p.folder)),
		}
	}

	begin, cancel := context.WithTimeoutCause(ctx, beginTime, a.fail(kind.ErrTimeout,
		fmt.Sprintf("the program has not answered within %v: does it speak the Agent Client Protocol?", beginTime)))
	defer cancel()
	err = p.call(begin, func() error {
		about, err := p.conn.Initialize(begin, acp.InitializeRequest{
			ProtocolVersion: acp.ProtocolVersionNumber, ClientInfo: &acp.Implementation{Name: "rlm", Version: "1"},
		})
		if err == nil && about.ProtocolVersion != acp.ProtocolVersionNumber {
			return a.fail(kind.ErrMisconfigured, fmt.Sprintf("the program speaks version %d of the protocol, not %d",
				about.ProtocolVersion, acp.ProtocolVersionNumber))
		}
		p.takesImages = about.AgentCapabilities.PromptCapabilities.Image
		p.logins = loginsOf(a.command, about.AuthMethods)
		p.mayClose = about.AgentCapabilities.SessionCapabilities.Close != nil
		return err
	})
	if err != nil {
		_ = p.close() // err has the reason
		var known *llm.Error
		if errors.As(err, &known) {
			return nil, err
		}
		return nil, a.explain(begin, p, err)
	}

	return p, nil
}

// run starts the program and the connection.
func (p *process) run() (err error) {
	words := p.agent.words
	p.cmd = exec.Command(words[0], words[1:]...) //nolint:gosec,noctx // the user's own program; close ends it
	p.cmd.Dir, p.cmd.Stderr, p.cmd.WaitDelay = p.folder, p.stderr, endTime
	procgroup.Lead(p.cmd)

	if p.stdin, err = p.cmd.StdinPipe(); err != nil {
		return err
	}
	stdout, writer, err := os.Pipe() // Wait does not close it, so the last reply can be read
	if err != nil {
		return err
	}

	p.stdout, p.cmd.Stdout = stdout, writer
	if err := p.cmd.Start(); err != nil {
		return errors.Join(err, stdout.Close(), writer.Close())
	}

	_ = writer.Close() // the program has its own copy
	go func() {
		defer close(p.ended)
		_ = p.cmd.Wait()
	}()

	p.lines = bufio.NewReader(stdout)
	p.conn = acp.NewClientSideConnection(refusals{}, p.stdin, p)
	p.conn.SetLogger(slog.New(slog.DiscardHandler))
	return nil
}

// isUsable reports whether the program still answers.
func (p *process) isUsable() bool {
	select {
	case <-p.conn.Done():
		return false
	case <-p.ended:
		return false
	default:
		return p.failure() == nil
	}
}

// call runs a request. A program that does not read it is killed soon after the context ends.
func (p *process) call(ctx context.Context, request func() error) error {
	returned := make(chan struct{})
	defer close(returned)
	defer context.AfterFunc(ctx, func() {
		late := time.NewTimer(endTime)
		defer late.Stop()
		select {
		case <-returned:
		case <-late.C:
			procgroup.Kill(p.cmd)
		}
	})()

	return request()
}

// close ends the program with its children, and removes its folder.
func (p *process) close() error {
	_ = p.stdin.Close()
	late := time.NewTimer(endTime)
	defer late.Stop()
	select {
	case <-p.ended:
	case <-late.C:
	}

	procgroup.Kill(p.cmd)
	<-p.ended
	_ = p.stdout.Close()
	<-p.conn.Done()
	return os.RemoveAll(p.folder)
}

// describeEnd describes how the program ended, with its last output to stderr, which may arrive
// after the connection has ended.
func (p *process) describeEnd() string {
	late := time.NewTimer(endTime)
	defer late.Stop()
	select {
	case <-p.ended:
	case <-late.C:
	}

	text := "the program has ended the connection"
	if last := p.stderr.String(); last != "" {
		text += "; the end of its stderr: " + last
	}
	return text
}

// failure returns the reason why the program's output is no longer read, or nil if it is still
// read.
func (p *process) failure() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.failed == nil {
		return nil
	}

	return p.failed
}

// fail ends the connection.
func (p *process) fail(kind kind.Error, format string, args ...any) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.failed == nil {
		p.failed = p.agent.fail(kind, fmt.Sprintf(format, args...))
	}

	return p.failed
}

// Read implements [io.Reader] for the library. It removes the updates of sessions, because the
// library queues them and ends the connection if the queue overflows.
func (p *process) Read(b []byte) (int, error) {
	for len(p.rest) == 0 {
		line, err := p.readLine()
		if err != nil {
			return 0, err
		}
		if err := p.receive(line); err != nil {
			return 0, err
		}
	}
	n := copy(b, p.rest)
	p.rest = p.rest[n:]
	return n, nil
}

// readLine returns a line, including its line end.
func (p *process) readLine() ([]byte, error) {
	var line []byte
	for {
		part, err := p.lines.ReadSlice('\n')
		line = append(line, part...)
		switch {
		case len(line) > maxLine:
			return nil, p.fail(kind.ErrTooLarge, "a message has more than %d MiB", maxLine>>20)
		case !errors.Is(err, bufio.ErrBufferFull):
			return line, err
		}
	}
}

// receive handles a line: it passes text to its session, leaves messages for the library in rest,
// and skips a line that is not a message.
func (p *process) receive(line []byte) error {
	var message struct {
		Method string          `json:"method"`
		Result json.RawMessage `json:"result"`
		Params json.RawMessage `json:"params"`
	}
	isMessage := bytes.HasPrefix(bytes.TrimSpace(line), []byte("{")) && json.Unmarshal(line, &message) == nil
	if isMessage && message.Method == acp.ClientMethodSessionUpdate {
		return p.update(message.Params)
	}

	if message.Result == nil {
		p.mu.Lock()
		p.others++
		isFlood := p.others > maxOthers
		p.mu.Unlock()
		if isFlood {
			return p.fail(kind.ErrMalformed, "the program writes more than %d messages that are no replies", maxOthers)
		}
	}

	if isMessage {
		p.rest = line
	}

	return nil
}

// update passes the text of an update to its session.
func (p *process) update(params json.RawMessage) error {
	var update struct {
		SessionID acp.SessionId `json:"sessionId"`
		Update    struct {
			Kind    string          `json:"sessionUpdate"`
			Content json.RawMessage `json:"content"`
		} `json:"update"`
	}
	if err := json.Unmarshal(params, &update); err != nil {
		return p.fail(kind.ErrMalformed, "an update of a session is malformed: %v", err)
	}
	if update.Update.Kind != "agent_message_chunk" {
		return nil // an update about thoughts, tools or plans
	}

	var content struct {
		Type string  `json:"type"`
		Text *string `json:"text"`
	}
	err := json.Unmarshal(update.Update.Content, &content)
	if err != nil || content.Type == "text" && content.Text == nil {
		return p.fail(kind.ErrMalformed, "a part of a reply is malformed: %.100q", update.Update.Content)
	}

	p.mu.Lock()
	s := p.sessions[update.SessionID]
	p.mu.Unlock()
	if s != nil {
		s.receive(content.Type, content.Text)
	}

	return nil
}
