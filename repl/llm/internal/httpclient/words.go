package httpclient

import (
	"slices"
	"strings"

	"github.com/rlmhq/rlm/internal/text/lazyregexp"
	"github.com/rlmhq/rlm/repl/llm/internal/kind"
)

// signs holds the codes and words with which servers describe a kind of failure, the most specific
// first.
var signs = []struct {
	kind  error
	codes []string
	words []string
}{
	{
		kind.ErrQuota,
		[]string{"insufficient_quota", "billing"},
		[]string{"credit balance is too low", "insufficient credits"},
	},
	{
		kind.ErrContextLength,
		[]string{
			"context_length_exceeded", "exceed_context_size", "request_too_large", "string_above_max_length",
			"contextwindowexceeded", "model_context_window_exceeded",
		},
		[]string{
			"maximum context length", // OpenAI, DeepSeek, OpenRouter, vLLM, Fireworks, Mistral
			"max context length",
			"maximum model length", // vLLM
			"maximum input length",
			"model's context length", // SGLang
			"contextwindowexceeded",  // LiteLLM
			"context window",         // OpenAI, MiniMax, Cloudflare, LiteLLM
			"prompt is too long",     // Anthropic, Fireworks
			"prompt too long",        // Ollama
			"exceed context limit",   // Anthropic
			"available context size", // llama.cpp
			"context size has been exceeded",
			"configured context size",
			"exceeds the context length", // Ollama
			"exceeds context length",
			"exceed the context length",
			"context length exceeded",
			"greater than the context length",    // LM Studio
			"context length of only",             // LM Studio
			"maximum number of tokens allowed",   // Gemini
			"input token count",                  // Gemini, Vertex
			"`inputs` tokens + `max_new_tokens`", // TGI, Together
			"`inputs` must have less than",       // TGI
			"input is too long",                  // Bedrock
			"too many input tokens",              // Bedrock
			"maximum prompt length",              // xAI
			"maximum allowed input length",       // GLM
			"prompt exceeds max length",          // Zhipu
			"range of input length",              // DashScope
			"exceeded model token limit",         // Moonshot
			"reduce the length of the messages",  // OpenAI, Groq, Cerebras
			"reduce your message size",           // Groq
			"reduce your prompt",
			"tokens in the prompt cannot exceed", // Cohere
			"more than max tokens allowed",
			"prompt token count",     // Copilot, Databricks
			"number of input tokens", // watsonx
			"max message tokens",     // Volcengine
			"max input characters",   // Qianfan
			"max_seq_len",            // TabbyAPI, TensorRT-LLM
			"max_prompt_len",
			"exceeds n_ctx", "exceed n_ctx", // llama.cpp
			"prompt 超长", "输入过长", "输入长度超过",
		},
	},
	{
		kind.ErrRefused,
		[]string{"content_filter", "content_policy"},
		[]string{"content management policy"},
	},
	{kind.ErrUnknownModel, []string{"model_not_found"}, nil},
	{kind.ErrRateLimited, []string{"rate_limit", "429"}, nil},
	{kind.ErrAuth, []string{"authentication_error", "permission_error", "invalid_api_key"}, nil},
	{kind.ErrServer, []string{"overloaded", "api_error", "server_error", "timeout"}, nil},
	{kind.ErrBadRequest, []string{"invalid_request", "bad_request", "badrequest"}, nil},
}

// classifyWords returns the kind that a server's codes and words indicate.
func classifyWords(codes, message string) error {
	codes, message = strings.ToLower(codes), strings.ToLower(message)
	for _, sign := range signs {
		if containsAny(codes, sign.codes) || containsAny(message, sign.words) {
			return sign.kind
		}
	}
	return kind.ErrServer
}

// containsAny reports whether text contains one of several words.
func containsAny(text string, words []string) bool {
	return slices.ContainsFunc(words,
		func(word string) bool { return strings.Contains(text, word) })
}

// The words of complaints about the length of a prompt, for servers that are not in the table:
// words for a subject, and words for too much. A complaint about another problem contains words of
// otherWords.
var (
	promptWords = lazyregexp.New(`\b(?:prompts?|inputs?|messages?|context|conversation|request|sequence)\b`)
	lengthWords = lazyregexp.New(`\b(?:tokens?|length|context|characters|long|size)\b`)
	excessWords = lazyregexp.New(`too (?:long|large|many|big)|exceed|(?:longer|greater|larger|more|less) than|` +
		`supports? (?:only )?up to|reduce|shorten|over the limit|over limit|above the`)
	otherWords = lazyregexp.New(`max(?:imum)?_?(?:completion|output|new)?_?tokens|(?:completion|output|draft) tokens|` +
		`\b(?:images?|files?|audio|schema|grammar|enum|stop|tools?|functions?|rate|quota|minute|day|balance|` +
		`temperature|top_p|wait|concurren\w*|status)\b`)
)

// isAboutLength reports whether the words of a server's error mean that the prompt is too long.
func isAboutLength(message string) bool {
	message = strings.ToLower(message)
	return promptWords.MatchString(message) && lengthWords.MatchString(message) &&
		excessWords.MatchString(message) && !otherWords.MatchString(message)
}

// isTooLargeForRate reports whether a single request exceeds the server's allowance per minute, so
// that it can never succeed.
func isTooLargeForRate(message string) bool {
	return strings.Contains(strings.ToLower(message), "request too large")
}
