package repl

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/rlmhq/rlm/repl/llm"
)

// Tokens is about how many tokens messages have.
func Tokens(messages []llm.Message) int64 { return llm.EstimateInput(llm.Request{Messages: messages}) }

// signals score a turn of a conversation by what is in it: a high one is worth
// keeping. They are those of the Recursive Reflector.
var signals = []struct {
	role    llm.Role
	pattern *regexp.Regexp
	score   float64
}{
	{llm.RoleUser, regexp.MustCompile(`Error|Exception|Traceback|stderr:`), 3},
	{llm.RoleUser, regexp.MustCompile(`(?i)found|pattern|insight|discovered`), 2},
	{llm.RoleAssistant, regexp.MustCompile(`FINAL\(`), 2},
	{llm.RoleAssistant, regexp.MustCompile(`ask_llm|llm_query`), 1},
	{llm.RoleUser, regexp.MustCompile(`\(no output\)`), -1},
}

// longOutput is from where output counts as substantive, in characters.
const longOutput = 500

// importance scores a turn.
func importance(turn []llm.Message) float64 {
	score := 0.0
	for _, s := range signals {
		if slices.ContainsFunc(turn, func(m llm.Message) bool { return m.Role == s.role && s.pattern.MatchString(m.Content) }) {
			score += s.score
		}
	}
	if slices.ContainsFunc(turn, func(m llm.Message) bool { return m.Role == llm.RoleUser && len(m.Content) > longOutput }) {
		score++
	}
	return score
}

// Trim drops the least important turns until messages have at most limit
// characters. The first keep messages stay, turns (a reply and what follows it)
// stay in order, and one line says what is missing. The last turn stays, too: the
// model has not answered it yet.
func Trim(messages []llm.Message, keep int, limit int) []llm.Message {
	total := 0
	for _, m := range messages {
		total += len(m.Content)
	}
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
		for _, m := range turns[i] {
			total -= len(m.Content)
		}
		if importance(turns[i]) >= 3 {
			failures++
		}
	}
	out := slices.Clone(messages[:keep])
	out = append(out, llm.Message{Role: llm.RoleUser, Content: fmt.Sprintf("[%d earlier iterations omitted: %d error(s), %d exploration(s)]",
		len(dropped), failures, len(dropped)-failures)})
	for i, turn := range turns {
		if !dropped[i] {
			out = append(out, turn...)
		}
	}
	return out
}

// turnsOf cuts messages before each reply.
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

// Transcript is messages as text, for a model that is to sum them up.
func Transcript(messages []llm.Message) string {
	var b strings.Builder
	for _, m := range messages {
		fmt.Fprintf(&b, "[%s]\n%s\n\n", m.Role, m.Content)
	}
	return strings.TrimRight(b.String(), "\n")
}
