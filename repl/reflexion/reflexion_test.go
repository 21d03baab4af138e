package reflexion_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/rlmhq/rlm/repl/ledger"

	"go.uber.org/goleak"

	"github.com/rlmhq/rlm/repl/internal/calls"
	"github.com/rlmhq/rlm/repl/llm"
	"github.com/rlmhq/rlm/repl/reflexion"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// model is a registry of one provider, whose drafts are numbered and whose critiques are a list of
// replies; the last critique is repeated.
type model struct {
	critiques []string
	draft     func(r llm.Request) (llm.Response, error) // by default "draft N"
	judge     func(ctx context.Context, r llm.Request) (llm.Response, error)
	embed     func(r llm.Request) (llm.Response, error)
	facts     llm.Facts
	usage     llm.Usage

	mu       sync.Mutex
	requests []llm.Request
}

func (m *model) Resolve(name string) (llm.Model, error) {
	if name != "writer" && name != "judge" && name != "embedder" {
		return llm.Model{}, &llm.Error{Kind: errors.New("unknown provider"), Model: name}
	}
	return llm.Model{Name: name, ID: name, Provider: m, Facts: m.facts}, nil
}

func (m *model) Complete(
	ctx context.Context, r llm.Request, stream func(string),
) (llm.Response, error) {
	m.mu.Lock()
	m.requests = append(m.requests, r)
	m.mu.Unlock()
	if m.judge != nil && r.Metadata.Purpose == "critique" {
		return m.judge(ctx, r)
	}
	if r.Embed {
		return llm.Func(m.embed).Complete(ctx, r, stream)
	}
	return llm.Func(m.reply).Complete(ctx, r, stream)
}

func (m *model) reply(r llm.Request) (llm.Response, error) {
	if r.Metadata.Purpose != "critique" {
		if m.draft != nil {
			return m.draft(r)
		}
		return llm.Response{Text: fmt.Sprintf("draft %d", r.Metadata.Turn), Usage: m.usage}, nil
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	text := m.critiques[0]
	if len(m.critiques) > 1 {
		m.critiques = m.critiques[1:]
	}
	return llm.Response{Text: text, Usage: m.usage}, nil
}

// purposes returns the purposes of the calls, in order.
func (m *model) purposes() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	var list []string
	for _, r := range m.requests {
		list = append(list, fmt.Sprintf("%s %d", r.Metadata.Purpose, r.Metadata.Turn))
	}
	return list
}

// asked returns the requests with a purpose, in order.
func (m *model) asked(purpose string) []llm.Request {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.DeleteFunc(
		slices.Clone(m.requests), func(r llm.Request) bool { return r.Metadata.Purpose != purpose },
	)
}

func last(r llm.Request) string { return r.Messages[len(r.Messages)-1].Content }

const passes = `{"issues": [], "confidence": 0.9}`

// faulty returns a critique with one issue.
func faulty(severity string) string {
	return fmt.Sprintf(
		`{"issues": [{"type": "incorrect", "description": "push is wrong", "severity": %q, `+
			`"suggested_fix": "use migrate"}], "confidence": 0.8}`,
		severity,
	)
}

func config(m *model) reflexion.Config {
	return reflexion.Config{
		Task: "How do I set up database migrations?", Models: m, Model: "writer",
		Memory: reflexion.Memory{
			History: []llm.Message{
				{Role: llm.RoleUser, Content: "first message"},
				{Role: llm.RoleAssistant, Content: "second message"},
				{Role: llm.RoleUser, Content: "third message"},
				{Role: llm.RoleAssistant, Content: "fourth message"},
			},
			Facts: []reflexion.Fact{{Content: "Use drizzle-kit for migrations", Confidence: 0.85}},
			Procedures: []reflexion.Procedure{
				{Content: "Generate, read, migrate", SuccessRate: 0.75},
			},
		},
	}
}

func run(t *testing.T, cfg reflexion.Config) reflexion.Outcome {
	t.Helper()
	result, err := reflexion.Run(t.Context(), cfg)
	if err != nil {
		t.Fatalf("the run failed: %v", err)
	}
	return result
}

// ended runs the loop and checks its status and the number of iterations.
func ended(
	t *testing.T, cfg reflexion.Config, status ledger.Status, iterations int,
) reflexion.Outcome {
	t.Helper()
	r := run(t, cfg)
	if r.Status != status || len(r.Iterations) != iterations ||
		r.Success != (status == reflexion.StatusPassed) {
		t.Fatalf("the run ended as %s (success %v) after %d iterations, want %s after %d: %s",
			r.Status, r.Success, len(r.Iterations), status, iterations, r.Reason)
	}
	return r
}

