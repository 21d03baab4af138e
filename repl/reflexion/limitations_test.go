package reflexion_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rlmhq/rlm/repl/ledger"
	"github.com/rlmhq/rlm/repl/llm"
	"github.com/rlmhq/rlm/repl/reflexion"
)

// Source 001 lists five known limitations. These tests check that the loop does not have them.

// TestLimitation1CritiqueJSON checks that critiques in fences and prose are read.
//
// Source 001, repl/reflexion/critique.go: Limitation 1: LLMs frequently wrap JSON in markdown
// code fences.
func TestLimitation1CritiqueJSON(t *testing.T) {
	for name, reply := range map[string]string{
		"fenced":     "```json\n" + faulty("major") + "\n```",
		"chatty":     "Here is my critique:\n\n" + faulty("major") + "\n\nI hope that helps!",
		"thinking":   "<think>it has {\"issues\": none}</think>" + faulty("major"),
		"wrapped":    `{"result": ` + faulty("major") + `}`,
		"other case": strings.ReplaceAll(faulty("Major"), "incorrect", "INCORRECT"),
	} {
		t.Run(name, func(t *testing.T) {
			m := &model{critiques: []string{reply, passes}}
			r := ended(t, config(m), reflexion.StatusPassed, 2)
			if c := r.Iterations[0].Critique; len(c.Issues) != 1 ||
				c.Issues[0].Severity != "major" || r.TotalLLMCalls != 4 {
				t.Errorf("it was read as %+v, in %d calls", c, r.TotalLLMCalls)
			}
		})
	}
}

// TestGracefulDegradation checks what happens after an unreadable critique.
//
// Source 001, repl/reflexion/critique.go: A critique that cannot be parsed: the original
// accepts the draft; here it never lets a draft pass.
func TestGracefulDegradation(t *testing.T) {
	t.Run("an unreadable critique is asked for again", func(t *testing.T) {
		m := &model{critiques: []string{`{"issues": [{"type": "vague"}], "confidence": 2}`, passes}}
		r := ended(t, config(m), reflexion.StatusPassed, 1)
		again := m.asked("critique")[1]
		if r.TotalLLMCalls != 3 || len(again.Messages) != 4 {
			t.Fatalf("%d calls, the last with %d messages", r.TotalLLMCalls, len(again.Messages))
		}
		holds(
			t, last(again), "does not meet the required schema", "$.issues[0].type",
			"$.issues[0].severity", "$.confidence", "Required:",
		)
	})
	t.Run("and never counts as a pass", func(t *testing.T) {
		m := &model{critiques: []string{"I like it."}}
		r := ended(t, config(m), reflexion.StatusUnjudged, 1)
		if c := r.Iterations[0].Critique; r.TotalLLMCalls != 4 || r.FinalDraft != "draft 1" ||
			c.Passes || c.Unreadable != 1 || c.Confidence != 0 {
			t.Errorf("%d calls, %+v", r.TotalLLMCalls, c)
		}
	})
	t.Run("a loop that breaks gives its last draft", func(t *testing.T) {
		broken := &llm.Error{Kind: llm.ErrServer, Model: "judge"}
		m := &model{
			judge: func(context.Context, llm.Request) (llm.Response, error) { return llm.Response{}, broken },
		}
		r, err := reflexion.Run(t.Context(), config(m))
		if !errors.Is(err, llm.ErrServer) || r.Status != ledger.StatusFailed || r.Success ||
			r.FinalDraft != "draft 1" || r.Iterations[0].Critique != nil {
			t.Errorf("got %v, %+v", err, r)
		}
	})
}

