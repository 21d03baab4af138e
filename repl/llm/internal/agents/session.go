package agents

import (
	"context"
	"fmt"
	"os"
	"strings"
	"sync"

	"github.com/coder/acp-go-sdk"

	"github.com/rlmhq/rlm/repl/llm"
	"github.com/rlmhq/rlm/repl/llm/internal/kind"
)

// session is a call of a program.
type session struct {
	process *process
	id      acp.SessionId
	folder  string

	mu     sync.Mutex // guards the fields below
	stream func(string)
	text   strings.Builder
	broken *llm.Error // the reason why the text is not the reply
	ended  bool
}

// open begins a session in an empty folder.
func (p *process) open(ctx context.Context, stream func(string)) (*session, error) {
	s := &session{process: p, stream: stream}
	var err error
	if s.folder, err = os.MkdirTemp(p.folder, "call-"); err != nil {
		return nil, err
	}

	err = p.call(ctx, func() error {
		begun, err := p.conn.NewSession(ctx, acp.NewSessionRequest{Cwd: s.folder, McpServers: []acp.McpServer{}})
		s.id = begun.SessionId
		return err
	})
	if err != nil {
		_ = os.RemoveAll(s.folder) // close removes a folder that remains
		return nil, err
	}

	p.mu.Lock()
	defer p.mu.Unlock()
	if p.sessions[s.id] != nil {
		_ = os.RemoveAll(s.folder) // close removes a folder that remains
		return nil, p.agent.fail(kind.ErrMalformed, fmt.Sprintf("the program answers two calls at once in one "+
			"session, %.100q, so that their replies would mix: ask it one question at a time", s.id))
	}
	p.sessions[s.id] = s
	return s, nil
}

// prompt sends a prompt and waits for the end of the reply.
func (p *process) prompt(
	ctx context.Context, s *session, blocks []acp.ContentBlock,
) (response acp.PromptResponse, err error) {
	err = p.call(ctx, func() (err error) {
		response, err = p.conn.Prompt(ctx, acp.PromptRequest{SessionId: s.id, Prompt: blocks})
		return err
	})
	return response, err
}

// receive adds a part of the reply. After the end of the session, nothing is streamed.
func (s *session) receive(kindOf string, text *string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.ended || s.broken != nil:
		return
	case kindOf != "text" || text == nil:
		s.broken = s.process.agent.fail(kind.ErrMalformed,
			fmt.Sprintf("the reply has a part that is not text: %.40q", kindOf))
		return
	case s.text.Len()+len(*text) > maxText:
		s.broken = s.process.agent.fail(kind.ErrTooLarge, fmt.Sprintf("the reply has more than %d MiB", maxText>>20))
		return
	}

	s.text.WriteString(*text)
	if s.stream != nil && *text != "" {
		s.stream(*text)
	}
}

// end returns the reply, or the reason why there is none. Nothing is streamed after end.
func (s *session) end() (text string, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ended = true
	if s.broken != nil {
		return "", s.broken
	}

	return strings.ToValidUTF8(s.text.String(), "\uFFFD"), nil
}

// close ends the session and removes its folder.
func (s *session) close() {
	_, _ = s.end()
	p := s.process
	p.mu.Lock()
	delete(p.sessions, s.id)
	p.mu.Unlock()

	if p.mayClose && p.isUsable() {
		ctx, cancel := context.WithTimeout(context.Background(), endTime)
		defer cancel()
		_ = p.call(ctx, func() error { // if this fails, the session ends with the program
			_, err := p.conn.CloseSession(ctx, acp.CloseSessionRequest{SessionId: s.id})
			return err
		})
	}
	_ = os.RemoveAll(s.folder) // process.close removes a folder that remains
}
