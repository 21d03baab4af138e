package agents

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coder/acp-go-sdk"

	"github.com/rlmhq/rlm/repl/internal/callnotes"
	"github.com/rlmhq/rlm/repl/llm"
	"github.com/rlmhq/rlm/repl/llm/internal/kind"
)

// modeVariable is the environment variable that turns this test program into an agent.
const modeVariable = "RLM_TEST_AGENT"

func TestMain(m *testing.M) {
	if mode := os.Getenv(modeVariable); mode != "" {
		serve(mode)
		return
	}
	os.Exit(m.Run())
}

// serve runs an agent. In mode kind, the last word of a prompt selects what it does; the other
// modes violate the protocol.
func serve(mode string) {
	switch mode {
	case "silence":
		_, _ = io.Copy(io.Discard, os.Stdin)
	case "death":
		fmt.Fprintln(os.Stderr, "please log in")
		os.Exit(3)
	case "deaf":
		time.Sleep(time.Hour)
	default:
		fmt.Println("Welcome to the agent!")
		a := &testAgent{mode: mode, folders: map[acp.SessionId]string{}}
		stdin, client := io.Pipe()
		a.conn = acp.NewAgentSideConnection(a, os.Stdout, stdin)
		go func() { // not earlier: the SDK would handle a message before it has its connection
			_, err := io.Copy(client, os.Stdin)
			_ = client.CloseWithError(err)
		}()
		<-a.conn.Done()
	}
}

type testAgent struct {
	acp.Agent // the methods that no test calls

	mode    string
	conn    *acp.AgentSideConnection
	mu      sync.Mutex
	folders map[acp.SessionId]string
}

func (a *testAgent) Initialize(context.Context, acp.InitializeRequest) (r acp.InitializeResponse, err error) {
	r.ProtocolVersion, r.AuthMethods = 1, []acp.AuthMethod{}
	if a.mode == "future" {
		r.ProtocolVersion = 9
	}
	if a.mode == "locked" {
		about := "opens a browser"
		r.AuthMethods = []acp.AuthMethod{
			{Agent: &acp.AuthMethodAgent{Id: "oauth", Name: "Log in with Google", Description: &about}},
			{Agent: &acp.AuthMethodAgent{Id: "claude-login", Name: "Log in", Meta: map[string]any{
				"terminal-auth": map[string]any{"command": "claude", "args": []string{"/login"}},
			}}},
			{EnvVar: &acp.AuthMethodEnvVarInline{Id: "key", Vars: []acp.AuthEnvVar{{Name: "GEMINI_API_KEY"}}}},
			{Terminal: &acp.AuthMethodTerminalInline{Id: "tty", Args: []string{"login", "--device"}}},
		}
	}
	r.AgentCapabilities.SessionCapabilities.Close = &acp.SessionCloseCapabilities{}
	return r, nil
}

