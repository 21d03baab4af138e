package chat

import (
	"encoding/json"
	"errors"
	"slices"
	"testing"

	"github.com/rlmhq/rlm/repl/llm"
	"github.com/rlmhq/rlm/repl/llm/internal/kind"
)

// both holds the names of the limit of a reply in OpenAI's format.
var both = []string{"max_completion_tokens", "max_tokens"}

// learnFrom returns the traits after a refusal of a request.
func learnFrom(r Request, streamed bool, status int, of error, message string) (traits, bool) {
	c := learn(r, streamed, both, &llm.Error{Kind: of, Status: status, Message: message})
	var learned traits
	if c.apply != nil {
		c.apply(&learned)
	}
	return learned, c.apply != nil
}

func TestALimitThatIsTooLargeIsLowered(t *testing.T) {
	for message, want := range map[string]int{
		"max_tokens is too large: 8192. This model supports at most 4096 completion tokens, not 8192.":    4096,
		"Invalid max_tokens value, the valid range of max_tokens is [1, 4096]":                            4096,
		"max_tokens: 8192 > 4096, which is the maximum number of output tokens for claude-3-5-x-20240620": 4096,
		"`max_tokens` must be less than or equal to `4,096`, the maximum value for this model":            4096,
		"max_completion_tokens must be between 1 and 2048":                                                2048,
		"the maximum number of output tokens is exceeded":                                                 4096, // half
		"max_tokens supports at most 4k":                                                                  4000,
		"The maximum tokens you requested exceeds the model limit of 4,096":                               4096,
		"max_tokens 参数非法：取值范围 [1, 4095]":                                                                  4095,
	} {
		r := Request{Request: llm.Request{MaxTokens: 8192}, Limit: both[0]}
		learned, ok := learnFrom(r, false, 400, kind.ErrBadRequest, message)
		if !ok || learned.MaxTokens != want || learned.Limit != "" {
			t.Errorf("%q: got %+v", message, learned)
		}
	}
}

// TestALimitBesideAPromptIsHalvedForOneRequest checks refusals whose numbers concern one prompt,
// and so apply only to that request.
func TestALimitBesideAPromptIsHalvedForOneRequest(t *testing.T) {
	r := Request{Request: llm.Request{MaxTokens: 8192}, Limit: both[0]}
	for _, message := range []string{
		"max_tokens 8192 and a prompt of 3000 tokens exceed 10000",
		"max_tokens is too large: 8192; the request has 3000 input tokens, at most 10000 in all",
	} {
		c := learn(r, false, both, &llm.Error{Kind: kind.ErrBadRequest, Status: 400, Message: message})
		if !c.isOnce {
			t.Fatalf("%q holds for later requests", message)
		}
		var learned traits
		if c.apply(&learned); learned.MaxTokens != 4096 {
			t.Errorf("%q: got %+v", message, learned)
		}
	}
}

func TestALimitIsRenamedAndThenLeftOut(t *testing.T) {
	for message, status := range map[string]int{
		"body.max_completion_tokens: Extra inputs are not permitted":                      422,
		"Unexpected request argument supplied: max_completion_tokens":                     400,
		"Unknown name \"max_completion_tokens\": Cannot find field.":                      400,
		"Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead.":       400,
		"max_completion_tokens is not supported, the maximum is given by the model's own": 400,
	} {
		r := Request{Request: llm.Request{MaxTokens: 8192}, Limit: both[0]}
		if learned, _ := learnFrom(r, false, status, kind.ErrBadRequest, message); learned.Limit != both[1] {
			t.Errorf("%q: got %+v", message, learned)
		}
		r.Limit = both[1]
		if learned, _ := learnFrom(r, false, status, kind.ErrBadRequest, message); learned.Limit != noLimit {
			t.Errorf("%q again: got %+v", message, learned)
		}
	}
}

