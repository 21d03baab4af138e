package server

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/rlmhq/rlm/internal/testing/llmtest"
	"github.com/rlmhq/rlm/repl/llm"
	"github.com/rlmhq/rlm/repl/llm/providers"
)

// priced resolves every name to one model of a registry, and gives it a price.
type priced struct {
	*providers.Registry
	name string
}

func (p priced) Resolve(string) (llm.Model, error) {
	m, err := p.Registry.Resolve(p.name)
	m.Facts.Price = &llm.Price{Input: 1, Output: 1}
	return m, err
}

// cutReplies starts a server whose model answers with an incomplete text, on one of the wires. The
// finish reason of each reply is the message that it answers.
func cutReplies(t *testing.T, wire string, words ...string) *tested {
	t.Helper()
	upstream := llmtest.Start(func(llm.Request) (llm.Response, error) {
		return llm.Response{Text: "The parts are one, two and th"}, nil
	})
	t.Cleanup(upstream.Close)
	for _, word := range words {
		fault := llmtest.Finish(word)
		fault.Times = -1
		fault.When = func(r llm.Request) bool { return r.Messages[len(r.Messages)-1].Content == word }
		upstream.Fail(fault)
	}
	registry, err := providers.New(providers.Options{
		Env: upstream.Env, HTTP: providers.HTTP{FirstWait: time.Millisecond, Attempts: 2},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { registry.Close() })

	return start(t, t.TempDir(), nil, func(o *Options) {
		o.Profiles[0].Task.Config.Models = priced{registry, wire + "/any"}
	})
}

// TestAnAnswerThatIsNotWholeIsReportedAsSuch checks that a client receives the finish reason in the
// terms of its own API, not in those of the model's server.
func TestAnAnswerThatIsNotWholeIsReportedAsSuch(t *testing.T) {
	endings := map[string][]string{
		"length": {
			"length", "max_tokens", "MAX_TOKENS", "model_length", "incomplete",
			"model_context_window_exceeded", "pause_turn",
		},
		"content_filter": {
			"content_filter", "SAFETY", "RECITATION", "sensitive", "refusal", "guardrail_intervened",
		},
		"error": {
			"error", "network_error", "insufficient_system_resource", "abort", "MALFORMED_FUNCTION_CALL",
			"OTHER", "tool_calls",
		},
		"stop": {"STOP", "end_turn", "eos_token"},
	}
	// signs has a part of the body for each ending, in chat completions and in responses.
	signs := map[string][2]string{
		"length":         {`"finish_reason":"length"`, `"incomplete_details":{"reason":"max_output_tokens"}`},
		"content_filter": {`"finish_reason":"content_filter"`, `"incomplete_details":{"reason":"content_filter"}`},
		"error":          {`"model_failed"`, `"model_failed"`},
		"stop":           {`"finish_reason":"stop"`, `"status":"completed"`},
	}
	var words []string
	for _, some := range endings {
		words = append(words, some...)
	}

	for _, wire := range []string{"openai", "anthropic", "gemini"} {
		t.Run(wire, func(t *testing.T) {
			s := cutReplies(t, wire, words...)
			for ending, some := range endings {
				for _, word := range some {
					for _, stream := range []bool{false, true} {
						for i, body := range s.askBoth(word, stream) {
							isWhole := strings.Contains(body, signs["stop"][0]) ||
								strings.Contains(body, signs["stop"][1])
							if !strings.Contains(body, signs[ending][i]) || ending != "stop" && isWhole {
								t.Errorf("%s, streamed %v, API %d: %s", word, stream, i, body)
							}
						}
					}
				}
			}
		})
	}
}

// askBoth sends a message as a chat completion and as a response, and returns both bodies.
func (s *tested) askBoth(message string, stream bool) [2]string {
	s.Helper()
	chat := s.do("POST", "/v1/chat/completions", "", object{
		"model": "rlm/default", "stream": stream,
		"messages": []object{{"role": "user", "content": message}},
	})
	response := s.do("POST", "/v1/responses", "", object{"model": "rlm/default", "stream": stream, "input": message})
	return [2]string{chat.body, response.body}
}

// TestPiecesThatLookCumulativeReachTheClientOnce checks streams whose pieces repeat the text before
// them, or only seem to.
func TestPiecesThatLookCumulativeReachTheClientOnce(t *testing.T) {
	const event = `data: {"choices":[{"delta":{"content":%q},"finish_reason":%s}]}` + "\n\n"
	for want, pieces := range map[string][]string{
		"1 1 2 3": {"1 ", "1 2 ", "3"}, "1 2": {"1 ", "1 2"}, "1 2 3 4 5 6 7 8 9": {
			"1 2 ", "1 2 3 4 ", "1 2 3 4 5 6 ", "1 2 3 4 5 6 7 8 9",
		},
	} {
		upstream := llmtest.Start(func(llm.Request) (llm.Response, error) { return llm.Response{Text: want}, nil })
		t.Cleanup(upstream.Close)
		stream := ""
		for _, piece := range pieces {
			stream += fmt.Sprintf(event, piece, "null")
		}
		registry, err := providers.New(providers.Options{Env: upstream.Env})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { registry.Close() })
		for path, body := range map[string]object{
			"/v1/chat/completions": chat("hi"), respond: {"model": "rlm/default", "input": "hi"}, messages: ask("hi"),
		} {
			s := start(t, t.TempDir(), nil, func(o *Options) {
				o.Profiles[0].Task.Config.Models = priced{registry, "openai/any"}
			})
			upstream.Fail(llmtest.Body("text/event-stream", stream+fmt.Sprintf(event, "", `"stop"`)))
			body["stream"] = true
			got := s.do("POST", path, "", body)
			if text := joined(got.body); got.status != 200 || text != want {
				t.Errorf("%s: got %q, want %q, from %s", path, text, want, got.body)
			}
		}
	}
}

// joined returns the text in the deltas of a stream on any wire.
func joined(stream string) (text string) {
	for line := range strings.Lines(stream) {
		data, isData := strings.CutPrefix(line, "data: ")
		var event struct {
			Type    string
			Delta   any
			Choices []struct{ Delta struct{ Content string } }
		}
		if !isData || json.Unmarshal([]byte(data), &event) != nil {
			continue
		}
		for _, c := range event.Choices {
			text += c.Delta.Content
		}
		switch d := event.Delta.(type) {
		case string:
			text += d
		case map[string]any:
			part, _ := d["text"].(string)
			text += part
		}
	}
	return text
}
