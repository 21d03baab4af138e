package httpclient

import (
	"encoding/json"
	"errors"
	"net/http"
	"testing"

	"github.com/rlmhq/rlm/repl/llm/internal/kind"
)

// tooLong holds the messages with which servers refuse a prompt as too long.
var tooLong = map[string]string{
	"OpenAI": "This model's maximum context length is 128000 tokens. However, your " +
		"messages resulted in 141232 tokens.",
	"OpenAI's newer models": "Your input exceeds the context window of this model. Please adjust " +
		"your input and try again.",
	"OpenAI's limit": "Input tokens exceed the configured limit of 272000 tokens. Your " +
		"messages resulted in 300000 tokens.",
	"DeepSeek": "This model's maximum context length is 65536 tokens. However, you requested 70000 tokens " +
		"(62000 in the messages, 8000 in the completion).",
	"OpenRouter": "This endpoint's maximum context length is 32768 tokens. However, you " +
		"requested about 40000 tokens.",
	"vLLM": "The decoder prompt (length 5000) is longer than the maximum model length of 4096.",
	"vLLM's newer": "This model's maximum context length is 4096 tokens. Your request has 5000 input tokens. " +
		"Please reduce the length of the input messages.",
	"SGLang":           "The input (9000 tokens) is longer than the model's context length (8192 tokens).",
	"SGLang's sum":     "Requested token count exceeds the model's maximum context length of 8192 tokens.",
	"llama.cpp":        "the request exceeds the available context size, try increasing it",
	"Ollama":           "the input length exceeds the context length",
	"Ollama's newer":   "prompt too long; exceeded max context length by 20 tokens",
	"LM Studio":        "Context size has been exceeded.",
	"LM Studio's keep": "The number of tokens to keep from the initial prompt is greater than the context length",
	"LM Studio's load": "Trying to keep the first 9000 tokens. However, the model is loaded " +
		"with context length of only 4096 tokens",
	"TGI":          "Input validation error: `inputs` tokens + `max_new_tokens` must be <= 4096. Given: 5000",
	"TGI's inputs": "Input validation error: `inputs` must have less than 1024 tokens. Given: 2048",
	"Mistral": "Prompt contains 40000 tokens and 0 draft tokens, too large for model " +
		"with 32768 maximum context length",
	"Groq": "Please reduce the length of the messages or completion.",
	"Cerebras": "Please reduce the length of the messages or completion. Current " +
		"length is 10000 while limit is 8192",
	"Fireworks":       "The prompt is too long: 140000, model maximum context length: 131071",
	"Bedrock":         "Input is too long for requested model.",
	"Bedrock's count": "Too many input tokens. Max input tokens: 8192, request input token count: 9000",
	"Anthropic":       "prompt is too long: 215000 tokens > 200000 maximum",
	"Anthropic's sum": "input length and `max_tokens` exceed context limit: 190000 + 20000 > 200000",
	"Gemini":          "The input token count (1196265) exceeds the maximum number of tokens allowed (1048575).",
	"Vertex": "Unable to submit request because the input token count is 32825 but " +
		"model only supports up to 32768.",
	"Cohere":       "too many tokens: total number of tokens in the prompt cannot exceed 4081 - received 5000",
	"LiteLLM":      "litellm.ContextWindowExceededError: the request does not fit",
	"xAI":          "This model's maximum prompt length is 131072 but the request contains 140000 tokens.",
	"DashScope":    "<400> InternalError.Algo.InvalidParameter: Range of input length should be [1, 30720]",
	"Moonshot":     "Invalid request: Your request exceeded model token limit: 8192",
	"Zhipu":        "Prompt exceeds max length",
	"GLM":          "Input length 877338 exceeds the maximum allowed input length of 639968 tokens",
	"MiniMax":      "invalid params, context window exceeds limit (2013)",
	"Copilot":      "prompt token count of 70000 exceeds the limit of 64000",
	"Databricks":   "BAD_REQUEST: prompt token count (9000) cannot exceed 8192",
	"watsonx":      "the number of input tokens 5000 cannot exceed the total tokens limit 4096 for this model",
	"TabbyAPI":     "Prompt length 9000 is greater than max_seq_len 8192",
	"TensorRT-LLM": "prompt length (9000) exceeds maximum input length (8192)",
	"Cloudflare": "The estimated number of input and maximum output tokens (9000) " +
		"exceeded this model context window limit (8192)",
	"Docker":        "prompt has 9,000 tokens, but the configured context size is 8,192 tokens",
	"Volcengine":    "Total tokens of image and text exceed max message tokens",
	"Azure's proxy": "tokens in request more than max tokens allowed",
	"Qianfan":       "the max input characters is 20000",
	"Chinese":       "Prompt 超长，请缩短",
	// words that are in no table
	"own words 1": "Your conversation is too long: 9000 tokens.",
	"own words 2": "Request has 120000 characters, which is more than 100000 characters of input supported",
	"own words 3": "The message sequence exceeds our context of 8k",
	"own words 4": "please shorten the input: 9000 tokens",
}

func TestPromptsThatAreTooLongAreRecognisedInManyWords(t *testing.T) {
	for server, message := range tooLong {
		for _, status := range []int{400, 413, 422} {
			text := []byte(`{"error":{"message":` + quote(message) + `,"code":` + `400}}`)
			got := classifyStatus(status, ParseFailure(text).Kind, message)
			if !errors.Is(got, kind.ErrContextLength) {
				t.Errorf("%s, status %d: got %v for %q", server, status, got, message)
			}
		}
	}
}

func TestOtherComplaintsAreNotAboutTheLengthOfPrompts(t *testing.T) {
	for message, status := range map[string]int{
		"max_tokens is too large: 8192. This model supports at most 4096 completion tokens.":      400,
		"max_tokens: 64000 > 8192, which is the maximum allowed number of output tokens for this": 400,
		"Rate limit exceeded: too many tokens per minute":                                         429,
		"Too many tokens, please wait before trying again.":                                       429,
		"Invalid schema for response_format: the schema exceeds the maximum depth of 10":          400,
		"The image in the message is larger than 20 MB":                                           400,
		"You exceeded your current quota for input tokens per day":                                400,
		"too many tools: the request has more than 128 functions":                                 400,
		"Unsupported value: 'temperature' must be less than 2":                                    400,
		"Invalid request":                400,
		"messages: roles must alternate": 400,
	} {
		text := []byte(`{"error":{"message":` + quote(message) + `}}`)
		if got := classifyStatus(status, ParseFailure(text).Kind, message); errors.Is(got, kind.ErrContextLength) {
			t.Errorf("%q is taken to be about the length", message)
		}
	}
}

func TestARequestThatAloneExceedsARateIsTooLong(t *testing.T) {
	const message = "Request too large for gpt-4 on tokens per min (TPM): Limit 30000, Requested 40000."
	got := classifyStatus(http.StatusTooManyRequests, kind.ErrRateLimited, message)
	if !errors.Is(got, kind.ErrContextLength) {
		t.Errorf("got %v", got)
	}
}

// quote returns text as a JSON string.
func quote(text string) string {
	quoted, err := json.Marshal(text)
	if err != nil {
		panic(err)
	}
	return string(quoted)
}
