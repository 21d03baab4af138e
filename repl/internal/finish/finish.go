// Package finish has the single table of the reasons why a reply ended, for all servers, with
// streaming or without.
//
// Only the words of a fixed set mean that a reply is complete. Any other word, even one that no
// server has used yet, means that the reply is not an answer.
package finish

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
)

// The reasons in the project's words.
const (
	Stop      = "stop"       // the reply is complete
	Length    = "length"     // a limit of tokens cut it
	Refusal   = "refusal"    // the model or a filter declined
	ToolCalls = "tool_calls" // the model waits for the result of a tool
)

// whole holds the words for a complete reply, as fold returns them.
var whole = []string{
	"stop", "endturn", "stopsequence", "stopstringfound",
	"eos", "eostoken", "eosfound", "endoftext",
	"complete", "completed", "finish", "finished", "normal",
}

// toolCalls holds the words for a reply that calls tools.
var toolCalls = []string{"toolcalls", "toolcall", "tooluse", "functioncall", "functioncalls"}

// The parts of words that distinguish an incomplete reply from a failed one. The caller uses
// neither reply; the parts only decide how it continues.
var (
	filterParts = []string{
		"filter", "safety", "refus", "block", "prohibited", "sensitive", "policy", "moderation",
		"guardrail", "toxic", "spii", "recitation", "modelarmor", "violation", "harm",
	}
	cutParts = []string{
		"length", "token", "maxoutput", "maxlen", "maxcontext", "contextwindow", "contextlimit",
		"truncat", "incomplete", "errorlimit", "pauseturn",
	}
)

// Read returns the reason for a server's word, or false if the word means that the server failed.
func Read(word string) (reason string, ok bool) {
	folded := fold(word)
	hasPart := func(part string) bool { return strings.Contains(folded, part) }
	switch {
	case slices.Contains(whole, folded):
		return Stop, true
	case slices.Contains(toolCalls, folded):
		return ToolCalls, true
	case slices.ContainsFunc(filterParts, hasPart):
		return Refusal, true
	case slices.ContainsFunc(cutParts, hasPart), folded == "limit":
		return Length, true
	}
	return "", false
}

// fold removes the differences between spellings of one word, such as MAX_TOKENS, maxTokens and
// FINISH_REASON_MAX_TOKENS.
func fold(word string) string {
	letters := strings.Map(func(r rune) rune {
		if !unicode.IsLetter(r) {
			return -1
		}
		return unicode.ToLower(r)
	}, word[:min(len(word), maxWord)])
	return strings.TrimPrefix(strings.TrimPrefix(letters, "finishreason"), "reason")
}

// maxWord bounds a word, in bytes.
const maxWord = 200

// Merge returns the word that applies after one more event of a stream. A word for a complete reply
// does not replace an earlier one for an incomplete reply. Some servers send null as a string.
func Merge(before, word string) string {
	if word == "" || word == "null" || word == "None" {
		return before
	}
	if reason, _ := Read(before); before != "" && reason != Stop {
		return before
	}
	return word
}

// Describe returns the message about a reply that the server failed to complete.
func Describe(word string) string {
	return fmt.Sprintf("the reply ended with the finish reason %.60q, which does not mean that it is whole", word)
}

// DescribeFilter returns the string that replaces a reply that a filter stopped, because the
// beginning of such a reply is not an answer or an explanation.
func DescribeFilter(word string) string {
	return fmt.Sprintf("a filter stopped the reply (finish reason %.60q)", word)
}