// write creates a file below a folder.
func write(t *testing.T, dir, name, text string) {
	t.Helper()
	path := filepath.Join(dir, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestLimitation2EvidenceIsSearched checks that each draft gets evidence from files.
//
// Source 001, repl/reflexion/evidence.go: Limitation 2: evidence gathering is context-only,
// and the same across all iterations.
func TestLimitation2EvidenceIsSearched(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "docs/guide.md", "# Guide\n\nDatabase migrations are set up with drizzle-kit.\n")
	write(
		t, dir, "src/push.go",
		"package db\n\n// pushSchema is forbidden on production databases.\nfunc pushSchema() error { return nil }\n",
	)
	write(t, dir, "src/other.go", "package db\n\nfunc unrelated() {}\n")
	m := &model{
		critiques: []string{
			`{"issues": [{"type": "unsupported", "description": "is pushSchema forbidden on ` +
				`production?", "severity": "major"}], "confidence": 1}`,
			passes,
		},
		draft: func(r llm.Request) (llm.Response, error) {
			if r.Metadata.Purpose == "draft" {
				return llm.Response{Text: "Set up migrations with a wizard."}, nil
			}
			return llm.Response{Text: "Do it without the wizard, and never push."}, nil
		},
	}
	cfg := config(m)
	cfg.Memory, cfg.Paths = reflexion.Memory{}, []string{dir}
	r := ended(t, cfg, reflexion.StatusPassed, 2)
	first, second := r.Iterations[0].Evidence, r.Iterations[1].Evidence
	if len(first) != 1 || first[0].Source != "documentation" ||
		first[0].Location != filepath.Join(dir, "docs", "guide.md")+":1" {
		t.Fatalf("the evidence on the first draft is %+v", first)
	}
	if e := first[0]; e.Relevance <= 0 || e.Relevance >= 1 || e.SupportsClaim == "" ||
		!strings.Contains(e.Content, "set up with drizzle-kit") {
		t.Errorf("it is %+v", e)
	}
	code := second[len(second)-1] // it is less relevant to the issue than the guide to the task
	if code.Source != "codebase" || !strings.Contains(code.Content, "forbidden on production") ||
		!strings.Contains(code.SupportsClaim, "is pushSchema forbidden") {
		t.Errorf("the evidence on the second draft is %+v", second)
	}
	// The reviser sees the evidence found for the issue, and so does the judge.
	holds(
		t, last(m.asked("revision")[0]), "forbidden on production databases", "push.go:1\n",
		"(codebase, relevance",
	)
	holds(t, last(m.asked("critique")[0]), "!forbidden on production databases")
	holds(t, last(m.asked("critique")[1]), "forbidden on production databases")
}

// TestLimitation3DraftsAreStreamed checks that drafts are streamed.
//
// Source 001, repl/reflexion/loop.go: Limitation 3: Level 3 cannot stream.
func TestLimitation3DraftsAreStreamed(t *testing.T) {
	m := &model{
		critiques: []string{faulty("major"), passes},
		draft: func(r llm.Request) (llm.Response, error) {
			return llm.Response{
				Text: strings.Repeat("a long draft ", 1000) + fmt.Sprint(r.Metadata.Turn),
			}, nil
		},
	}
	var mu sync.Mutex
	streamed := map[string]string{}
	cfg := config(m)
	cfg.Stream = true
	cfg.Progress = func(e ledger.Event) {
		mu.Lock()
		defer mu.Unlock()
		if e.Kind == ledger.EventDelta {
			streamed[fmt.Sprint(e.Purpose, e.Turn)] += e.Text
		}
	}
	r := ended(t, cfg, reflexion.StatusPassed, 2)
	if len(streamed) != 2 || streamed["draft1"] != r.Iterations[0].Draft ||
		streamed["revision2"] != r.FinalDraft {
		t.Errorf(
			"streamed were %d drafts, of %d and %d bytes", len(streamed), len(streamed["draft1"]),
			len(streamed["revision2"]),
		)
	}
}

// TestLimitation4JudgesWorkAtTheSameTime checks that judges are asked concurrently.
//
// Source 001, repl/reflexion/loop.go: Limitation 4: multiple sequential LLM calls per
// iteration.
func TestLimitation4JudgesWorkAtTheSameTime(t *testing.T) {
	const judges = 5
	var all sync.WaitGroup // a judge answers after all have been asked
	all.Add(judges)
	m := &model{judge: func(ctx context.Context, _ llm.Request) (llm.Response, error) {
		all.Done()
		all.Wait()
		return llm.Response{Text: passes, Finish: llm.FinishStop}, ctx.Err()
	}}
	cfg := config(m)
	cfg.Judges = judges
	r := ended(t, cfg, reflexion.StatusPassed, 1)
	slots := map[int]bool{}
	for _, asked := range m.asked("critique") {
		slots[asked.Metadata.Slot] = true
	}
	if r.TotalLLMCalls != 1+judges || len(slots) != judges {
		t.Errorf("%d calls, of %d judges", r.TotalLLMCalls, len(slots))
	}
}

// TestLimitation5RevisionsKeepConfidence checks that the prompt for a revision has the confidence
// of facts.
//
// Source 001, repl/reflexion/prompts.go: Limitation 5: the revision prompt omits fact
// confidence.
func TestLimitation5RevisionsKeepConfidence(t *testing.T) {
	m := &model{critiques: []string{faulty("major"), passes}}
	run(t, config(m))
	holds(
		t, last(m.asked("revision")[0]),
		"(confidence 0.85)\n```text\nUse drizzle-kit for migrations\n```", "(success rate 0.75)",
	)
}

func TestJudgesAreMerged(t *testing.T) {
	one := reflexion.Critique{Confidence: 0.9, Passes: true, Issues: []reflexion.Issue{
		{
			Type: "incorrect", Description: "The draft names port 80, which is wrong.",
			Severity: "minor",
		},
		{
			Type: "incorrect", Description: "The draft names port 81, which is wrong.",
			Severity: "minor",
		},
	}}
	two := reflexion.Critique{Confidence: 0.4, Passes: true, Issues: []reflexion.Issue{
		{
			Type: "incorrect", Description: "the draft names port 80 which is wrong!",
			Severity: "major", SuggestedFix: "443",
		},
		{
			Type: "missing", Description: "The draft names port 80, which is wrong.",
			Severity: "minor",
		},
	}}
	got := reflexion.Merge([]reflexion.Critique{one, two}, 0)
	if len(got.Issues) != 3 || got.Issues[0].Severity != "major" ||
		got.Issues[0].SuggestedFix != "443" {
		t.Errorf("the issues are %+v", got.Issues)
	}
	if got.Confidence != 0.4 || got.Passes {
		t.Errorf("got %+v", got)
	}
	if other := reflexion.Merge([]reflexion.Critique{two, one}, 0); !reflect.DeepEqual(got, other) {
		t.Errorf("in the other order it is %+v, not %+v", other, got)
	}
	// An unreadable critique keeps the draft from passing, whatever the other judges say.
	m := &model{judge: func(_ context.Context, r llm.Request) (llm.Response, error) {
		if r.Metadata.Slot == 1 {
			return llm.Response{Text: "no"}, nil
		}
		return llm.Response{Text: passes}, nil
	}}
	cfg := config(m)
	cfg.Judges, cfg.Retries = 3, -1
	r := ended(t, cfg, reflexion.StatusUnjudged, 1)
	if r.TotalLLMCalls != 4 || r.Iterations[0].Critique.Unreadable != 1 ||
		r.Iterations[0].Critique.Confidence != 0.9 {
		t.Errorf("%d calls, %+v", r.TotalLLMCalls, r.Iterations[0].Critique)
	}
}

func TestTheBudgetLeavesTheLastDraft(t *testing.T) {
	for _, c := range []struct {
		calls      int64
		iterations int
		draft      string
		judged     bool
	}{{1, 1, "draft 1", false}, {2, 1, "draft 1", true}, {3, 2, "draft 2", false}} {
		cfg := config(&model{critiques: []string{faulty("major")}})
		cfg.Budget.Calls = c.calls
		r := ended(t, cfg, ledger.StatusPartial, c.iterations)
		if r.FinalDraft != c.draft || !strings.Contains(r.Reason, "calls") ||
			(r.Iterations[c.iterations-1].Critique != nil) != c.judged {
			t.Errorf("with %d calls it is %+v", c.calls, r)
		}
	}
	synctest.Test(t, func(t *testing.T) {
		cfg := config(&model{judge: func(ctx context.Context, _ llm.Request) (llm.Response, error) {
			<-ctx.Done()
			return llm.Response{}, context.Cause(ctx)
		}})
		cfg.Budget.Wall = time.Minute
		r := ended(t, cfg, ledger.StatusPartial, 1)
		if !strings.Contains(r.Reason, "seconds") || r.FinalDraft != "draft 1" {
			t.Errorf("got %+v", r)
		}
	})
}

func TestTheCallerCanEndIt(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	gone := errors.New("the user has left")
	m := &model{judge: func(ctx context.Context, _ llm.Request) (llm.Response, error) {
		cancel(gone)
		<-ctx.Done()
		return llm.Response{}, context.Cause(ctx)
	}}
	cfg := config(m)
	cfg.Judges = 3
	r, err := reflexion.Run(ctx, cfg)
	if !errors.Is(err, gone) || r.Status != ledger.StatusCanceled || r.FinalDraft != "draft 1" {
		t.Errorf("got %v, %+v", err, r)
	}
}

// TestIssuesOfManyJudgesFitAPrompt checks that the severest issues are kept.
func TestIssuesOfManyJudgesFitAPrompt(t *testing.T) {
	var all []reflexion.Critique
	for judge := range 10 {
		var c reflexion.Critique
		for i := range 50 {
			c.Issues = append(c.Issues, reflexion.Issue{
				Type: "missing", Severity: "minor", Description: fmt.Sprintf("w%dx%d", judge, i),
			})
		}
		all = append(all, c)
	}
	all[9].Issues[49].Severity = "critical"
	got := reflexion.Merge(all, 0)
	if len(got.Issues) != 50 || got.Issues[0].Severity != "critical" || got.Passes {
		t.Errorf("%d issues, the first %+v, passes %v", len(got.Issues), got.Issues[0], got.Passes)
	}
}
