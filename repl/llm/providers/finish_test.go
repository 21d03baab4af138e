package providers_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/rlmhq/rlm/internal/testing/llmtest"
	"github.com/rlmhq/rlm/repl/internal/finish"
	"github.com/rlmhq/rlm/repl/llm"
	"github.com/rlmhq/rlm/repl/llm/internal/kind"
)

// TestFinishReasonsMeanTheSameOnAllWires checks finish reasons in all formats; an unknown reason is
// a failure.
func TestFinishReasonsMeanTheSameOnAllWires(t *testing.T) {
	config := quick
	config.Attempts = 2
	for word, want := range map[string]string{
		"STOP": llm.FinishStop, "COMPLETE": llm.FinishStop, "tool_use": finish.ToolCalls,
		"MAX_TOKENS": llm.FinishLength, "model_length": llm.FinishLength,
		"SAFETY": llm.FinishRefusal, "content_filter": llm.FinishRefusal, "error": "", "never_seen": "",
	} {
		t.Run(word, func(t *testing.T) {
			each(t, config, reply(long), func(s *llmtest.Server, c caller) {
				fault := llmtest.Finish(word)
				fault.Times = -1
				s.Fail(fault)
				response, _, err := c.ask(c.Context(), llm.Request{})
				isText := response.Text == long
				switch {
				case want == "":
					checkFailed(c.T, err, word)
				case err != nil || response.Finish != want || isText == (want == llm.FinishRefusal):
					c.Errorf("got %+v, %v, want %s", response, err, want)
				case want == llm.FinishRefusal && !strings.Contains(response.Text, word):
					c.Errorf("the explanation is %q", response.Text)
				}
			})
		})
	}
}

// checkFailed checks the error of a call whose replies all ended with a finish reason of failure.
func checkFailed(t *testing.T, err error, word string) {
	t.Helper()
	var failure *llm.Error
	if !errors.As(err, &failure) || !errors.Is(err, kind.ErrServer) ||
		!strings.Contains(failure.Message, word) || strings.Contains(err.Error(), "fox") {
		t.Fatalf("got %v", err)
	}
	if failure.Attempts != 2 || failure.Usage.OutputTokens != 40 {
		t.Errorf("%d attempts, which cost tokens, used %+v", failure.Attempts, failure.Usage)
	}
}

// TestAFailedReplyIsAskedForAgain checks that the beginning of a failed reply is not part of the
// answer.
func TestAFailedReplyIsAskedForAgain(t *testing.T) {
	each(t, quick, reply(long), func(s *llmtest.Server, c caller) {
		s.Fail(llmtest.Finish("error"))
		response, streamed, err := c.ask(c.Context(), llm.Request{})
		if err != nil || response.Text != long || response.Attempts != 2 || response.Usage.OutputTokens != 40 ||
			!strings.HasSuffix(streamed, long) {
			c.Errorf("got %+v, %v, streamed %q", response, err, streamed)
		}
	})
}

// TestAnErrorInAChoiceIsAnError checks a choice with an error, which OpenRouter sends if a model's
// server fails in the middle of a reply.
func TestAnErrorInAChoiceIsAnError(t *testing.T) {
	const choice = `{"choices": [{"index": 0, "finish_reason": "error", "error": {"code": 502, ` +
		`"message": "upstream broke"}, "MESSAGE": {"role": "assistant", "content": "The parts are"}}]}`
	each(t, quick, reply(long), func(s *llmtest.Server, c caller) {
		if c.format == "anthropic" {
			c.Skip("it has no choices")
		}
		if c.streamed {
			s.Fail(llmtest.Body("text/event-stream", "data: "+strings.Replace(choice, "MESSAGE", "delta", 1)+"\n\n"))
		} else {
			s.Fail(llmtest.Body("application/json", strings.Replace(choice, "MESSAGE", "message", 1)))
		}
		response, _, err := c.ask(c.Context(), llm.Request{})
		if err != nil || response.Text != long || response.Attempts != 2 {
			c.Errorf("got %+v, %v", response, err)
		}
	})
}

// TestOneOfSeveralChoicesIsTheReply checks replies with several choices, because some servers send
// more than one, without indexes.
func TestOneOfSeveralChoicesIsTheReply(t *testing.T) {
	for name, body := range map[string]string{
		"no index": `{"choices": [{"message": {"content": "first"}, "finish_reason": "stop"}, ` +
			`{"message": {"content": "second"}, "finish_reason": "length"}]}`,
		"another order": `{"choices": [{"index": 1, "message": {"content": "second"}, "finish_reason": "length"}, ` +
			`{"index": 0, "message": {"content": "first"}, "finish_reason": "stop"}]}`,
		"one index twice": `{"choices": [{"index": 0, "message": {"content": "first"}, "finish_reason": "stop"}, ` +
			`{"index": 0, "message": {"content": "second"}, "finish_reason": "stop"}]}`,
		"counted from one": `{"choices": [{"index": 1, "message": {"content": "first"}, "finish_reason": "stop"}]}`,
	} {
		t.Run(name, func(t *testing.T) {
			server, model := setUp(t, "openai", quick, reply(long))
			server.Fail(llmtest.Body("application/json", body))
			response, _, err := caller{T: t, model: model}.ask(t.Context(), llm.Request{})
			if err != nil || response.Text != "first" || response.Finish != llm.FinishStop {
				t.Errorf("got %+v, %v", response, err)
			}
		})
	}

	t.Run("streamed", func(t *testing.T) {
		server, model := setUp(t, "openai", quick, reply(long))
		server.Fail(llmtest.Body("text/event-stream", `data: {"choices": [{"delta": {"content": "fi"}}, `+
			`{"delta": {"content": "sec"}}]}`+"\n\n"+`data: {"choices": [{"index": 1, "delta": {"content": "ond"}, `+
			`"finish_reason": "length"}, {"index": 0, "delta": {"content": "rst"}, "finish_reason": "stop"}]}`+
			"\n\ndata: [DONE]\n\n"))
		response, streamed, err := caller{T: t, model: model, streamed: true}.ask(t.Context(), llm.Request{})
		if err != nil || response.Text != "first" || streamed != "first" || response.Finish != llm.FinishStop {
			t.Errorf("got %+v, %v, streamed %q", response, err, streamed)
		}
	})
}
