package toolprogram

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"sync"
	"time"

	"github.com/rlmhq/rlm/internal/text/texts"
	"github.com/rlmhq/rlm/repl"
	"github.com/rlmhq/rlm/tiers"
)

// Bounds of a program.
const (
	maxLine   = 16 << 20 // bytes of a line
	maxTools  = 200
	maxText   = 500 // bytes of a description
	maxErrors = 2000

	beginTime = 30 * time.Second // until the first line
	endTime   = 2 * time.Second  // from the end of stdin to the kill
)

// Program is a running program.
type Program struct {
	name  string
	tools []repl.Tool

	cmd    *exec.Cmd
	stdin  io.WriteCloser
	stderr *Tail
	lines  chan []byte   // to stdin
	ended  chan struct{} // closed after the program has ended

	mu      sync.Mutex // guards the fields below
	last    int64
	waiting map[int64]chan answer
	failure error // the reason why calls can no longer be answered
}

type (
	declaration struct {
		Tools []struct {
			Name        string          `json:"name"`
			Description string          `json:"description"`
			Parameters  json.RawMessage `json:"parameters"`
		} `json:"tools"`
	}
	request struct {
		ID        int64                  `json:"id"`
		Tool      string                 `json:"tool"`
		Arguments map[string]tiers.Value `json:"arguments"`
	}
	answer struct {
		ID     int64           `json:"id"`
		Result json.RawMessage `json:"result"`
		Error  string          `json:"error"`
	}
)

// Start starts a program: its path or name and its arguments, separated by spaces. It returns
// once the program has listed its tools. Close the program after use.
func Start(ctx context.Context, command string) (*Program, error) {
	words := strings.Fields(command)
	if len(words) == 0 {
		return nil, errors.New("the command of the tool program is empty")
	}

	p := &Program{
		name: words[0], stderr: &Tail{}, lines: make(chan []byte), ended: make(chan struct{}),
		waiting: map[int64]chan answer{},
	}
	p.cmd = exec.Command(words[0], words[1:]...) //nolint:gosec,noctx // the user's own program; Close ends it
	p.cmd.Stderr, p.cmd.WaitDelay = p.stderr, endTime

	var err error
	if p.stdin, err = p.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	stdout, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := p.cmd.Start(); err != nil {
		return nil, fmt.Errorf("cannot start tool program %s: %w", p.name, err)
	}

	first := make(chan error, 1)
	go p.read(stdout, first)
	go p.write()

	late := time.NewTimer(beginTime)
	defer late.Stop()
	select {
	case err = <-first:
	case <-ctx.Done():
		err = context.Cause(ctx)
	case <-late.C:
		err = fmt.Errorf("it did not name its tools within %v: write the line "+
			`{"tools": [...]} first, and flush it`, beginTime)
	}
	if err != nil {
		err = fmt.Errorf("cannot use tool program %s: %w", p.name, err)
		return nil, errors.Join(err, p.Close())
	}
	return p, nil
}

// Tools returns the functions of the program.
func (p *Program) Tools() []repl.Tool { return p.tools }

// Close ends the program: it closes its stdin, and kills it if it does not exit soon.
func (p *Program) Close() error {
	_ = p.stdin.Close()
	select {
	case <-p.ended:
	case <-time.After(endTime):
		_ = p.cmd.Process.Kill()
		<-p.ended
	}
	return nil
}

// read reads the program's lines until it ends. It sends the outcome of the first line to first.
func (p *Program) read(stdout io.Reader, first chan<- error) {
	defer close(p.ended)
	lines := bufio.NewScanner(stdout)
	lines.Buffer(nil, maxLine)

	var failure error
	if lines.Scan() {
		err := p.declare(lines.Bytes())
		first <- err
		for err == nil && lines.Scan() {
			err = p.receive(lines.Bytes())
		}
		failure = err
	}
	if failure == nil {
		failure = lines.Err()
	}
	if failure != nil {
		_ = p.cmd.Process.Kill() // after a violation, later lines are meaningless
	}

	// A program that closed its stdout but is still running can no longer answer.
	grace := time.AfterFunc(endTime, func() { _ = p.cmd.Process.Kill() })
	ended := p.cmd.Wait()
	grace.Stop()
	if failure == nil {
		failure = describeEnd(ended, p.stderr.String())
	}
	p.fail(fmt.Errorf("tool program %s: %w", p.name, failure))
	select {
	case first <- failure:
	default: // Start has already received its result
	}
}

// describeEnd describes how a program ended, with its last output to stderr.
func describeEnd(err error, stderr string) error {
	how := "it has ended"
	if err != nil {
		how = "it ended: " + err.Error()
	}
	if stderr != "" {
		how += "; the end of its stderr: " + stderr
	}
	return errors.New(how)
}