// TestMethods checks the document's table of methods: execute(task, context, maxIterations = 3),
// and its example.
//
// Source 001, repl/reflexion/config.go: execute(task, context, maxIterations): default
// maxIterations is 3.
func TestMethods(t *testing.T) {
	m := &model{
		critiques: []string{faulty("major"), passes},
		usage:     llm.Usage{InputTokens: 700, OutputTokens: 12},
	}
	r := ended(t, config(m), reflexion.StatusPassed, 2)
	if r.FinalDraft != "draft 2" || r.TotalLLMCalls != 4 || r.TotalTokens != 4*712 {
		t.Errorf("got %+v", r)
	}
	d := reflexion.WithDefaults(reflexion.Config{})
	if d.MaxIterations != 3 || d.Judges != 1 || d.Retries != calls.DefaultRetries {
		t.Errorf("the defaults are %+v", d)
	}
}

// TestLoopFlow checks the order of the model calls.
//
// Source 001, repl/reflexion/loop.go: Iteration 1: generate the initial draft, gather
// evidence, generate the critique.
//
// Source 001, repl/reflexion/loop.go: Iteration 2+: revise the draft with the previous draft
// and the critique feedback.
func TestLoopFlow(t *testing.T) {
	m := &model{critiques: []string{faulty("major")}}
	r := ended(t, config(m), reflexion.StatusRejected, 3)
	want := []string{
		"draft 1", "critique 1", "revision 2", "critique 2", "revision 3", "critique 3",
	}
	if got := m.purposes(); !slices.Equal(got, want) {
		t.Errorf("the calls were %q, want %q", got, want)
	}
	for i, it := range r.Iterations {
		if it.Number != i+1 || it.Draft != fmt.Sprintf("draft %d", i+1) || it.Revised != (i > 0) ||
			len(it.Evidence) != 2 || it.Critique == nil {
			t.Errorf("iteration %d is %+v", i+1, it)
		}
	}
	if r.FinalDraft != "draft 3" || !strings.Contains(
		r.Reason, "after 3 of 3 iterations the draft does not pass: 1 major issue",
	) {
		t.Errorf("got %q, %q", r.FinalDraft, r.Reason)
	}
}

// holds checks that text contains each part, or does not contain it if the part begins with "!".
func holds(t *testing.T, text string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		absent, unwanted := strings.CutPrefix(part, "!")
		if unwanted && strings.Contains(text, absent) {
			t.Errorf("there is %q in:\n%s", absent, text)
		}
		if !unwanted && !strings.Contains(text, part) {
			t.Errorf("there is no %q in:\n%s", part, text)
		}
	}
}

// TestStepGenerateInitialDraft checks the prompt for the first draft.
//
// Source 001, repl/reflexion/prompts.go: Includes task.message and the last 3 messages from
// context.messageHistory.
//
// Source 001, repl/reflexion/prompts.go: Includes all retrievedFacts with confidence scores,
// and all retrievedProcedures with success rates.
func TestStepGenerateInitialDraft(t *testing.T) {
	m := &model{critiques: []string{passes}}
	run(t, config(m))
	if n := len(m.asked("draft")); n != 1 {
		t.Fatalf("%d calls", n)
	}
	holds(
		t, last(m.asked("draft")[0]), "How do I set up database migrations?", "!first message",
		"second message", "third message", "fourth message", "confidence 0.85",
		"Use drizzle-kit for migrations", "success rate 0.75", "Generate, read, migrate",
	)
}

// TestStepGatherEvidence checks the evidence from memory.
//
// Source 001, repl/reflexion/evidence.go: Converts retrievedFacts and retrievedProcedures to
// Evidence with source: "memory"; returns an empty array if there is no context data.
func TestStepGatherEvidence(t *testing.T) {
	m := &model{critiques: []string{passes}}
	r := run(t, config(m))
	want := []reflexion.Evidence{
		{Source: "memory", Content: "Use drizzle-kit for migrations", Relevance: 0.85},
		{
			Source:    "memory",
			Content:   "Procedure with a success rate of 0.75: Generate, read, migrate",
			Relevance: 0.75,
		},
	}
	if got := r.Iterations[0].Evidence; !slices.Equal(got, want) {
		t.Errorf("the evidence is %+v", got)
	}
	if r.TotalLLMCalls != 2 {
		t.Errorf("gathering evidence took model calls: %d in all", r.TotalLLMCalls)
	}
	cfg := config(m)
	cfg.Memory = reflexion.Memory{}
	text, err := json.Marshal(run(t, cfg).Iterations[0].Evidence)
	if err != nil || string(text) != "[]" {
		t.Errorf("without memory the evidence is %s, %v", text, err)
	}
}