func (a *testAgent) NewSession(_ context.Context, r acp.NewSessionRequest) (out acp.NewSessionResponse, err error) {
	if a.mode == "locked" {
		return out, acp.NewAuthRequired(nil)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	out.SessionId = acp.SessionId(fmt.Sprint("s", len(a.folders)))
	if a.mode == "single" {
		out.SessionId = "s"
	}
	a.folders[out.SessionId] = r.Cwd
	return out, nil
}

func (a *testAgent) CloseSession(
	context.Context, acp.CloseSessionRequest,
) (out acp.CloseSessionResponse, err error) {
	return out, nil
}

func (a *testAgent) Cancel(context.Context, acp.CancelNotification) error { return nil }

func (a *testAgent) Prompt(ctx context.Context, r acp.PromptRequest) (out acp.PromptResponse, err error) {
	say := func(text string) {
		_ = a.conn.SessionUpdate(ctx, acp.SessionNotification{
			SessionId: r.SessionId, Update: acp.UpdateAgentMessageText(text),
		})
	}
	out.StopReason = acp.StopReasonEndTurn
	text := r.Prompt[0].Text.Text
	words := strings.Fields(text)
	switch word := words[len(words)-1]; word {
	case "echo":
		say(text)
	case "many": // more than the library's queue holds
		for i := range 5_000 {
			say(fmt.Sprint(i, " "))
		}
	case "think":
		_ = a.conn.SessionUpdate(ctx, acp.SessionNotification{
			SessionId: r.SessionId, Update: acp.UpdateAgentThoughtText("I think"),
		})
		say("done")
	case "folder":
		a.mu.Lock()
		entries, _ := os.ReadDir(a.folders[r.SessionId])
		a.mu.Unlock()
		say(fmt.Sprint(len(entries), " files"))
	case "permission":
		got, err := a.conn.RequestPermission(ctx, acp.RequestPermissionRequest{
			SessionId: r.SessionId, ToolCall: acp.ToolCallUpdate{ToolCallId: "1"},
			Options: []acp.PermissionOption{
				{OptionId: "yes", Name: "Yes", Kind: acp.PermissionOptionKindAllowOnce},
				{OptionId: "no", Name: "No", Kind: acp.PermissionOptionKindRejectOnce},
			},
		})
		if err == nil && got.Outcome.Selected != nil {
			say("permission: " + string(got.Outcome.Selected.OptionId))
		}
	case "file":
		_, err := a.conn.ReadTextFile(ctx, acp.ReadTextFileRequest{SessionId: r.SessionId, Path: "/etc/passwd"})
		say(fmt.Sprint("refused: ", err != nil))
	case "cut":
		say("half of")
		out.StopReason = acp.StopReasonMaxTokens
	case "refuse":
		say("I will not")
		out.StopReason = acp.StopReasonRefusal
	case "cancel":
		say("half of")
		out.StopReason = acp.StopReasonCancelled
	case "picture":
		_ = a.conn.SessionUpdate(ctx, acp.SessionNotification{
			SessionId: r.SessionId, Update: acp.UpdateAgentMessage(acp.ImageBlock("AAAA", "image/png")),
		})
	case "malformed":
		fmt.Println(`{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"` + string(r.SessionId) +
			`","update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":7}}}}`)
		say("rest")
	case "huge":
		for range 20 {
			say(strings.Repeat("x", 1<<20))
		}
	case "flood":
		out := bufio.NewWriter(os.Stdout)
		for range maxOthers + 10 {
			fmt.Fprintln(out, "noise")
		}
		_ = out.Flush()
		<-ctx.Done()
	case "fail":
		return out, acp.NewInternalError(map[string]any{"details": "the sky fell"})
	case "die":
		fmt.Fprintln(os.Stderr, "it dies")
		os.Exit(4)
	case "wait":
		<-ctx.Done()
		out.StopReason = acp.StopReasonCancelled
	case "usage":
		say("used")
		out.Usage = &acp.Usage{InputTokens: 7, OutputTokens: 3, TotalTokens: 10}
	case `{"type":"object"}`: // the schema of the prompt
		say("```json\n{\"n\": 1}\n```")
	}
	return out, nil
}

// start returns an agent in a mode.
func start(t *testing.T, mode string) *Agent {
	t.Helper()
	t.Setenv(modeVariable, mode)
	a, err := New("acp", os.Args[0], time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := a.Close(); err != nil {
			t.Error(err)
		}
	})
	return a
}

func ask(words ...string) llm.Request {
	return llm.Request{Messages: []llm.Message{{Role: llm.RoleUser, Content: strings.Join(words, " ")}}}
}