// declare reads the first line, which lists the tools.
func (p *Program) declare(line []byte) error {
	var d declaration
	if err := decode(line, &d); err != nil {
		return fmt.Errorf("its first line does not name its tools: %w", err)
	}
	if len(d.Tools) == 0 || len(d.Tools) > maxTools {
		return fmt.Errorf("it names %d tools: name 1 to %d", len(d.Tools), maxTools)
	}

	for _, t := range d.Tools {
		tool := repl.Tool{
			Name: t.Name, Schema: t.Parameters,
			Doc: texts.Truncate(strings.Join(strings.Fields(t.Description), " "), maxText),
			Call: func(ctx context.Context, args map[string]tiers.Value) (tiers.Value, error) {
				return p.call(ctx, t.Name, args)
			},
		}
		p.tools = append(p.tools, tool)
	}

	_, err := repl.NewTools(p.tools...)
	return err
}

// receive passes an answer to its call. It drops an answer to an unknown call, because the call may
// have been cancelled.
func (p *Program) receive(line []byte) error {
	var a answer
	if err := decode(line, &a); err != nil {
		return fmt.Errorf("it wrote a line that is not an answer: %w", err)
	}

	p.mu.Lock()
	defer p.mu.Unlock()
	if waiting, ok := p.waiting[a.ID]; ok {
		delete(p.waiting, a.ID)
		waiting <- a
	}
	return nil
}

// fail ends all waiting calls with an error.
func (p *Program) fail(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()

	p.failure = err
	for id, waiting := range p.waiting {
		delete(p.waiting, id)
		close(waiting)
	}
}

// call sends a call to the program and waits for the answer. If the program has ended, the error
// says so.
func (p *Program) call(
	ctx context.Context, tool string, args map[string]tiers.Value,
) (tiers.Value, error) {
	if args == nil {
		args = map[string]tiers.Value{}
	}

	id, waiting, err := p.enlist()
	if err != nil {
		return nil, err
	}
	line, err := json.Marshal(request{id, tool, args})
	if err == nil && len(line) > maxLine {
		err = fmt.Errorf("its arguments have %d bytes, more than %d: pass a part", len(line), maxLine)
	}
	if err != nil {
		p.forget(id)
		return nil, fmt.Errorf("%s: %w", tool, err)
	}

	select {
	case p.lines <- append(line, '\n'):
	case <-p.ended:
	case <-ctx.Done():
	}

	select {
	case a, ok := <-waiting:
		return p.open(tool, a, ok)
	case <-ctx.Done():
		p.forget(id)
		select {
		case p.lines <- fmt.Appendf(nil, "{\"cancel\":%d}\n", id):
		default: // the program does not read; a later answer has no effect
		}
		return nil, context.Cause(ctx)
	}
}

// open returns the value in an answer. ok is false if the program ended without an answer.
func (p *Program) open(tool string, a answer, ok bool) (tiers.Value, error) {
	switch {
	case !ok:
		p.mu.Lock()
		defer p.mu.Unlock()
		return nil, p.failure
	case a.Error != "":
		return nil, fmt.Errorf("%s: %s", tool, texts.Truncate(a.Error, maxErrors))
	case a.Result == nil:
		return tiers.Value("null"), nil
	}
	return a.Result, nil
}

// enlist registers a call that waits for its answer.
func (p *Program) enlist() (id int64, waiting chan answer, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.failure != nil {
		return 0, nil, p.failure
	}

	p.last++
	waiting = make(chan answer, 1)
	p.waiting[p.last] = waiting
	return p.last, waiting, nil
}

func (p *Program) forget(id int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.waiting, id)
}

// write writes lines to the program until it ends. A program that does not read blocks new calls,
// but its answers and the cancellation of calls still work.
func (p *Program) write() {
	for {
		select {
		case line := <-p.lines:
			_, _ = p.stdin.Write(line) // fails once the program has ended, which read reports
		case <-p.ended:
			return
		}
	}
}

// decode reads a line strictly, because an unknown field is probably misspelt.
func decode(line []byte, into any) error {
	decoder := json.NewDecoder(strings.NewReader(string(line)))
	decoder.DisallowUnknownFields()
	err := decoder.Decode(into)
	if _, more := decoder.Token(); err == nil && !errors.Is(more, io.EOF) {
		err = errors.New("more than one value")
	}
	if err != nil {
		return fmt.Errorf("%w in the line %q", err, texts.Truncate(string(line), 200))
	}
	return nil
}

// Tail keeps the end of a program's output.
type Tail struct {
	mu   sync.Mutex
	kept []byte
}

// Write appends data and keeps only the end. It never fails.
func (t *Tail) Write(data []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.kept = append(t.kept, data...)
	if over := len(t.kept) - maxErrors; over > 0 {
		t.kept = append([]byte(nil), t.kept[over:]...)
	}
	return len(data), nil
}

// String returns the kept end, trimmed.
func (t *Tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return strings.TrimSpace(strings.ToValidUTF8(string(t.kept), "\uFFFD"))
}
