package agent

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coder/acp-go-sdk"

	"github.com/rlmhq/rlm"
	"github.com/rlmhq/rlm/repl/ledger"
	"github.com/rlmhq/rlm/repl/llm"
	"github.com/rlmhq/rlm/repl/llm/scripted"
	"github.com/rlmhq/rlm/repl/run"
)

// models provides a model that answers by rules, under any name.
type models struct{ llm.Provider }

// Resolve implements [ledger.Models].
func (m models) Resolve(name string) (llm.Model, error) {
	return llm.Model{Name: name, ID: name, Provider: m.Provider}, nil
}

func reply(question, text string) scripted.Rule {
	return scripted.Rule{When: scripted.When{Any: question}, Reply: &text}
}

// client is an editor.
type client struct {
	acp.Client // the methods that no test calls

	mu    sync.Mutex
	words strings.Builder // of messages
	mind  strings.Builder // thoughts
	steps []acp.SessionUpdateToolCall
}

func (c *client) SessionUpdate(_ context.Context, n acp.SessionNotification) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch u := n.Update; {
	case u.AgentMessageChunk != nil:
		c.words.WriteString(u.AgentMessageChunk.Content.Text.Text)
	case u.AgentThoughtChunk != nil:
		c.mind.WriteString(u.AgentThoughtChunk.Content.Text.Text)
	case u.ToolCall != nil:
		c.steps = append(c.steps, *u.ToolCall)
	}
	return nil
}

func (c *client) RequestPermission(
	_ context.Context, r acp.RequestPermissionRequest,
) (acp.RequestPermissionResponse, error) {
	id := acp.PermissionOptionId("reject")
	if strings.Contains(*r.ToolCall.Title, "friendly") {
		id = "allow"
	}
	return acp.RequestPermissionResponse{Outcome: acp.NewRequestPermissionOutcomeSelected(id)}, nil
}

// take returns the messages since the last call.
func (c *client) take() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	text := c.words.String()
	c.words.Reset()
	return text
}

// connect starts an agent whose model answers by rules.
func connect(t *testing.T, rules ...scripted.Rule) (*acp.ClientSideConnection, *client, acp.SessionId) {
	t.Helper()
	script, err := scripted.New(rules...)
	if err != nil {
		t.Fatal(err)
	}
	engine, err := rlm.New(rlm.Options{})
	if err != nil {
		t.Fatal(err)
	}

	fromClient, toAgent := io.Pipe()
	fromAgent, toClient := io.Pipe()
	cfg := Config{
		Version: "1", Note: t.Logf,
		Open: func(ctx context.Context, _ string, progress func(ledger.Event)) (*rlm.Session, error) {
			ask := run.Config{Models: models{script}, Model: "test/m", MaxTurns: 2, NoSynthesis: true}
			ask.Progress, ask.Stream = progress, true
			call := rlm.Func("risky", "Asks first.", func(ctx context.Context, in struct {
				How string `json:"how"`
			},
			) (string, error) {
				return "done", Ask(ctx, in.How)
			})
			return engine.Open(ctx, rlm.SessionConfig{Keep: true, Ask: ask, Functions: []rlm.Function{call}})
		},
		Read: func(folder, path string) (rlm.Context, error) {
			if !strings.HasPrefix(path, folder) {
				return rlm.Context{}, errors.New("the file is elsewhere")
			}
			return rlm.Text(path, "linked file"), nil
		},
	}
	ended := make(chan error, 1)
	go func() { ended <- Serve(t.Context(), cfg, fromClient, toClient) }()
	t.Cleanup(func() {
		if err := errors.Join(toAgent.Close(), <-ended, engine.Close()); err != nil {
			t.Error(err)
		}
		_ = fromAgent.Close()
	})

	c := &client{}
	conn := acp.NewClientSideConnection(c, toAgent, fromAgent)
	about, err := conn.Initialize(t.Context(), acp.InitializeRequest{ProtocolVersion: 1})
	if err != nil || about.ProtocolVersion != 1 || !about.AgentCapabilities.PromptCapabilities.EmbeddedContext {
		t.Fatalf("got %+v, %v", about, err)
	}
	session, err := conn.NewSession(t.Context(), acp.NewSessionRequest{Cwd: "/project", McpServers: []acp.McpServer{}})
	if err != nil {
		t.Fatal(err)
	}
	return conn, c, session.SessionId
}

func say(id acp.SessionId, text string, more ...acp.ContentBlock) acp.PromptRequest {
	return acp.PromptRequest{SessionId: id, Prompt: append([]acp.ContentBlock{acp.TextBlock(text)}, more...)}
}

