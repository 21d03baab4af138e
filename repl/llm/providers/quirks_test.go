package providers_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/rlmhq/rlm/internal/testing/llmtest"
	"github.com/rlmhq/rlm/repl/llm"
	"github.com/rlmhq/rlm/repl/llm/internal/kind"
	"github.com/rlmhq/rlm/repl/llm/providers"
)

// openQuirky returns a model of a server whose quirks are stored in a folder.
func openQuirky(t *testing.T, server *llmtest.Server, folder string) llm.Model {
	t.Helper()
	registry, err := providers.New(providers.Options{Env: server.Env, Learned: folder, HTTP: quick})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = registry.Close() })
	model, err := registry.Resolve("openai/gpt-5")
	if err != nil {
		t.Fatal(err)
	}
	return model
}

// learnedOf returns the known facts about a model.
func learnedOf(t *testing.T, model llm.Model) string {
	t.Helper()
	learner, ok := model.Provider.(interface {
		Learned(model string) (server string, what []string, err error)
	})
	if !ok {
		t.Fatal("the provider does not tell")
	}
	_, what, err := learner.Learned(model.ID)
	if err != nil {
		t.Error(err)
	}
	return strings.Join(what, "\n")
}

func TestAServerWithEveryQuirkIsAskedOnceMorePerQuirk(t *testing.T) {
	const long = "The capital of Italy is Rome, and that of France is Paris."
	server := llmtest.StartQuirky(func(r llm.Request) (llm.Response, error) {
		if strings.Contains(r.Messages[0].Content, "JSON Schema") {
			return llm.Response{Text: "true"}, nil
		}
		return llm.Response{Text: long}, nil
	})
	t.Cleanup(server.Close)

	zero, seed := 0.0, int64(7)
	request := llm.Request{
		Messages: []llm.Message{
			{Role: llm.RoleSystem, Content: "Be brief."}, {Role: llm.RoleUser, Content: "Which capitals?"},
		},
		MaxTokens: 8192, Sampling: llm.Sampling{Temperature: &zero, Seed: &seed},
	}
	typed := request
	typed.Schema = json.RawMessage(`{"type":"boolean"}`)

	folder, replies := t.TempDir(), 0
	for range 2 { // the second process learns nothing
		model := openQuirky(t, server, folder)
		for i := range 8 {
			r, want := request, long
			if i%2 == 1 {
				r, want = typed, "true"
			}
			r.Model = model.ID
			var shown strings.Builder
			stream := func(piece string) {
				if piece == "" {
					shown.Reset()
				}
				shown.WriteString(piece)
			}
			if i >= 4 {
				stream = nil
			}
			response, err := model.Provider.Complete(t.Context(), r, stream)
			if replies++; err != nil || response.Text != want || stream != nil && shown.String() != want {
				t.Errorf("reply %d: got %+v, %v, shown %q", i, response, err, shown.String())
			}
		}

		if got := learnedOf(t, model); !strings.Contains(got, "at most 2048 tokens") ||
			!strings.Contains(got, "sent as max_tokens") || !strings.Contains(got, "schemas") ||
			!strings.Contains(got, "system message") || !strings.Contains(got, "no seed") {
			t.Errorf("learned %q", got)
		}
	}

	refused := 0
	for name, times := range server.Refused() {
		if refused += times; times != 1 {
			t.Errorf("%s: refused %d times", name, times)
		}
	}
	if len(server.Refused()) != 7 || len(server.Seen()) != replies+refused {
		t.Errorf("%d requests for %d replies, refused: %v", len(server.Seen()), replies, server.Refused())
	}
}

func TestAPromptThatIsTheLongestIsBlamedForARefusalWithoutAReason(t *testing.T) {
	server := llmtest.Start(reply("yes"))
	t.Cleanup(server.Close)
	server.Fail(llmtest.Fault{
		When:  func(r llm.Request) bool { return len(r.Messages[0].Content) > 100_000 },
		Times: -1,
		Alter: llmtest.Status(http.StatusBadRequest, "", "Invalid request", "").Alter,
	})
	model := openQuirky(t, server, "")
	ask := func(text string) error {
		_, err := model.Provider.Complete(t.Context(), llm.Request{
			Model: model.ID, Messages: []llm.Message{{Role: llm.RoleUser, Content: text}},
		}, nil)
		return err
	}
	if err := ask(strings.Repeat("a b ", 10_000)); err != nil {
		t.Error(err)
	}
	err := ask(strings.Repeat("a b ", 30_000))
	if !errors.Is(err, llm.ErrContextLength) {
		t.Errorf("got %v", err)
	}
}

