package tools

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/rlmhq/rlm/internal/machine/procgroup"
	"github.com/rlmhq/rlm/repl/toolprogram"
)

// Limits on a server.
const (
	maxMessage = 16 << 20 // bytes
	maxTools   = 2_000

	beginTime = time.Minute // until the list of tools; npx and uvx may first download the server
	probeTime = 3 * time.Second
	endTime   = 2 * time.Second
)

// server is a server to which rlm is connected.
type server struct {
	name    string // the name of the server's class
	given   string // the name in the file
	title   string // the server's own description
	session *mcp.ClientSession
	process *process // nil if it is reached over HTTP
	web     *headers // nil if it is a program
	tools   []*tool
	heard   heard
	warn    func(text string) // may be nil
}

// connect starts or connects to a server and reads its tools. A slow server of the newest protocol
// may receive the library's probe too late, and then refuse the older handshake. Such a server is
// started again, with more time.
func connect(ctx context.Context, given string, c config, o *Options) (s *server, err error) {
	p := &probe{limit: probeTime}
	s, err = p.connect(ctx, given, c, o)
	if refusal := (*jsonrpc.Error)(nil); p.isLate.Load() && errors.As(err, &refusal) {
		p.limit = beginTime
		return p.connect(ctx, given, c, o)
	}
	return s, err
}

// probe is the request with which the library checks for the newest protocol. Many servers ignore
// unknown methods, so after the limit the library begins as with an older server.
type probe struct {
	limit  time.Duration
	isLate atomic.Bool // there was no answer within the limit
}

// connect makes one attempt to connect.
func (p *probe) connect(ctx context.Context, given string, c config, o *Options) (s *server, err error) {
	s = &server{given: given, warn: o.Warn}
	defer func() {
		if err != nil {
			err = fmt.Errorf("cannot use the MCP server %q: %w", given, s.explain(err))
			s.close()
		}
	}()

	var transport mcp.Transport
	if c.Command == "" {
		s.web = newHeaders(c.Headers)
		transport = httpTransport(c.URL, s.web)
	} else {
		if s.process, err = startProcess(c); err != nil {
			return s, err
		}
		messages := newMessages(s.process.stdout, s.warnOfNoise(o.Warn))
		transport = &patientTransport{&mcp.IOTransport{
			Reader: messages, Writer: s.process.stdin, MaxLineLength: -1, // stdout is bounded
		}, s.process, &messages.asked}
	}

	begin, cancel := context.WithTimeoutCause(ctx, beginTime,
		fmt.Errorf("it has not named its tools within %v", beginTime))
	defer cancel()

	options := &mcp.ClientOptions{
		Capabilities: &mcp.ClientCapabilities{}, // no roots, no sampling, no elicitation
		Logger:       slog.New(slog.DiscardHandler),
	}
	s.heard.hear(options)
	client := mcp.NewClient(&mcp.Implementation{Name: "rlm", Version: o.Version}, options)
	client.AddSendingMiddleware(p.bound)
	if s.session, err = client.Connect(begin, transport, nil); err != nil {
		return s, late(begin, err)
	}
	return s, late(begin, s.readTools(begin))
}

// bound limits the time of the probe.
func (p *probe) bound(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
		if method != "server/discover" {
			return next(ctx, method, req)
		}

		bounded, cancel := context.WithTimeout(ctx, p.limit)
		defer cancel()
		result, err := next(bounded, method, req)
		p.isLate.Store(err != nil && bounded.Err() != nil)
		return result, err
	}
}

// warnOfNoise returns a function that warns of a line that is not a message.
func (s *server) warnOfNoise(warn func(text string)) func(line string) {
	if warn == nil {
		return nil
	}
	return func(line string) {
		warn(fmt.Sprintf("the MCP server %q also writes lines that are not messages to stdout, which are "+
			"skipped: %s", s.given, line))
	}
}