func TestAgentsAnswer(t *testing.T) {
	a := start(t, "kind")
	var long strings.Builder
	for i := range 5_000 {
		fmt.Fprint(&long, i, " ")
	}
	for word, want := range map[string]llm.Response{
		"many": {Text: long.String()}, "think": {Text: "done"}, "folder": {Text: "0 files"},
		"permission": {Text: "permission: no"}, "file": {Text: "refused: true"},
		"cut": {Text: "half of", Finish: llm.FinishLength}, "refuse": {Text: "I will not", Finish: llm.FinishRefusal},
		"usage": {Text: "used", Usage: llm.Usage{InputTokens: 7, OutputTokens: 3}},
	} {
		t.Run(word, func(t *testing.T) {
			var streamed strings.Builder
			got, err := a.Complete(t.Context(), ask(word), func(text string) { streamed.WriteString(text) })
			if want.Finish == "" {
				want.Finish = llm.FinishStop
			}
			if err != nil || got.Text != want.Text || got.Finish != want.Finish {
				t.Errorf("got %.100q, %s, %v", got.Text, got.Finish, err)
			}
			if streamed.String() != got.Text {
				t.Errorf("it streamed %.100q", streamed.String())
			}
			if want.Usage.InputTokens > 0 && got.Usage != want.Usage || got.Usage.InputTokens == 0 {
				t.Errorf("it used %+v", got.Usage)
			}
		})
	}

	typed := ask("How many?")
	typed.Schema = json.RawMessage(`{"type":"object"}`)
	if got, err := a.Complete(t.Context(), typed, nil); err != nil || got.Text != `{"n": 1}` {
		t.Errorf("got %q, %v", got.Text, err)
	}
}

func TestAgentsThatFailAreErrors(t *testing.T) {
	a := start(t, "kind")
	for word, want := range map[string]struct {
		kind kind.Error
		text string
	}{
		"cancel": {kind.ErrCut, `stopped early: "cancelled"`}, "fail": {kind.ErrServer, "the sky fell"},
		"picture":   {kind.ErrMalformed, `a part that is not text: "image"`},
		"malformed": {kind.ErrMalformed, "a part of a reply is malformed"},
		"huge":      {kind.ErrTooLarge, "more than 16 MiB"}, "die": {kind.ErrServer, "the end of its stderr: it dies"},
		"flood": {kind.ErrMalformed, "messages that are no replies"},
	} {
		t.Run(word, func(t *testing.T) {
			got, err := a.Complete(t.Context(), ask(word), nil)
			if !errors.Is(err, want.kind) || !strings.Contains(err.Error(), want.text) || got.Text != "" {
				t.Errorf("got %.100q, %v", got.Text, err)
			}
			if got, err := a.Complete(t.Context(), ask("think"), nil); err != nil || got.Text != "done" {
				t.Errorf("afterwards: %q, %v", got.Text, err) // a failed program is started again
			}
		})
	}
}

func TestProgramsThatAreNoAgentsAreErrors(t *testing.T) {
	for mode, want := range map[string]struct {
		kind kind.Error
		text string
	}{
		"death": {kind.ErrServer, "please log in"},
		"locked": {
			kind.ErrAuth, "log in with the program itself: choose Log in with Google (opens a browser); " +
				"or run claude /login; or set GEMINI_API_KEY; or run " + os.Args[0] + " login --device",
		},
		"future": {kind.ErrMisconfigured, "speaks version 9 of the protocol"},
	} {
		t.Run(mode, func(t *testing.T) {
			_, err := start(t, mode).Complete(t.Context(), ask("echo"), nil)
			if !errors.Is(err, want.kind) || !strings.Contains(err.Error(), want.text) {
				t.Errorf("got %v", err)
			}
		})
	}
	if _, err := New("acp", "no-such-program --x", 0); !errors.Is(err, kind.ErrMisconfigured) {
		t.Errorf("got %v", err)
	}
	if _, err := New("acp", " ", 0); !errors.Is(err, kind.ErrMisconfigured) {
		t.Errorf("got %v", err)
	}
}