func code(source string) string { return "```repl\n" + source + "\n```" }

func attach(text string) acp.ContentBlock {
	return acp.ResourceBlock(acp.EmbeddedResourceResource{
		TextResourceContents: &acp.TextResourceContents{Uri: "file:///project/a.txt", Text: text},
	})
}

func TestAnEditorAsksInASession(t *testing.T) {
	conn, c, id := connect(t,
		reply("And this", code("FINAL(context_1)")), // later prompts quote the earlier ones
		reply("Twice", code("FINAL(n * 2)")),
		reply("How long is it", code("n = len(context)\nprint(n)\nFINAL(n)")),
	)
	for _, step := range []struct {
		ask  acp.PromptRequest
		want string
	}{
		{say(id, "How long is it?", attach("12345")), "5"},
		{say(id, "Twice?"), "10"},
		{say(id, "And this?", acp.ResourceLinkBlock("b", "file:///project/b.txt")), "linked file"},
	} {
		got, err := conn.Prompt(t.Context(), step.ask)
		if text := c.take(); err != nil || got.StopReason != acp.StopReasonEndTurn || text != step.want {
			t.Errorf("%s: %q, %+v, %v", step.ask.Prompt[0].Text.Text, text, got, err)
		}
	}

	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.steps) != 3 || c.steps[0].Kind != acp.ToolKindExecute || c.steps[0].Status != acp.ToolCallStatusCompleted {
		t.Fatalf("the steps are %+v", c.steps)
	}
	input, _ := json.Marshal(c.steps[0].RawInput)
	if !strings.Contains(string(input), "n = len(context)") || len(c.steps[0].Content) == 0 ||
		!strings.Contains(c.steps[0].Content[0].Content.Content.Text.Text, "5") {
		t.Errorf("the first step is %s %+v", input, c.steps[0].Content)
	}
}

func TestThePersonAtTheEditorDecides(t *testing.T) {
	conn, c, id := connect(t, reply("Dare", code(`try:
    risky("rude")
except Exception as e:
    FINAL([risky("friendly"), str(e)])`)))
	if _, err := conn.Prompt(t.Context(), say(id, "Dare!")); err != nil {
		t.Fatal(err)
	}
	if text := c.take(); !strings.Contains(text, "done") || !strings.Contains(text, errDenied.Error()) {
		t.Errorf("got %q", text)
	}
}

// TestARunWithoutAnAnswerHasNoMessage checks that no message is sent, since a client treats each
// message as an answer.
func TestARunWithoutAnAnswerHasNoMessage(t *testing.T) {
	conn, c, id := connect(t, reply("Guess", code(`answer["content"] = "17, I guess"`)))
	got, err := conn.Prompt(t.Context(), say(id, "Guess!"))
	if err == nil && got.StopReason != acp.StopReasonMaxTurnRequests {
		t.Errorf("got %+v, %v", got, err)
	}
	if text := c.take(); text != "" {
		t.Errorf("it said %q", text)
	}
}

func TestTheEditorSeesWordsAndFailures(t *testing.T) {
	conn, c, id := connect(t, reply("Try", "Let me divide.\n"+code("1/0")))
	got, err := conn.Prompt(t.Context(), say(id, "Try!"))
	if err != nil || got.StopReason != acp.StopReasonMaxTurnRequests {
		t.Errorf("the turns are used up: %+v, %v", got, err)
	}

	c.mu.Lock()
	defer c.mu.Unlock()
	if !strings.Contains(c.mind.String(), "Let me divide.") {
		t.Errorf("the thoughts are %q", c.mind.String())
	}
	if len(c.steps) == 0 || c.steps[0].Status != acp.ToolCallStatusFailed || len(c.steps[0].Content) == 0 ||
		!strings.Contains(c.steps[0].Content[0].Content.Content.Text.Text, "ZeroDivisionError") {
		t.Errorf("the steps are %+v", c.steps)
	}
}

