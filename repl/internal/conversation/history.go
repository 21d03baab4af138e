package conversation

import (
	"cmp"
	"fmt"
	"slices"
	"unicode/utf8"

	"github.com/rlmhq/rlm/internal/text/lazyregexp"
	"github.com/rlmhq/rlm/repl/internal/calls"
	"github.com/rlmhq/rlm/repl/internal/usage"
	"github.com/rlmhq/rlm/repl/llm"
)

// CountTokens estimates the number of tokens in messages.
func CountTokens(messages []llm.Message) int64 {
	return usage.EstimateInput(llm.Request{Messages: messages})
}

// signals score a turn of a conversation by its content; turns with a high score are kept longest.
// The scores are those of the Recursive Reflector.
var signals = []struct {
	role    llm.Role
	pattern *lazyregexp.Regexp
	score   float64
}{
	{llm.RoleUser, failureSigns, 3},
	{llm.RoleUser, lazyregexp.New(`(?i)found|pattern|insight|discovered`), 2},
	{llm.RoleAssistant, lazyregexp.New(`FINAL\(`), 2},
	{llm.RoleAssistant, lazyregexp.New(`ask_llm|llm_query`), 1},
	{llm.RoleUser, lazyregexp.New(`\(no output\)`), -1},
}

// failureSigns indicate that a turn's code failed.
var failureSigns = lazyregexp.New(`Error|Exception|Traceback|stderr:`)

// told reports whether the feedback to the model in a turn matches a sign.
func told(turn []llm.Message, sign *lazyregexp.Regexp) bool {
	return slices.ContainsFunc(
		turn,
		func(m llm.Message) bool { return m.Role == llm.RoleUser && sign.MatchString(m.Content) },
	)
}

// longOutput is the length from which output is considered substantial, in characters.
const longOutput = 500

// importance scores a turn.
func importance(turn []llm.Message) float64 {
	score := 0.0
	for _, s := range signals {
		if slices.ContainsFunc(turn, func(m llm.Message) bool {
			return m.Role == s.role && s.pattern.MatchString(m.Content)
		}) {
			score += s.score
		}
	}

	if slices.ContainsFunc(turn, func(m llm.Message) bool {
		return m.Role == llm.RoleUser && utf8.RuneCountInString(m.Content) > longOutput
	}) {
		score++
	}
	return score
}

// TrimTurns drops the least important turns until messages have at most limit characters. The first
// keep messages are kept; turns (a reply with the messages after it) keep their order. One line
// reports the omitted turns. It is appended to the last message that was kept unconditionally,
// because some servers reject consecutive user messages. The last turn is also kept, because the
// model has not answered it yet.
func TrimTurns(messages []llm.Message, keep int, limit int) []llm.Message {
	total := CountChars(messages)
	turns := turnsOf(messages[keep:])
	if total <= limit || len(turns) < 2 {
		return messages
	}
	order := make([]int, len(turns)-1)
	for i := range order {
		order[i] = i
	}

	slices.SortStableFunc(order, func(a, b int) int {
		return cmp.Compare(importance(turns[a]), importance(turns[b]))
	})
	dropped := map[int]bool{}
	failures := 0
	for _, i := range order {
		if total <= limit {
			break
		}
		dropped[i] = true
		total -= CountChars(turns[i])
		if told(turns[i], failureSigns) {
			failures++
		}
	}

	out := AppendUser(
		messages[:keep],
		fmt.Sprintf("[%d earlier iterations omitted: %d error(s), %d exploration(s)]",
			len(dropped), failures, len(dropped)-failures),
	)
	for i, turn := range turns {
		if !dropped[i] {
			out = append(out, turn...)
		}
	}

	return out
}

// CountChars returns the number of characters in messages.
func CountChars(messages []llm.Message) int {
	n := 0
	for _, m := range messages {
		n += utf8.RuneCountInString(m.Content)
	}
	return n
}

// turnsOf splits messages before each reply.
func turnsOf(messages []llm.Message) [][]llm.Message {
	var turns [][]llm.Message
	for _, m := range messages {
		if m.Role == llm.RoleAssistant || len(turns) == 0 {
			turns = append(turns, nil)
		}
		turns[len(turns)-1] = append(turns[len(turns)-1], m)
	}

	return turns
}

// AppendReply appends a model's reply and its feedback to a conversation, and leaves the original
// unchanged.
func AppendReply(messages []llm.Message, reply, told string) []llm.Message {
	return append(
		slices.Clip(messages),
		llm.Message{
			Role:    llm.RoleAssistant,
			Content: calls.NonEmpty(reply),
		},
		llm.Message{Role: llm.RoleUser, Content: told},
	)
}

// AppendUser appends a sentence of the user to a conversation, and leaves the original unchanged.
// If the last message is the user's, the sentence is appended to that message, because roles must
// alternate.
func AppendUser(messages []llm.Message, text string) []llm.Message {
	out := slices.Clone(messages)
	if last := len(out) - 1; last >= 0 && out[last].Role == llm.RoleUser {
		out[last].Content += "\n\n" + text
		return out
	}
	return append(out, llm.Message{Role: llm.RoleUser, Content: text})
}