// TestStepGenerateCritique checks the prompt for a judge.
//
// Source 001, repl/reflexion/critique.go: Prompts the LLM to identify issues in 3 categories:
// MISSING, UNSUPPORTED, INCORRECT.
//
// Source 001, repl/reflexion/critique.go: Expects JSON with issues[], confidence, and passes.
func TestStepGenerateCritique(t *testing.T) {
	m := &model{critiques: []string{passes}}
	cfg := config(m)
	cfg.SubModel = "judge"
	run(t, cfg)
	asked := m.asked("critique")
	if len(asked) != 1 || asked[0].Model != "judge" || asked[0].Schema == nil {
		t.Fatalf("the judge was asked %+v", asked)
	}
	holds(
		t, asked[0].Messages[0].Content, "missing:", "unsupported:", "incorrect:", "minor:",
		"major:", "critical:",
	)
	holds(
		t, last(asked[0]), "draft 1", "How do I set up database migrations?", "confidence 0.85",
		"Generate, read, migrate", "issues", "severity",
	)
}

// TestStepReviseDraft checks the prompt for a revision.
//
// Source 001, repl/reflexion/prompts.go: Includes the original task, the previous draft, and
// all critique issues with severity and suggested fixes.
func TestStepReviseDraft(t *testing.T) {
	m := &model{critiques: []string{faulty("major"), passes}}
	run(t, config(m))
	if n := len(m.asked("revision")); n != 1 {
		t.Fatalf("%d calls", n)
	}
	holds(
		t, last(m.asked("revision")[0]), "How do I set up database migrations?", "draft 1",
		"incorrect, major", "push is wrong", "use migrate", "!first message", "second message",
		"fourth message", "Use drizzle-kit for migrations",
	)
}

// TestExitConditions checks when the loop ends.
//
// Source 001, repl/reflexion/outcome.go: critique.passes === true: success is true;
// iterationNumber === maxIterations: success is false.
func TestExitConditions(t *testing.T) {
	for _, c := range []struct {
		critique   string
		most, took int
		status     ledger.Status
	}{
		{passes, 3, 1, reflexion.StatusPassed},
		{faulty("minor"), 3, 1, reflexion.StatusPassed},
		{faulty("major"), 1, 1, reflexion.StatusRejected},
		{faulty("critical"), 2, 2, reflexion.StatusRejected},
	} {
		t.Run(fmt.Sprintf("%.60s", c.critique), func(t *testing.T) {
			cfg := config(&model{critiques: []string{c.critique}})
			cfg.MaxIterations = c.most
			ended(t, cfg, c.status, c.took)
		})
	}
}

// TestCritiquePassFailRules checks which issues let a draft pass.
//
// Source 001, repl/reflexion/critique.go: passes is true if the issues array is empty or all
// issues are "minor"; false if any issue is "major" or "critical".
func TestCritiquePassFailRules(t *testing.T) {
	issue := func(s string) reflexion.Issue { return reflexion.Issue{Severity: s} }
	for _, c := range []struct {
		issues     []reflexion.Issue
		unreadable int
		passes     bool
	}{
		{nil, 0, true},
		{[]reflexion.Issue{issue("minor"), issue("minor")}, 0, true},
		{[]reflexion.Issue{issue("minor"), issue("major")}, 0, false},
		{[]reflexion.Issue{issue("critical")}, 0, false},
		{[]reflexion.Issue{issue("harmless")}, 0, false}, // an unknown severity
		{nil, 1, false},
	} {
		got := reflexion.Merge(
			[]reflexion.Critique{{Issues: c.issues, Confidence: 1}}, c.unreadable,
		)
		if got.Passes != c.passes {
			t.Errorf("%+v passes: %v", c, got.Passes)
		}
	}
	if got := reflexion.Merge(nil, 0); got.Passes {
		t.Error("without a critique a draft passes")
	}
	// The model's own verdict is ignored.
	says := strings.Replace(faulty("major"), "{", `{"passes": true, `, 1)
	ended(t, config(&model{critiques: []string{says}}), reflexion.StatusRejected, 3)
	says = strings.Replace(passes, "{", `{"passes": false, `, 1)
	ended(t, config(&model{critiques: []string{says}}), reflexion.StatusPassed, 1)
}

