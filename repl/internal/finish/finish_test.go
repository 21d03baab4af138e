package finish

import "testing"

// TestOnlyKnownWordsMeanThatAReplyIsWhole checks the words of servers. "" means a failure.
func TestOnlyKnownWordsMeanThatAReplyIsWhole(t *testing.T) {
	for reason, words := range map[string][]string{
		Stop: {
			"stop", "STOP", "end_turn", "stop_sequence", "eos", "eos_token", "EOS_TOKEN", "eosFound",
			"stopStringFound", "endoftext", "COMPLETE", "completed", "FINISH", "normal",
			"FINISH_REASON_STOP", "FinishReason.STOP", "REASON_STOP",
		},
		ToolCalls: {"tool_calls", "tool_use", "TOOL_CALL", "function_call", "toolCalls", "REASON_TOOL_CALLS"},
		Length: {
			"length", "max_tokens", "MAX_TOKENS", "FinishReason.MAX_TOKENS", "max_output_tokens",
			"max_new_tokens", "model_length", "max_length", "MAX_LENGTH", "incomplete", "pause_turn",
			"model_context_window_exceeded", "maxPredictedTokensReached", "contextLengthReached",
			"ERROR_LIMIT", "REASON_MAX_LEN", "REASON_MAX_CONTEXT", "limit", "token_limit", "truncated",
		},
		Refusal: {
			"content_filter", "content_filtered", "SAFETY", "IMAGE_SAFETY", "RECITATION", "BLOCKLIST", "SPII",
			"PROHIBITED_CONTENT", "refusal", "sensitive", "guardrail_intervened",
			"MODEL_ARMOR", //nolint:misspell // Google's word
			"ERROR_TOXIC", "blocked",
		},
		"": {
			"error", "ERROR", "abort", "network_error", "insufficient_system_resource", "OTHER",
			"MALFORMED_FUNCTION_CALL", "malformed_tool_use", "UNEXPECTED_TOOL_CALL", "TIMEOUT",
			"FINISH_REASON_UNSPECIFIED", "LANGUAGE", "failed", "cancelled", "USER_CANCEL", "unknown",
			"unload", "", "stop?no", "stopping", "not_stop", "unfinished", "\x00", "結束",
		},
	} {
		for _, word := range words {
			if got, ok := Read(word); got != reason || ok != (reason != "") {
				t.Errorf("%q means %q, %v, want %q", word, got, ok, reason)
			}
		}
	}
}

func TestAWholeEndDoesNotTakeBackAnEarlierOne(t *testing.T) {
	for _, c := range [][3]string{
		{"", "stop", "stop"},
		{"stop", "", "stop"},
		{"stop", "null", "stop"},
		{"stop", "None", "stop"},
		{"", "null", ""},
		{"stop", "length", "length"},
		{"MAX_TOKENS", "stop", "MAX_TOKENS"},
		{"error", "stop", "error"},
		{"tool_calls", "stop", "tool_calls"},
	} {
		if got := Merge(c[0], c[1]); got != c[2] {
			t.Errorf("%q, then %q: %q, want %q", c[0], c[1], got, c[2])
		}
	}
}
