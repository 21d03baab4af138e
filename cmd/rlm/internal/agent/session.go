package agent

import (
	"cmp"
	"context"
	"fmt"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/coder/acp-go-sdk"

	"github.com/rlmhq/rlm"
	"github.com/rlmhq/rlm/internal/text/texts"
	"github.com/rlmhq/rlm/repl/ledger"
)

// session is a conversation with a client.
type session struct {
	server *server
	id     acp.SessionId
	folder string // of the client

	session  *rlm.Session
	asking   sync.Mutex // held by the running prompt
	cancel   atomic.Pointer[context.CancelFunc]
	asked    atomic.Int64 // questions for the user
	attached int          // contexts
	shown    int          // tool calls
}

// close cancels the running prompt, waits for its end, and closes the session.
func (s *session) close() error {
	if cancel := s.cancel.Load(); cancel != nil {
		(*cancel)()
	}
	s.asking.Lock()
	defer s.asking.Unlock()
	return s.session.Close()
}

// prompt runs a prompt, and sends its answer.
func (s *session) prompt(ctx context.Context, blocks []acp.ContentBlock) (out acp.PromptResponse, err error) {
	if !s.asking.TryLock() {
		return out, refuse("the session answers another prompt: wait, or send session/cancel")
	}
	defer s.asking.Unlock()
	ctx, cancel := context.WithCancel(context.WithValue(ctx, sessionKey{}, s))
	defer cancel()
	s.cancel.Store(&cancel)
	defer s.cancel.Store(nil)

	question, contexts, err := s.read(blocks)
	if err != nil {
		return out, err
	}

	if len(contexts) > 0 {
		if err := s.session.AddContext(ctx, contexts...); err != nil {
			return out, refuse("cannot open a file of the prompt: %v", err)
		}
		s.attached += len(contexts)
	}

	outcome, err := s.session.Ask(ctx, question)
	switch {
	case ctx.Err() != nil:
		return acp.PromptResponse{StopReason: acp.StopReasonCancelled}, nil
	case err != nil:
		return out, acp.NewInternalError(map[string]any{"error": err.Error()})
	}

	return s.conclude(ctx, outcome)
}

// conclude sends the answer. If there is none, it sends no message, since the client would take
// that for an answer.
func (s *session) conclude(ctx context.Context, outcome rlm.Outcome) (out acp.PromptResponse, err error) {
	if outcome.Reason != "" {
		s.think(outcome.Reason + "\n")
	}

	switch {
	case outcome.Answer != nil:
		out.StopReason = acp.StopReasonEndTurn
		return out, s.send(ctx, acp.UpdateAgentMessageText(outcome.Text()))
	case outcome.Status == ledger.StatusPartial, outcome.Status == ledger.StatusNoAnswer:
		if outcome.Partial != "" {
			s.think("The unproven state of the run: " + outcome.Partial + "\n")
		}
		out.StopReason = acp.StopReasonMaxTurnRequests
		return out, nil
	}

	return out, acp.NewInternalError(map[string]any{"error": "no answer: " + outcome.Reason})
}

// read returns the question of a prompt, and its files as contexts.
func (s *session) read(blocks []acp.ContentBlock) (question string, contexts []rlm.Context, err error) {
	var words []string
	size := 0
	for i := range blocks {
		block := &blocks[i]
		switch {
		case block.Text != nil:
			words = append(words, block.Text.Text)
			size += len(block.Text.Text)
		case block.Resource != nil && block.Resource.Resource.TextResourceContents != nil:
			text := block.Resource.Resource.TextResourceContents
			contexts = append(contexts, rlm.Text(texts.Truncate(text.Uri, 200), text.Text))
			words = append(words, s.nameOf(len(contexts), text.Uri))
		case block.ResourceLink != nil:
			one, err := s.readLink(block.ResourceLink.Uri)
			if err != nil {
				return "", nil, err
			}
			contexts = append(contexts, one)
			words = append(words, s.nameOf(len(contexts), block.ResourceLink.Uri))
		default:
			return "", nil, refuse("part %d of the prompt is neither a text nor a file with text", i+1)
		}
	}

	question = strings.TrimSpace(strings.Join(words, "\n"))
	switch {
	case question == "":
		return "", nil, refuse("the prompt has no text: ask a question")
	case size > maxQuestion:
		return "", nil, refuse("the texts of the prompt have %d bytes, more than %d: attach them as files",
			size, maxQuestion)
	case s.attached+len(contexts) > maxAttached:
		return "", nil, refuse("the session has %d files, more than %d: begin another one",
			s.attached+len(contexts), maxAttached)
	}

	return question, contexts, nil
}

