// Package finish has the one table of the reasons why a reply ended, for all servers, streamed or
// not.
//
// Only the words of a known set mean that a reply is whole. Any other word, also one that no
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
	Stop      = "stop"       // the reply is whole
	Length    = "length"     // a limit of tokens cut it
	Refusal   = "refusal"    // the model or a filter declined
	ToolCalls = "tool_calls" // the model waits for the result of a tool
)

// whole are the words for a reply that is whole, in the form of fold.
var whole = []string{
	"stop", "endturn", "stopsequence", "stopstringfound",
	"eos", "eostoken", "eosfound", "endoftext",
	"complete", "completed", "finish", "finished", "normal",
}

// toolCalls are the words for a reply that calls tools.
var toolCalls = []string{"toolcalls", "toolcall", "tooluse", "functioncall", "functioncalls"}

// The parts of words that distinguish a reply that is not whole from a failed one. They only decide
// how the caller continues: it uses neither reply.
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

// Read returns the reason that a server's word means, or false if the server failed.
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

// fold removes what differs between the spellings of one word, such as MAX_TOKENS, maxTokens and
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

// Merge returns the word that counts after one more event of a stream. A word for a whole reply
// does not take back an earlier one for a reply that is not. Some servers write their null as a text.
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

// DescribeFilter returns the text that replaces a reply that a filter stopped: the beginning of
// such a reply is neither an answer nor an explanation.
func DescribeFilter(word string) string {
	return fmt.Sprintf("a filter stopped the reply (finish reason %.60q)", word)
}
