package chat

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// ownMembers are the members of a request's body that have their own settings, or that determine
// the form of the reply.
var ownMembers = []string{
	"model", "messages", "system", "max_tokens", "max_completion_tokens", "n", "stop", "stop_sequences",
	"stream", "stream_options", "response_format", "output_config", "cache_control",
	"temperature", "top_p", "seed", "reasoning_effort",
	"tools", "tool_choice", "functions", "function_call", "input", "encoding_format",
}

// CheckExtra returns an error unless text is a JSON object whose members may be added to a request.
func CheckExtra(text json.RawMessage) error {
	var members map[string]json.RawMessage
	if err := json.Unmarshal(text, &members); err != nil || members == nil {
		return errors.New("the extra body is not a JSON object")
	}

	for name := range members {
		if slices.Contains(ownMembers, strings.ToLower(name)) {
			return fmt.Errorf("the extra body has the member %q, which requests set themselves: "+
				"remove it, and use the setting if there is one", name)
		}
	}
	return nil
}

// AddExtra adds the members of an object to a body, which must be a nonempty object.
func AddExtra(body, extra json.RawMessage) (json.RawMessage, error) {
	if extra == nil {
		return body, nil
	}
	if err := CheckExtra(extra); err != nil {
		return nil, err
	}

	text := strings.TrimSpace(string(extra))
	if members := strings.TrimSpace(text[1 : len(text)-1]); members != "" {
		return json.RawMessage(string(body[:len(body)-1]) + "," + members + "}"), nil
	}
	return body, nil
}