func TestAPromptIsCanceled(t *testing.T) {
	slow := reply("Wait", code("FINAL(1)"))
	slow.Delay = time.Minute
	conn, c, id := connect(t, reply("Now", code("FINAL(x + 1)")), slow, reply("Begin", code("x = 41\nFINAL(x)")))
	if _, err := conn.Prompt(t.Context(), say(id, "Begin.")); err != nil {
		t.Fatal(err)
	}
	c.take()

	ended := make(chan acp.PromptResponse, 1)
	go func() {
		got, err := conn.Prompt(t.Context(), say(id, "Wait."))
		if err != nil {
			t.Error(err)
		}
		ended <- got
	}()
	for begun := false; !begun; { // the second prompt must wait for the first
		_, err := conn.Prompt(t.Context(), acp.PromptRequest{SessionId: id, Prompt: []acp.ContentBlock{}})
		begun = err != nil && strings.Contains(err.Error(), "answers another prompt")
	}
	if err := conn.Cancel(t.Context(), acp.CancelNotification{SessionId: id}); err != nil {
		t.Fatal(err)
	}
	if got := <-ended; got.StopReason != acp.StopReasonCancelled {
		t.Errorf("got %+v", got)
	}

	got, err := conn.Prompt(t.Context(), say(id, "Now?"))
	if text := c.take(); err != nil || got.StopReason != acp.StopReasonEndTurn || text != "42" {
		t.Errorf("afterwards: %q, %+v, %v", text, got, err)
	}
}

func TestBadPromptsAreRefused(t *testing.T) {
	conn, _, id := connect(t, reply("", code("FINAL(1)")))
	for want, ask := range map[string]acp.PromptRequest{
		"there is no session":           say("none", "x"),
		"the prompt has no text":        {SessionId: id, Prompt: []acp.ContentBlock{}},
		"neither a text nor a file":     say(id, "x", acp.ImageBlock("AAAA", "image/png")),
		"is not a file of this machine": say(id, "x", acp.ResourceLinkBlock("x", "https://example.com/x")),
		"the file is elsewhere":         say(id, "x", acp.ResourceLinkBlock("x", "file:///etc/passwd")),
		"attach them as files":          say(id, strings.Repeat("x", maxQuestion+1)),
	} {
		t.Run(want, func(t *testing.T) {
			if _, err := conn.Prompt(t.Context(), ask); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("got %v", err)
			}
		})
	}
	if _, err := conn.NewSession(t.Context(), acp.NewSessionRequest{
		Cwd: "here", McpServers: []acp.McpServer{},
	}); err == nil || !strings.Contains(err.Error(), "give an absolute cwd") {
		t.Errorf("got %v", err)
	}

	for range maxSessions - 1 {
		if _, err := conn.NewSession(t.Context(), acp.NewSessionRequest{
			Cwd: "/project", McpServers: []acp.McpServer{},
		}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := conn.NewSession(t.Context(), acp.NewSessionRequest{
		Cwd: "/project", McpServers: []acp.McpServer{},
	}); err == nil || !strings.Contains(err.Error(), "close one") {
		t.Errorf("got %v", err)
	}
	if _, err := conn.CloseSession(t.Context(), acp.CloseSessionRequest{SessionId: id}); err != nil {
		t.Error(err)
	}
	if _, err := conn.Prompt(t.Context(), say(id, "x")); err == nil {
		t.Error("a closed session answered")
	}
}

// TestTheConnectionEndsDuringAPrompt checks that the run and the server end without an error. The
// cleanup of connect checks this.
func TestTheConnectionEndsDuringAPrompt(t *testing.T) {
	slow := reply("Wait", code("FINAL(1)"))
	slow.Delay = time.Minute
	conn, _, id := connect(t, slow)
	go func() { // the connection ends first
		for isRefused := true; isRefused; { // if one of the empty prompts below was there before it
			_, err := conn.Prompt(t.Context(), say(id, "Wait."))
			isRefused = err != nil && strings.Contains(err.Error(), "answers another prompt")
		}
	}()
	for begun := false; !begun; {
		_, err := conn.Prompt(t.Context(), acp.PromptRequest{SessionId: id, Prompt: []acp.ContentBlock{}})
		begun = err != nil && strings.Contains(err.Error(), "answers another prompt")
	}
}

// TestAClientHasAtMost32Sessions checks the bound on sessions that are open at the same time.
func TestAClientHasAtMost32Sessions(t *testing.T) {
	conn, _, id := connect(t)
	open := func() error {
		_, err := conn.NewSession(t.Context(), acp.NewSessionRequest{Cwd: "/project", McpServers: []acp.McpServer{}})
		return err
	}
	for range maxSessions - 1 {
		if err := open(); err != nil {
			t.Fatal(err)
		}
	}
	if err := open(); err == nil || !strings.Contains(err.Error(), "at most 32") {
		t.Errorf("got %v", err)
	}
	if _, err := conn.CloseSession(t.Context(), acp.CloseSessionRequest{SessionId: id}); err != nil {
		t.Fatal(err)
	}
	if err := open(); err != nil {
		t.Error(err)
	}
}