func TestSchemasAreRefusedInManyWords(t *testing.T) {
	for _, c := range []struct {
		status  int
		message string
	}{
		{400, "failed to parse grammar"},
		{500, "Failed to initialize samplers: failed to parse grammar"},
		{400, "guided decoding backend failed to compile"},
		{404, "No endpoints found that can handle the requested parameters."},
		{400, "json_validate_failed: Failed to generate JSON. Please adjust your prompt."},
		{400, "strict: Input should be True"},
		{400, "This response_format type is unavailable now"},
		{400, "Invalid parameter: 'response_format' of type 'json_schema' is not supported with this model."},
		{400, "Invalid schema for response_format 'reply': 'required' is required to include every key"},
		{400, "'response_format.type' must be 'json_schema' or 'text'"},
		{422, "body.response_format: Extra inputs are not permitted"},
		{400, "This model does not support response format `json_schema`."},
		{400, "The specified schema produces a constraint that has too many states for serving."},
		{400, "Unknown name \"response_schema\": Cannot find field."},
		{400, "JSON mode is not enabled for this model"},
		{400, "The provided JSON schema contains features not supported by xgrammar."},
		{400, "structured outputs are not supported by this engine"},
		{501, "Controlled generation is not available here"},
		{500, "constrained decoding: regex failed to compile"},
		{400, "Invalid request"},
		{422, "参数有误"},
	} {
		r := Request{Request: llm.Request{Schema: json.RawMessage(`{"type":"boolean"}`)}, Shape: &Shape{}}
		of := kind.ErrBadRequest
		if c.status == 500 {
			of = kind.ErrServer
		}
		learned, ok := learnFrom(r, true, c.status, of, c.message)
		if !ok || !learned.refusesSchema(hashSchema(r.Request)) {
			t.Errorf("%q: got %+v", c.message, learned)
		}
		r.Shape = nil
		if learned, _ := learnFrom(r, false, c.status, of, c.message); learned.refusesSchema(hashSchema(r.Request)) {
			t.Errorf("%q: a schema is to blame that was not sent", c.message)
		}
	}
}

func TestARoleOfTheSystemIsRefusedInManyWords(t *testing.T) {
	messages := []llm.Message{{Role: llm.RoleSystem, Content: "s"}, {Role: llm.RoleUser, Content: "q"}}
	for message, status := range map[string]int{
		"System role not supported": 400,
		"Jinja Exception: Conversation roles must alternate user/assistant/user/assistant/...":        500,
		"Unsupported value: 'messages[0].role' does not support 'system' with this model.":            400,
		"Developer instruction is not enabled for models/gemma-3-27b-it":                              400,
		"messages.0.role: Input should be 'user' or 'assistant'":                                      422,
		"This model does not support system messages, please put it into the user's":                  400,
		"Only user and assistant roles are supported! None None":                                      400,
		"Invalid value: 'system'. Supported values are: 'user', 'assistant'":                          400,
		"first message must be from user":                                                             400,
		"Only user and assistant roles are supported, with the exception of an initial `system role`": 400,
	} {
		of := kind.ErrBadRequest
		if status == 500 {
			of = kind.ErrServer
		}
		r := Request{Request: llm.Request{Messages: messages}}
		if learned, _ := learnFrom(r, false, status, of, message); !learned.lacks(systemPart) {
			t.Errorf("%q: got %+v", message, learned)
		}
		r.Messages = messages[1:]
		if learned, _ := learnFrom(r, false, status, of, message); learned.lacks(systemPart) {
			t.Errorf("%q: there is no such message", message)
		}
	}
}

func TestSystemMessagesMoveToTheFirstMessageOfTheUser(t *testing.T) {
	user := func(text string) llm.Message { return llm.Message{Role: llm.RoleUser, Content: text} }
	assistant := llm.Message{Role: llm.RoleAssistant, Content: "a"}
	messages := []llm.Message{{Role: llm.RoleSystem, Content: "s"}, user("q"), assistant, user("r"), user("t")}
	got := moveSystem(messages)
	want := []llm.Message{user("s\n\nq"), assistant, user("r\n\nt")}
	equal := func(a, b llm.Message) bool { return a.Role == b.Role && a.Content == b.Content }
	if !slices.EqualFunc(got, want, equal) || messages[1].Content != "q" {
		t.Errorf("got %+v", got)
	}
	if got := moveSystem([]llm.Message{messages[0], assistant}); len(got) != 2 || got[0].Role != llm.RoleUser {
		t.Errorf("got %+v", got)
	}
}

func TestUselessTraitsAreNotLearned(t *testing.T) {
	r := Request{Request: llm.Request{MaxTokens: 8192}, Limit: both[0]}
	for _, failure := range []*llm.Error{
		{Kind: kind.ErrAuth, Status: 401, Message: "max_tokens is too large: at most 10"},
		{Kind: kind.ErrServer, Status: 503, Message: "no schema today"},
		{Kind: kind.ErrBadRequest, Message: "max_tokens"},
		{Kind: kind.ErrCut, Err: errors.New("broken")},
	} {
		if c := learn(r, true, both, failure); c.apply != nil {
			t.Errorf("%v teaches something", failure)
		}
	}
}

func TestAServerThatOnlyStreamsIsAskedForStreams(t *testing.T) {
	for _, message := range []string{
		"This model only support stream mode, please enable the stream parameter to access the model.",
		"parameter.enable_thinking must be set to false for non-streaming calls",
	} {
		if learned, _ := learnFrom(Request{}, false, 400, kind.ErrBadRequest, message); !learned.lacks(wholePart) {
			t.Errorf("%q: got %+v", message, learned)
		}
	}
}