// nameOf returns the line that tells the model about a prompt's file.
func (s *session) nameOf(n int, uri string) string {
	return fmt.Sprintf("(attached context %d of this question: %.200q)", n, uri)
}

// readLink returns the context for a file that a prompt links to.
func (s *session) readLink(uri string) (rlm.Context, error) {
	u, err := url.Parse(uri)
	if err != nil || u.Scheme != "file" || u.Host != "" && u.Host != "localhost" {
		return rlm.Context{}, refuse("the link %.200q is not a file of this machine: send its text", uri)
	}
	one, err := s.server.cfg.Read(s.folder, u.Path)
	if err != nil {
		return rlm.Context{}, refuse("%v", err)
	}

	return one, nil
}

// show shows a step of the loop to the client.
func (s *session) show(e ledger.Event) {
	switch e.Kind {
	case ledger.EventDelta:
		if e.Depth == 0 {
			s.think(e.Text)
		}
	case ledger.EventWarning, ledger.EventWaiting, ledger.EventRefusal, ledger.EventRetry:
		s.think("\n" + strings.TrimSpace(e.Text+" "+e.Error) + "\n")
	case ledger.EventSnippet:
		s.showSnippet(&e)
	case ledger.EventTool:
		s.showCall("called "+texts.Truncate(e.Text, 200), acp.ToolKindOther, e.Error == "", nil, "")
	default:
	}
}

// showSnippet shows code that ran, with its output.
func (s *session) showSnippet(e *ledger.Event) {
	code, output, isOK := e.Text, "", e.Status == "ok"
	if e.Ran != nil {
		code, output = e.Ran.Source, e.Ran.Stdout+e.Ran.Stderr
		if failure := e.Ran.Exception; failure != nil {
			output += cmp.Or(failure.Traceback, failure.Type+": "+failure.Message)
		}
	}
	s.showCall(fmt.Sprintf("ran code in tier %s: %s", e.Tier, e.Status), acp.ToolKindExecute, isOK,
		map[string]any{"code": texts.Truncate(code, maxShown)}, texts.Truncate(output, maxShown))
}

// showCall shows a completed call.
func (s *session) showCall(title string, kind acp.ToolKind, isOK bool, input any, output string) {
	s.shown++
	status := acp.ToolCallStatusCompleted
	if !isOK {
		status = acp.ToolCallStatusFailed
	}

	options := []acp.ToolCallStartOpt{acp.WithStartKind(kind), acp.WithStartStatus(status)}
	if input != nil {
		options = append(options, acp.WithStartRawInput(input))
	}
	if output != "" {
		options = append(options, acp.WithStartContent([]acp.ToolCallContent{acp.ToolContent(acp.TextBlock(output))}))
	}
	id := acp.ToolCallId(fmt.Sprintf("step-%d", s.shown))
	_ = s.send(context.Background(), acp.StartToolCall(id, title, options...)) // the client may be gone
}

// think shows text that is not part of the answer.
func (s *session) think(text string) {
	if text != "" {
		_ = s.send(context.Background(), acp.UpdateAgentThoughtText(text)) // the client may be gone
	}
}

func (s *session) send(ctx context.Context, update acp.SessionUpdate) error {
	return s.server.conn.SessionUpdate(ctx, acp.SessionNotification{SessionId: s.id, Update: update})
}