// TestTokenTracking checks the counts of calls and tokens.
//
// Source 001, repl/reflexion/loop.go: total_tokens is the sum over every call; total_llm_calls
// counts 2 per iteration.
//
// Source 001, repl/reflexion/loop.go: Evidence gathering does not make LLM calls.
func TestTokenTracking(t *testing.T) {
	m := &model{
		critiques: []string{faulty("major")},
		usage:     llm.Usage{InputTokens: 100, OutputTokens: 10},
	}
	r := ended(t, config(m), reflexion.StatusRejected, 3)
	if r.TotalLLMCalls != 6 || r.TotalTokens != 660 || r.Spent.InputTokens != 600 ||
		r.Spent.OutputTokens != 60 {
		t.Errorf("spent %d calls, %d tokens, %+v", r.TotalLLMCalls, r.TotalTokens, r.Spent)
	}
	// The ledger also counts US dollars and repeated critiques.
	price := llm.Price{Input: 1, Output: 10}
	m = &model{
		critiques: []string{"what?", passes}, usage: m.usage, facts: llm.Facts{Price: &price},
	}
	r = ended(t, config(m), reflexion.StatusPassed, 1)
	if r.TotalLLMCalls != 3 || r.Spent.USD <= 0 {
		t.Errorf("spent %+v", r.Spent)
	}
}

// TestTypes checks the names of the fields in JSON.
//
// Source 001, repl/reflexion/outcome.go: ReflexionResult: final_draft, iterations,
// total_llm_calls, total_tokens, success.
//
// Source 001, repl/reflexion/outcome.go: ReflexionIteration: iteration_number, draft, evidence,
// critique, revised.
//
// Source 001, repl/reflexion/outcome.go: Evidence: source, content, relevance, supports_claim.
//
// Source 001, repl/reflexion/outcome.go: Critique: issues, confidence, passes. Issue: type,
// description, severity, suggested_fix.
func TestTypes(t *testing.T) {
	result := reflexion.Outcome{
		FinalDraft: "d", Iterations: []reflexion.Iteration{
			{
				Number:  1,
				Draft:   "d",
				Revised: true,
				Evidence: []reflexion.Evidence{
					{
						Source: "codebase", Content: "c", Relevance: 0.5,
						SupportsClaim: "s", Location: "l:1",
					},
				},
				Critique: &reflexion.Critique{
					Confidence: 0.5,
					Passes:     true,
					Issues: []reflexion.Issue{
						{Type: "missing", Description: "d", Severity: "minor", SuggestedFix: "f"},
					},
				},
			},
		}, TotalLLMCalls: 2, TotalTokens: 3, Success: true,
	}
	text, err := json.Marshal(result)
	if err != nil {
		t.Fatal(err)
	}
	var got struct {
		FinalDraft string `json:"final_draft"`
		Iterations []struct {
			Number   int    `json:"iteration_number"`
			Draft    string `json:"draft"`
			Evidence []struct {
				Source, Content string
				Relevance       float64
				SupportsClaim   string `json:"supports_claim"`
			}
			Critique struct {
				Issues []struct {
					Type, Description, Severity string
					SuggestedFix                string `json:"suggested_fix"`
				}
				Confidence float64
				Passes     bool
			}
			Revised bool
		}
		TotalLLMCalls int  `json:"total_llm_calls"`
		TotalTokens   int  `json:"total_tokens"`
		Success       bool `json:"success"`
	}
	if err := json.Unmarshal(text, &got); err != nil {
		t.Fatal(err)
	}
	want := `{d [{1 d [{codebase c 0.5 s}] {[{missing d minor f}] 0.5 true} true}] 2 3 true}`
	if fmt.Sprint(got) != want {
		t.Errorf("%s is read as %v, want %s", text, got, want)
	}
	for _, names := range [][2]string{
		{fmt.Sprint("memory", "codebase", "documentation"), "memory codebase documentation"},
		{fmt.Sprint("missing", "unsupported", "incorrect"), "missing unsupported incorrect"},
		{fmt.Sprint("minor", "major", "critical"), "minor major critical"},
	} {
		if strings.ReplaceAll(names[0], " ", "") != strings.ReplaceAll(names[1], " ", "") {
			t.Errorf("got %s, want %s", names[0], names[1])
		}
	}
}