// late returns the cause of an ended context instead of the resulting error.
func late(ctx context.Context, err error) error {
	if err != nil && ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

// explain adds the stderr of an ended program to an error.
func (s *server) explain(err error) error {
	if s.process == nil {
		return err
	}
	if broken := s.broken(); broken != nil {
		return fmt.Errorf("%w; it is not read any more", broken)
	}
	if errors.Is(err, io.EOF) || errors.Is(err, mcp.ErrConnectionClosed) {
		s.process.await()
	}
	if text := s.process.stderr.String(); text != "" {
		return fmt.Errorf("%w; the end of its stderr: %s", err, text)
	}
	return err
}

// broken returns the reason why a program's output is no longer read, or nil if it is still being
// read.
func (s *server) broken() error {
	if s.process == nil {
		return nil
	}
	return s.process.stdout.err()
}

// close ends the session, and the program with everything that it started. A session only ends
// after its answers to the server's requests. The server may never accept the answers, so close
// ends them first.
func (s *server) close() {
	if s.process != nil {
		_ = s.process.stdin.Close()
	}
	if s.web != nil {
		s.web.end()
	}
	if s.session != nil {
		_ = s.session.Close() // the error only reports that the server has ended
	}
	if s.process != nil {
		s.process.close()
	}
	s.heard.close()
}

// process is a server that runs as a program.
type process struct {
	cmd    *exec.Cmd
	stdin  io.WriteCloser
	stdout *bounded
	stderr *toolprogram.Tail
	ended  chan struct{} // closed when the program has ended
}

// inherited contains the environment variables that every program receives. All others must be in
// the file.
var inherited = []string{
	"HOME", "LANG", "LC_ALL", "LOGNAME", "PATH", "SHELL", "TERM", "TMPDIR", "TZ", "USER",
	"APPDATA", "LOCALAPPDATA", "PATHEXT", "PROGRAMFILES", "SYSTEMDRIVE", "SYSTEMROOT", "TEMP", "TMP",
	"USERNAME", "USERPROFILE",
}

func startProcess(c config) (p *process, err error) {
	p = &process{stderr: &toolprogram.Tail{}, ended: make(chan struct{})}
	p.cmd = exec.Command(c.Command, c.Args...) //nolint:gosec,noctx // the user's own program; close ends it
	p.cmd.Dir, p.cmd.Stderr, p.cmd.WaitDelay = c.Folder, p.stderr, endTime
	p.cmd.Env = []string{}
	for _, name := range inherited {
		if value, ok := os.LookupEnv(name); ok {
			p.cmd.Env = append(p.cmd.Env, name+"="+value)
		}
	}
	for name, value := range c.Env {
		p.cmd.Env = append(p.cmd.Env, name+"="+value)
	}
	procgroup.Lead(p.cmd)

	if p.stdin, err = p.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	stdout, writer, err := os.Pipe() // Wait leaves this pipe open, so that the last reply is read
	if err != nil {
		return nil, err
	}
	p.stdout, p.cmd.Stdout = &bounded{what: theReply, ReadCloser: stdout, framing: lines}, writer

	if err := p.cmd.Start(); err != nil {
		return nil, errors.Join(fmt.Errorf("cannot start %s: %w", c.Command, err),
			stdout.Close(), writer.Close()) // Start has closed stdin
	}

	_ = writer.Close() // the program has a copy
	go func() {
		defer close(p.ended)
		_ = p.cmd.Wait()
	}()
	return p, nil
}

// close ends the program: it closes its stdin and, if the program does not end soon, kills it with
// its children.
func (p *process) close() {
	_ = p.stdin.Close()
	p.await()
	procgroup.Kill(p.cmd)
	<-p.ended
	_ = p.stdout.Close()
}

// await waits a short time for the program to end.
func (p *process) await() {
	late := time.NewTimer(endTime)
	defer late.Stop()
	select {
	case <-p.ended:
	case <-late.C:
	}
}

// httpTransport returns the transport to a server over streamable HTTP.
func httpTransport(address string, web *headers) mcp.Transport {
	return &mcp.StreamableClientTransport{
		Endpoint: address, MaxEventSize: 3 * maxMessage, DisableStandaloneSSE: true, MaxRetries: -1,
		HTTPClient: &http.Client{
			Transport:     web,
			CheckRedirect: stayOnHost,
		},
	}
}

// headers is an HTTP transport that adds the file's headers to each request. It also bounds
// replies, and answers that the server does not accept.
type headers struct {
	all     map[string]string
	answers answers
	life    context.Context //nolint:containedctx // the context of the answers
	end     context.CancelFunc
}

func newHeaders(all map[string]string) *headers {
	h := &headers{all: all}
	h.life, h.end = context.WithCancel(context.Background())
	return h
}

// RoundTrip implements [http.RoundTripper].
func (h *headers) RoundTrip(req *http.Request) (*http.Response, error) {
	if isAnswer(req) {
		if err := h.answers.begin(); err != nil {
			return nil, err
		}
		defer h.answers.end()
		ctx, cancel := context.WithCancel(req.Context())
		defer cancel()
		defer context.AfterFunc(h.life, cancel)()
		req = req.WithContext(ctx)
	}
	req = req.Clone(req.Context())
	for name, value := range h.all {
		req.Header.Set(name, value)
	}

	response, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	body := &bounded{what: theReply, ReadCloser: response.Body}
	isEvents := strings.HasPrefix(response.Header.Get("Content-Type"), "text/event-stream")
	if isEvents {
		body.framing = events
	}
	response.Body = &repairedBody{ReadCloser: body, isEvents: isEvents, lines: bufio.NewReader(body)}
	return response, nil
}

// stayOnHost refuses redirects to other hosts, which would receive the headers.
func stayOnHost(req *http.Request, via []*http.Request) error {
	if first := via[0].URL; len(via) > 3 || req.URL.Scheme != first.Scheme || req.URL.Host != first.Host {
		return fmt.Errorf("the server redirects to %s", req.URL.Redacted())
	}
	return nil
}

// capabilities returns the server's declared capabilities.
func (s *server) capabilities() *mcp.ServerCapabilities {
	if s.session == nil {
		return &mcp.ServerCapabilities{} // for an API
	}
	if state := s.session.InitializeResult(); state != nil && state.Capabilities != nil {
		return state.Capabilities
	}
	return &mcp.ServerCapabilities{}
}

// readTools reads the tools of the server, and adds functions for its resources and prompts.
func (s *server) readTools(ctx context.Context) error {
	state := s.session.InitializeResult()
	if state != nil && state.ServerInfo != nil {
		s.title = oneLine(slices.Concat([]string{state.ServerInfo.Title, state.Instructions})...)
	}

	capabilities, taken := s.capabilities(), map[string]bool{}
	if capabilities.Tools != nil || state == nil || state.Capabilities == nil {
		for found, err := range s.session.Tools(ctx, nil) {
			if err != nil {
				return fmt.Errorf("cannot list its tools: %w", err)
			}
			if len(s.tools) == maxTools {
				return fmt.Errorf("it has more than %d tools", maxTools)
			}
			s.tools = append(s.tools, newTool(s, found, taken))
		}
	}

	if capabilities.Resources != nil {
		s.tools = append(s.tools, resourceTools(s, taken)...)
	}
	if capabilities.Prompts != nil {
		s.tools = append(s.tools, promptTools(s, taken)...)
	}
	if len(s.tools) == 0 {
		return errors.New("it has no tools, resources or prompts")
	}
	return nil
}
