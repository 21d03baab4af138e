package conversation

import (
	"fmt"
	"strings"
	"testing"

	"github.com/rlmhq/rlm/repl/llm"
)

func TestTrimKeepsWhatMatters(t *testing.T) {
	m := []llm.Message{
		{Role: llm.RoleSystem, Content: "system"}, {Role: llm.RoleUser, Content: "question"},
	}
	add := func(reply, told string) {
		m = append(
			m, llm.Message{Role: llm.RoleAssistant, Content: reply},
			llm.Message{Role: llm.RoleUser, Content: told},
		)
	}
	add("look", "(no output)"+strings.Repeat(" ", 400))
	add("try", "Traceback: ValueError "+strings.Repeat(".", 400))
	add("llm_query", "found a pattern "+strings.Repeat(".", 400))
	add("dull", strings.Repeat(".", 400))
	add("last", "latest")
	got := transcript(TrimTurns(m, 2, 1_000))
	for _, want := range []string{
		"[system]\nsystem", "question", "ValueError", "found a pattern", "latest",
		"[2 earlier iterations omitted: 0 error(s), 2 exploration(s)]",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is gone from %q", want, got)
		}
	}
	if strings.Contains(got, "(no output)") || strings.Contains(got, "dull") ||
		strings.Index(got, "ValueError") > strings.Index(got, "found a pattern") {
		t.Errorf("kept %q", got)
	}
	if same := TrimTurns(m, 2, 1_000_000); len(same) != len(m) {
		t.Error("what fits was trimmed")
	}
}

// TestMessageTrimmingTable scores a turn for each signal.
//
// Source 000, repl/internal/conversation/history.go: Iterations are scored by importance:
// errors +3.0, findings +2.0, FINAL() +2.0, ask_llm +1.0, long output +1.0, "(no output)"
// -1.0.
func TestMessageTrimmingTable(t *testing.T) {
	for _, c := range []struct {
		name, reply, told string
		want              float64
	}{
		{"nothing", "x", "y", 0},
		{"an error", "x", "ValueError", 3},
		{"an exception", "x", "Exception", 3},
		{"a traceback", "x", "Traceback", 3},
		{"stderr", "x", "stderr: z", 3},
		{"found", "x", "I Found it", 2},
		{"a pattern", "x", "a pattern", 2},
		{"an insight", "x", "insight", 2},
		{"discovered", "x", "discovered", 2},
		{"FINAL", "FINAL(1)", "y", 2},
		{"ask_llm", "ask_llm(1)", "y", 1},
		{"llm_query", "llm_query(1)", "y", 1},
		{"long output", "x", strings.Repeat("é", 501), 1},
		{"500 characters", "x", strings.Repeat("é", 500), 0},
		{"long reply", strings.Repeat("x", 600), "y", 0},
		{"no output", "x", "(no output)", -1},
		{"all", "FINAL(ask_llm())", "Error found (no output)" + strings.Repeat(".", 500), 8},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := importance(AppendReply(nil, c.reply, c.told)); got != c.want {
				t.Errorf("%s: the score is %v, want %v", c.name, got, c.want)
			}
		})
	}
}

// TestTrimTellsErrorsFromExplorations checks the line about omitted turns.
//
// Source 000, repl/internal/conversation/history.go: Dropped iterations are summarised: [N
// earlier iterations omitted: M error(s), K exploration(s)].
func TestTrimTellsErrorsFromExplorations(t *testing.T) {
	m := []llm.Message{{Role: llm.RoleUser, Content: "prompt"}}
	filler := strings.Repeat(".", 600)
	for _, told := range []string{"Error " + filler, "found it " + filler, "dull " + filler, "latest"} {
		m = AppendReply(m, "reply", told)
	}
	before := len(m)
	got := TrimTurns(m, 1, 100)
	if got[0].Content != "prompt\n\n[3 earlier iterations omitted: 1 error(s), 2 exploration(s)]" ||
		len(m) != before ||
		m[0].Content != "prompt" {
		t.Errorf("the summary is %q", got[0].Content)
	}
	for i, message := range got {
		if want := []llm.Role{llm.RoleUser, llm.RoleAssistant}[i%2]; message.Role != want {
			t.Errorf("message %d is the %s's", i, message.Role)
		}
	}
}

func TestConversationsAreNotWrittenTo(t *testing.T) {
	base := append(make([]llm.Message, 0, 8), llm.Message{Role: llm.RoleUser, Content: "q"})
	one, two := AppendReply(base, "", "told 1"), AppendReply(base, "b", "told 2")
	if one[1].Content != "(empty reply)" || one[2].Content != "told 1" || two[1].Content != "b" {
		t.Errorf("%+v and %+v", one, two)
	}
	if got := AppendUser(base, "more"); base[0].Content != "q" || len(got) != 1 ||
		got[0].Content != "q\n\nmore" {
		t.Errorf("%+v of %+v", got, base)
	}
	if got := AppendUser(one[:2], "more"); len(got) != 3 || got[2].Role != llm.RoleUser ||
		one[2].Content != "told 1" {
		t.Errorf("%+v", got)
	}
}

// transcript returns messages as one string.
func transcript(messages []llm.Message) string {
	var b strings.Builder
	for _, m := range messages {
		fmt.Fprintf(&b, "[%s]\n%s\n\n", m.Role, m.Content)
	}

	return strings.TrimRight(b.String(), "\n")
}