// TestCallsEndWithTheirContext checks calls of programs, including programs that read nothing.
func TestCallsEndWithTheirContext(t *testing.T) {
	late := errors.New("late")
	for mode, request := range map[string]llm.Request{
		"kind": ask("wait"), "silence": ask("echo"), "deaf": ask("echo"),
	} {
		t.Run(mode, func(t *testing.T) {
			a := start(t, mode)
			ctx, cancel := context.WithTimeoutCause(t.Context(), 200*time.Millisecond, late)
			defer cancel()
			if _, err := a.Complete(ctx, request, nil); !errors.Is(err, late) {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestCallsAtOnceDoNotMix(t *testing.T) {
	a := start(t, "kind")
	var all sync.WaitGroup
	for i := range 20 {
		all.Go(func() {
			word := fmt.Sprintf("word%d", i)
			got, err := a.Complete(t.Context(), ask(word, "echo"), nil)
			if err != nil || strings.Count(got.Text, "word") != 1 || !strings.Contains(got.Text, word+" ") {
				t.Errorf("got %q, %v", got.Text, err)
			}
		})
	}
	all.Wait()
}

func TestTwoCallsInOneSessionDoNotMix(t *testing.T) {
	a := start(t, "single")
	p, err := a.start(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	first, err := p.open(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := a.Complete(t.Context(), ask("word", "echo"), nil); !errors.Is(err, kind.ErrMalformed) {
		t.Errorf("got %v", err)
	}

	first.close()
	if got, err := a.Complete(t.Context(), ask("word", "echo"), nil); err != nil {
		t.Errorf("one call after the other: got %q, %v", got.Text, err)
	}
}

func TestFoldersAreRemoved(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	a := start(t, "kind")
	if _, err := a.Complete(t.Context(), ask("think"), nil); err != nil {
		t.Fatal(err)
	}
	if err := a.Close(); err != nil {
		t.Fatal(err)
	}
	if left, _ := filepath.Glob(filepath.Join(os.Getenv("TMPDIR"), "rlm-agent-*")); len(left) > 0 {
		t.Errorf("it left %v", left)
	}
	if _, err := a.Complete(t.Context(), ask("think"), nil); err == nil {
		t.Error("a closed agent answered")
	}
}

func TestConversationsAreOnePrompt(t *testing.T) {
	blocks, err := promptOf(llm.Request{Messages: []llm.Message{
		{Role: llm.RoleSystem, Content: "Be brief."},
		{Role: llm.RoleUser, Content: "One?"},
		{Role: llm.RoleAssistant, Content: "1"},
		{Role: llm.RoleUser, Content: "Two?"},
	}, Schema: json.RawMessage(`{"type":"integer"}`)}, false)
	if err != nil || len(blocks) != 1 {
		t.Fatalf("got %d blocks, %v", len(blocks), err)
	}
	at := 0
	for _, part := range []string{"Be brief.", "<user>\nOne?", "<assistant>\n1", "<user>\nTwo?", `{"type":"integer"}`} {
		next := strings.Index(blocks[0].Text.Text[at:], part)
		if next < 0 {
			t.Fatalf("%q is missing or too early in %s", part, blocks[0].Text.Text)
		}
		at += next
	}
	picture := llm.Request{Messages: []llm.Message{
		{Role: llm.RoleUser, Content: "What?", Images: []llm.Image{{Type: "image/png", Data: []byte("x")}}},
	}}
	if _, err := promptOf(picture, false); err == nil {
		t.Error("an agent without images got one")
	}
	if blocks, err := promptOf(picture, true); err != nil || len(blocks) != 2 {
		t.Errorf("got %d blocks, %v", len(blocks), err)
	}
}

// dropped collects the parts of requests that an agent does not receive.
type dropped struct{ parts []string }

func (d *dropped) NoteWait(callnotes.Wait)   {}
func (d *dropped) NoteAsked(callnotes.Asked) {}
func (d *dropped) NoteDropped(part string)   { d.parts = append(d.parts, part) }

func TestNotesNamePartsThatTheProtocolLacks(t *testing.T) {
	a, notes := start(t, "kind"), &dropped{}
	r := ask("echo stop echo")
	warm := 0.5
	r.Temperature, r.Stop = &warm, []string{"stop"}
	for range 2 {
		got, err := a.Complete(callnotes.With(t.Context(), notes), r, nil)
		if err != nil || strings.Contains(got.Text, "stop") {
			t.Errorf("got %q, %v", got.Text, err)
		}
	}
	if len(notes.parts) != 1 || notes.parts[0] != "temperature" {
		t.Errorf("it noted %v", notes.parts)
	}
	r.ExtraBody = json.RawMessage(`{"a":1}`)
	if _, err := a.Complete(t.Context(), r, nil); !errors.Is(err, kind.ErrBadRequest) {
		t.Errorf("got %v", err)
	}
}