func TestAStreamEndsAsServersEndIt(t *testing.T) {
	delta := func(text, finish string) string {
		return fmt.Sprintf(`data: {"choices":[{"delta":{"content":%q},"finish_reason":%s}]}`, text, finish) + "\n\n"
	}
	rome := delta("Ro", "null") + delta("me", "null")
	for name, c := range map[string]struct {
		body   string
		finish string // empty if the stream is broken
	}{
		"its last event":                  {rome + "data: [DONE]\n\n", llm.FinishStop},
		"a finish reason":                 {rome + delta("", `"stop"`), llm.FinishStop},
		"a finish reason, and half more":  {rome + delta("", `"length"`) + `data: {"usa`, llm.FinishLength},
		"a finish reason with the text":   {delta("Ro", "null") + delta("me", `"stop"`), llm.FinishStop},
		"text after the finish reason":    {delta("Ro", `"stop"`) + delta("me", `"stop"`), llm.FinishStop},
		"nothing":                         {rome, ""},
		"its last event, but no text":     {"data: [DONE]\n\n", ""},
		"half an event after late text":   {delta("Ro", `"stop"`) + delta("me", "null") + `data: {"cho`, ""},
		"half an event":                   {rome + `data: {"choices`, ""},
		"values on lines, no blank lines": {strings.ReplaceAll(rome+delta("", `"stop"`), "\n\n", "\n"), llm.FinishStop},
	} {
		t.Run(name, func(t *testing.T) {
			server := llmtest.Start(reply("asked again"))
			t.Cleanup(server.Close)
			server.Fail(llmtest.Body("text/event-stream", c.body))
			model := openQuirky(t, server, "")
			response, err := model.Provider.Complete(t.Context(), llm.Request{
				Model: model.ID, Messages: []llm.Message{{Role: llm.RoleUser, Content: "q"}},
			}, func(string) {})
			want := llm.Response{Text: "Rome", Finish: c.finish}
			if c.finish == "" {
				want = llm.Response{Text: "asked again", Finish: llm.FinishStop}
			}
			if err != nil || response.Text != want.Text || response.Finish != want.Finish {
				t.Errorf("got %+v, %v", response, err)
			}
		})
	}
}

func TestAServerThatFallsSilentAfterAFinishReasonHasAnswered(t *testing.T) {
	server := llmtest.Start(reply("yes"))
	t.Cleanup(server.Close)
	const body = `data: {"choices":[{"delta":{"content":"Rome"},"finish_reason":"stop"}]}` + "\n\n"
	silent := llmtest.Body("text/event-stream", body)
	server.Fail(llmtest.Fault{Alter: func(r *llmtest.Reply, e llmtest.Exchange) {
		silent.Alter(r, e)
		r.Stall = true
	}})
	model := openQuirky(t, server, "")
	response, err := model.Provider.Complete(t.Context(), llm.Request{
		Model: model.ID, Messages: []llm.Message{{Role: llm.RoleUser, Content: "q"}},
	}, func(string) {})
	if err != nil || response.Text != "Rome" || len(server.Seen()) != 1 {
		t.Errorf("got %+v, %v after %d requests", response, err, len(server.Seen()))
	}
}

func TestAnUnclearStreamIsAskedForInOnePiece(t *testing.T) {
	server := llmtest.Start(reply("42"))
	t.Cleanup(server.Close)
	const event = `data: {"choices":[{"delta":{"content":"%s"},"finish_reason":%s}]}` + "\n\n"
	server.Fail(llmtest.Body("text/event-stream", fmt.Sprintf(event+event, "4", "null", "42", `"stop"`)))
	model := openQuirky(t, server, "")
	var shown []string
	response, err := model.Provider.Complete(t.Context(), llm.Request{
		Model: model.ID, Messages: []llm.Message{{Role: llm.RoleUser, Content: "q"}},
	}, func(piece string) { shown = append(shown, piece) })
	if err != nil || response.Text != "42" || !slices.Equal(shown, []string{"42"}) ||
		len(server.Seen()) != 2 || !strings.Contains(server.Seen()[1].Body, `"stream":false`) {
		t.Errorf("got %+v, %v, shown %q after %d requests", response, err, shown, len(server.Seen()))
	}
}

func TestARefusalThatStaysIsReportedOnceAndNotLearned(t *testing.T) {
	server := llmtest.Start(reply("x"))
	t.Cleanup(server.Close)
	refuse := llmtest.Status(http.StatusBadRequest, "", "response_format and stream: Invalid request", "")
	refuse.Times = -1
	server.Fail(refuse)
	model := openQuirky(t, server, t.TempDir())
	_, err := model.Provider.Complete(t.Context(), llm.Request{
		Model: model.ID, Messages: []llm.Message{{Role: llm.RoleUser, Content: "q"}},
		Schema: json.RawMessage(`{"type":"boolean"}`),
	}, func(string) {})
	what := learnedOf(t, model)
	if !errors.Is(err, kind.ErrBadRequest) || len(server.Seen()) != 3 || what != "" {
		t.Errorf("got %v after %d requests, learned %q", err, len(server.Seen()), what)
	}
}

func TestASchemaGetsTheStrictFormAndTheReplyLosesItsNulls(t *testing.T) {
	server := llmtest.Start(func(llm.Request) (llm.Response, error) {
		return llm.Response{Text: `{"title":"x","line":null}`}, nil
	})
	t.Cleanup(server.Close)
	model := openQuirky(t, server, "")
	response, err := model.Provider.Complete(t.Context(), llm.Request{
		Model: model.ID, Messages: []llm.Message{{Role: llm.RoleUser, Content: "q"}},
		Schema: json.RawMessage(`{"type":"object","properties":{"title":{"type":"string"},` +
			`"line":{"type":"integer"}},"required":["title"]}`),
	}, nil)
	if err != nil || response.Text != `{"title":"x"}` || !response.Structured ||
		!strings.Contains(server.Seen()[0].Body, `"strict":true`) {
		t.Errorf("got %+v, %v for %s", response, err, server.Seen()[0].Body)
	}
}
