package run_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rlmhq/rlm/internal/keep/trajectory"
	"github.com/rlmhq/rlm/repl"
	"github.com/rlmhq/rlm/repl/ledger"
	"github.com/rlmhq/rlm/repl/llm"
	"github.com/rlmhq/rlm/repl/run"
	"github.com/rlmhq/rlm/tiers"
)

var update = flag.Bool("update", false, "write the golden files")

// TestPromptsAreGolden compares the prompts shown to a model with testdata/prompts.
func TestPromptsAreGolden(t *testing.T) {
	for name, change := range map[string]func(*run.Config){
		"plain":      func(*run.Config) {},
		"floor":      func(c *run.Config) { c.MaxDepth = -1 },
		"no context": func(c *run.Config) { c.Inputs = nil },
		"instructions": func(c *run.Config) {
			c.Inputs, c.System = nil, "Answer in French.\nBe short."
		},
		"contract": func(c *run.Config) {
			c.Signature = "passage -> answer: str, score: float"
			c.Fields = map[string]tiers.Value{"passage": tiers.Value(`"a passage"`)}
		},
		"many inputs": func(c *run.Config) {
			rows := tiers.Input{Name: "rows", Value: tiers.Value(`[{"a": 1}, {"a": 2}]`)}
			c.Inputs = append(c.Inputs, rows, text("a,b\n1,2\n"))
		},
		"tools": func(c *run.Config) {
			tools, err := repl.NewTools(repl.Tool{
				Name: "search", Signature: "search(query, limit=10)", Doc: "searches the archive.",
				Notes: "The archive has 3 boxes:\n- maps\n- letters\n- bills",
				Call: func(context.Context, map[string]tiers.Value) (tiers.Value, error) {
					return tiers.Value("[]"), nil
				},
			})
			if err != nil {
				t.Fatal(err)
			}
			c.Tools = tools
			c.Agents = map[string]repl.Agent{"critic": {Doc: "judges a claim", System: "You judge."}}
		},
	} {
		t.Run(name, func(t *testing.T) {
			m := &models{script: []string{"FINAL({\"answer\": \"x\", \"score\": 1})"}}
			cfg := config(m, text(strings.Repeat("0123456789", 100)))
			change(&cfg)
			solve(t, cfg)
			var got bytes.Buffer
			for _, message := range m.requests[0].Messages {
				got.WriteString("== " + string(message.Role) + " ==\n" + message.Content + "\n")
			}
			file := filepath.Join(
				"testdata", "prompts", strings.ReplaceAll(name, " ", "-")+".golden",
			)
			if *update {
				if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(file, got.Bytes(), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(got.Bytes(), want) {
				t.Errorf(
					"the prompts differ from %s (run with -update if that is meant):\n%s", file,
					got.String(),
				)
			}
		})
	}
}

func TestUnknownWindowsAndPricesAreReported(t *testing.T) {
	warnings := func(facts llm.Facts) (all string) {
		m := &models{facts: facts, script: []string{"FINAL(1)"}}
		cfg := config(m, text("x"))
		cfg.Progress = func(e ledger.Event) {
			if e.Kind == ledger.EventWarning {
				all += e.Error + "\n"
			}
		}
		solve(t, cfg)
		return all
	}

	unknown := warnings(llm.Facts{})
	for _, part := range []string{"the window of root", "--window", "the price of root", "--price"} {
		if !strings.Contains(unknown, part) {
			t.Errorf("nothing warns of %s: %s", part, unknown)
		}
	}
	if known := warnings(llm.Facts{Window: 9_000, Price: &llm.Price{}}); known != "" {
		t.Errorf("got %s", known)
	}
}

func TestTheFirstPromptHasConstantSize(t *testing.T) {
	size := func(n int) int {
		m := &models{script: []string{"FINAL(1)"}}
		solve(t, config(m, text(strings.Repeat("x", n))))
		return len(m.requests[0].Messages[0].Content) + len(m.requests[0].Messages[1].Content)
	}
	if a, b := size(1_000), size(10_000_000); b-a > 20 {
		t.Errorf("the prompt grew from %d to %d bytes with the input", a, b)
	}
}

func TestCompactionKeepsStateAndHistory(t *testing.T) {
	long := code("found = 'needle'\nprint('x' * 6000)")
	m := &models{facts: llm.Facts{Window: 4_500}, script: []string{
		long, "The needle is in `found`.", code("print(len(history), history[0]['role'], found)"),
		"FINAL_VAR(found)",
	}}
	cfg := config(m)
	cfg.CompactAt, cfg.MaxReply = 0.5, 300
	outcome := answered(t, cfg, "needle")
	if outcome.Compactions != 1 || m.requests[1].Metadata.Purpose != "compaction" {
		t.Fatalf("compactions %d, purposes %q", outcome.Compactions, m.requests[1].Metadata.Purpose)
	}
	after := m.requests[2].Messages
	if len(after) != 4 || !strings.Contains(after[2].Content, "The needle is in `found`.") ||
		after[0].Role != llm.RoleSystem {
		t.Errorf("after the compaction the model saw %d messages: %+v", len(after), after[2:])
	}
	if told := last(m.requests[3]); !strings.Contains(told, "2 assistant needle") {
		t.Errorf("history was %q", told)
	}
}

// slow makes each sub-call run until its context ends, unless its prompt says "quick".
func slow(m *models, started chan<- struct{}) {
	m.complete = func(ctx context.Context, r llm.Request) (llm.Response, error) {
		if r.Metadata.Purpose != "leaf" || last(r) == "quick" {
			return llm.Func(m.reply).Complete(ctx, r, nil)
		}
		started <- struct{}{}
		<-ctx.Done()
		return llm.Response{}, context.Cause(ctx)
	}
}

func TestCancellationStopsTheTree(t *testing.T) {
	m := &models{
		script: []string{code("rlm_query_batched(['a', 'b', 'c'])")},
		byPurpose: func(r llm.Request) (llm.Response, bool) {
			return llm.Response{
				Text: code("llm_query_batched([str(i) for i in range(10)])"),
			}, r.Metadata.Depth == 1
		},
	}
	started := make(chan struct{}, 100)
	slow(m, started)
	ctx, cancel := context.WithCancelCause(t.Context())
	stop := errors.New("the user has left")
	go func() {
		for range 16 {
			<-started
		}
		cancel(stop)
	}()
	outcome, err := run.Run(ctx, config(m))
	if !errors.Is(err, stop) || outcome.Status != ledger.StatusCanceled {
		t.Errorf("the run ended as %s with %v", outcome.Status, err)
	}
}

func TestTheBudgetOfTimeEndsTheRun(t *testing.T) {
	outcome := solveInTime(t, "answer['content'] = 'so far'\nprint('looked')", "while True: pass")
	if outcome.Status != ledger.StatusPartial || outcome.Partial == "" ||
		!strings.Contains(outcome.Reason, "seconds") {
		t.Errorf("the run ended as %+v", outcome)
	}
}

// solveInTime runs snippets, the last of which does not end by itself, with a time budget. It
// doubles the budget until a snippet has run, because the machine may be busy.
func solveInTime(t *testing.T, sources ...string) run.Outcome {
	t.Helper()
	for wall := 500 * time.Millisecond; ; wall *= 2 {
		m := &models{}
		for _, source := range sources {
			m.script = append(m.script, code(source))
		}
		cfg := config(m)
		cfg.Budget.Wall, cfg.NoSynthesis = wall, true
		outcome := solve(t, cfg)
		if outcome.Partial != "" || wall > time.Minute {
			return outcome
		}
	}
}

// TestTimeoutKeepsTheAnswerSoFar checks that, if the run's time ends during a snippet, the outcome
// contains the answer that the snippet had set, or its output if it had set none.
func TestTimeoutKeepsTheAnswerSoFar(t *testing.T) {
	for source, want := range map[string]string{
		"answer['content'] = 'so far'\nwhile True: pass": "so far",
		"print('found', 7)\nwhile True: pass":            "found 7",
	} {
		t.Run(want, func(t *testing.T) {
			outcome := solveInTime(t, source)
			if outcome.Status != ledger.StatusPartial || outcome.Partial != want {
				t.Errorf("%s: %s with %q, want %q", source, outcome.Status, outcome.Partial, want)
			}
		})
	}
}

func TestEventsAndTraceTellTheTree(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "trace")
	m := &models{
		script: []string{
			code("x = rlm_query('part', 'the part')\nprint(x)\ny = llm_query('leaf')"),
			code("FINAL(x)"),
		},
		byPurpose: func(r llm.Request) (llm.Response, bool) {
			return llm.Response{Text: `FINAL("sub")`}, r.Metadata.Depth == 1
		},
	}
	var mu sync.Mutex
	var kinds []string
	cfg := config(m, text("input"))
	cfg.Trace = dir
	cfg.Progress = func(e ledger.Event) {
		mu.Lock()
		defer mu.Unlock()
		kinds = append(kinds, e.Node+" "+string(e.Kind))
	}
	answered(t, cfg, "sub")
	got := strings.Join(kinds, "\n")
	for _, want := range []string{
		"0 run_started", "0 turn_started", "0 reply", "0.1 loop_started", "0.1 answer",
		"0.1 loop_ended", "0 call", "0 snippet", "0 answer", "0 run_ended",
	} {
		if !strings.Contains("\n"+got+"\n", "\n"+want+"\n") {
			t.Errorf("no event %q among:\n%s", want, got)
		}
	}
	lines := readLines(t, filepath.Join(dir, trajectory.File))
	if len(lines) != 3 || lines[0]["type"] != "metadata" || lines[0]["root_model"] != "root" ||
		lines[1]["type"] != "iteration" {
		t.Fatalf("the trajectory has %d lines: %v", len(lines), lines)
	}
	for _, key := range []string{
		"max_depth", "max_iterations", "backend", "backend_kwargs", "environment_type",
		"environment_kwargs", "other_backends",
	} {
		if _, ok := lines[0][key]; !ok {
			t.Errorf("the metadata lacks %s", key)
		}
	}
	block := lines[1]["code_blocks"].([]any)[0].(map[string]any)["result"].(map[string]any)
	calls := block["rlm_calls"].([]any)
	if block["stdout"] != "sub\n" || len(calls) != 2 ||
		calls[0].(map[string]any)["response"] != "sub" ||
		calls[1].(map[string]any)["prompt"] != "leaf" {
		t.Errorf("the first iteration's result is %v", block)
	}
	if lines[2]["final_answer"] != "sub" {
		t.Errorf("the last iteration is %v", lines[2])
	}
	sub := readLines(t, filepath.Join(dir, "sub_0001", trajectory.File))
	if len(sub) != 2 || sub[1]["final_answer"] != "sub" {
		t.Errorf("the sub-loop's trajectory is %v", sub)
	}
	if events := readLines(t, filepath.Join(dir, trajectory.EventsFile)); len(events) != len(kinds) {
		t.Errorf("%d events are on file, %d were told", len(events), len(kinds))
	}
	if _, err := run.Run(t.Context(), cfg); err == nil || !strings.Contains(err.Error(), "folder") {
		t.Errorf("a second run into the same folder: %v", err)
	}
}

func readLines(t *testing.T, file string) []map[string]any {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var lines []map[string]any
	for line := range strings.Lines(string(data)) {
		var v map[string]any
		if err := json.Unmarshal([]byte(line), &v); err != nil {
			t.Fatalf("%s: %v in %q", file, err, line)
		}
		lines = append(lines, v)
	}
	return lines
}

func TestBadConfigurationsEndBeforeAnyWork(t *testing.T) {
	for name, change := range map[string]func(*run.Config){
		"no question":            func(c *run.Config) { c.Question = "" },
		"no model":               func(c *run.Config) { c.Model, c.SubModel = "", "" },
		"unknown provider":       func(c *run.Config) { c.Model = "nobody/knows" },
		"negative bound":         func(c *run.Config) { c.MaxTurns = -1 },
		"too deep":               func(c *run.Config) { c.MaxDepth = 4 },
		"not \"a type\"":         func(c *run.Config) { c.Schema = json.RawMessage(`"no type at all"`) },
		"signature":              func(c *run.Config) { c.Signature = "no arrow" },
		"price":                  func(c *run.Config) { c.Budget.USD = 1 },
		"one contract is enough": func(c *run.Config) { c.Schema, c.Signature = json.RawMessage(`"int"`), "a -> b" },
		"set Config.Open":        func(c *run.Config) { c.Open = nil },
		"share of the window":    func(c *run.Config) { c.CompactAt = 2 },
		"negative":               func(c *run.Config) { c.Budget.Calls = -5 },
	} {
		t.Run(name, func(t *testing.T) {
			m := &models{}
			cfg := config(m, text("x"))
			change(&cfg)
			outcome, err := run.Run(t.Context(), cfg)
			if err == nil || outcome.Status != ledger.StatusFailed || len(m.requests) != 0 {
				t.Errorf("it was taken: %+v, %v, %d requests", outcome, err, len(m.requests))
			}
		})
	}
	deep := config(&models{script: []string{"FINAL(1)"}})
	deep.MaxDepth, deep.AllowDeep = 5, true
	answered(t, deep, "1")
}

func TestEstimateCallsNoModel(t *testing.T) {
	price := llm.Price{Input: 1, Output: 10}
	m := &models{facts: llm.Facts{Window: 10_000, Price: &price}}
	cfg := config(m, text(strings.Repeat("word ", 100_000)))
	cfg.Budget.USD = 2
	e, err := run.EstimateRun(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	if len(m.requests) != 0 || !e.Priced || e.Bypass || e.Most.USD != 2 || e.ReadOnce.Calls != 25 ||
		e.ReadOnce.USD <= 0 || e.Turn.InputTokens < 500 {
		t.Errorf("the estimate is %+v", e)
	}
}

func TestCombinatorsAreForeseen(t *testing.T) {
	m := &models{script: []string{
		code("try:\n    map_llm('p', list(range(100)))\nexcept Exception as e:\n    print(e)"),
		code("print(len(map_llm('p', list(range(5)))))"), `FINAL("done")`,
	}}
	var foreseen atomic.Int64
	cfg := config(m)
	cfg.Budget.Calls = 20
	cfg.Progress = func(e ledger.Event) {
		if e.Kind == ledger.EventForesight {
			foreseen.Store(e.Used.Calls)
		}
	}
	outcome := answered(t, cfg, "done")
	said := last(m.requests[1])
	if !strings.Contains(said, "this needs about 100 calls") ||
		!strings.Contains(said, "take fewer") {
		t.Errorf("the model was told %q", said)
	}
	if outcome.Spent.Calls != 3+5 || foreseen.Load() != 5 {
		t.Errorf("spent %s, foreseen %d", outcome.Spent, foreseen.Load())
	}
}

func TestPerDepthModels(t *testing.T) {
	m := &models{
		script: []string{code("FINAL(rlm_query('a'))")},
		byPurpose: func(r llm.Request) (llm.Response, bool) {
			return llm.Response{Text: `FINAL("` + r.Model + `")`}, r.Metadata.Depth == 1
		},
	}
	cfg := config(m)
	cfg.Model, cfg.SubModel = "root", "sub"
	answered(t, cfg, "sub")
	m.script = []string{code("FINAL(rlm_query('a'))")}
	cfg.DepthModels = []string{"", "other"}
	answered(t, cfg, "other")
}

func TestARefusalEndsTheRunAndACutReplyIsTold(t *testing.T) {
	m := &models{byPurpose: func(llm.Request) (llm.Response, bool) {
		return llm.Response{Text: "I cannot help with that.", Finish: llm.FinishRefusal}, true
	}}
	outcome, err := run.Run(t.Context(), config(m))
	if err == nil || outcome.Status != ledger.StatusFailed ||
		!strings.Contains(err.Error(), "declined: I cannot") {
		t.Errorf("a refusal: %+v, %v", outcome, err)
	}
	var told string
	m.byPurpose = func(r llm.Request) (llm.Response, bool) {
		told = last(r)
		if r.Metadata.Turn == 1 {
			return llm.Response{Text: "```repl\nprint(111)", Finish: llm.FinishLength}, true
		}
		return llm.Response{Text: "FINAL(1)"}, true
	}
	answered(t, config(m), "1")
	if !strings.Contains(told, "cut at the limit of tokens") || strings.Contains(told, "111") {
		t.Errorf("a cut reply: %q", told)
	}
}

// TestAFullSandboxIsToldToTheModel checks that output too large for the session does not end the
// run.
func TestAFullSandboxIsToldToTheModel(t *testing.T) {
	m := &models{script: []string{
		code(
			"hog = []\ntry:\n    while True:\n        hog.append(bytearray(1 << 16))\n" +
				"except MemoryError:\n    pass\nprint('x' * 500_000)",
		),
		code("del hog"),
		`FINAL("done")`,
	}}
	cfg := config(m)
	cfg.Limits.Memory = 96 << 20
	answered(t, cfg, "done")
}

// TestRefusingWordsAreNoAnswer checks that a refusal in words is not accepted as a direct answer,
// as the last answer of a loop, or as a summary of the work.
func TestRefusingWordsAreNoAnswer(t *testing.T) {
	declines := func(purpose string) func(llm.Request) (llm.Response, bool) {
		return func(r llm.Request) (llm.Response, bool) {
			return llm.Response{
				Text: "I cannot help with that.", Finish: llm.FinishRefusal,
			}, r.Metadata.Purpose == purpose
		}
	}
	cfg := config(&models{byPurpose: declines("bypass")}, text("short"))
	cfg.Bypass = 0
	outcome, err := run.Run(t.Context(), cfg)
	if err == nil || outcome.Status != ledger.StatusFailed || outcome.Answer != nil {
		t.Errorf("a bypass: %+v, %v", outcome, err)
	}
	cfg = config(&models{byPurpose: declines("synthesis"), script: []string{code("print(1)")}})
	cfg.MaxTurns = 1
	outcome = solve(t, cfg)
	if outcome.Status != ledger.StatusNoAnswer || outcome.Answer != nil ||
		!strings.Contains(outcome.Reason, "declined") {
		t.Errorf("a synthesis: %+v", outcome)
	}
	m := &models{
		byPurpose: declines("compaction"), facts: llm.Facts{Window: 4_500},
		script: []string{code("found = 'needle'\nprint('x' * 6000)"), "FINAL_VAR(found)"},
	}
	cfg = config(m)
	cfg.CompactAt, cfg.MaxReply = 0.5, 300
	outcome = answered(t, cfg, "needle")
	if outcome.Compactions != 1 ||
		strings.Contains(m.requests[1].Messages[2].Content, "I cannot help") {
		t.Errorf("a compaction: %+v, %+v", outcome, m.requests[1].Messages)
	}
}

// TestACompactionLastsInEveryScript checks that, even if each character is a token, the kept part
// of the last message leaves room for the next message.
func TestACompactionLastsInEveryScript(t *testing.T) {
	look := code("print('\u4e2d' * 9000)")
	m := &models{facts: llm.Facts{Window: 16_000}, script: []string{
		look, "Looked once.", code("x = 1"), code("x = 2"), code("x = 3"), `FINAL("done")`,
	}}
	cfg := config(m)
	cfg.CompactAt, cfg.MaxReply = 0.5, 300
	if outcome := answered(t, cfg, "done"); outcome.Compactions != 1 {
		t.Errorf("%d compactions", outcome.Compactions)
	}
}

// TestAnAnswerThatCannotBeCheckedIsTheModelsToMend checks that the run continues after such an
// answer, so that the model can correct it.
func TestAnAnswerThatCannotBeCheckedIsTheModelsToMend(t *testing.T) {
	m := &models{script: []string{code("FINAL(['abc'] * 150_000)"), code("FINAL(['abc'] * 3)")}}
	cfg := config(m)
	cfg.Schema = json.RawMessage(
		`{"type":"array","items":{"type":"string","pattern":"^(abc|def|ghi|jkl|mno|pqr|stu){1,20}$"}}`,
	)
	answered(t, cfg, `["abc", "abc", "abc"]`)
	if told := last(m.requests[1]); !strings.Contains(told, "make the value smaller") {
		t.Errorf("the model was told %q", told)
	}
}

// TestNothingIsAskedAfterTheEnd checks that reading a partial answer makes no model call, even if
// its value is an object whose methods would ask a model.
func TestNothingIsAskedAfterTheEnd(t *testing.T) {
	m := &models{
		script: []string{
			code(
				"class Answer(dict):\n    def get(self, *_):\n        return llm_query('more')\n" +
					"answer = Answer()\nprint('so far')",
			),
		},
	}
	cfg := config(m)
	cfg.MaxTurns, cfg.NoSynthesis = 1, true
	outcome := solve(t, cfg)
	if outcome.Spent.Calls != 1 || outcome.Partial != "so far" || len(m.subs) != 0 {
		t.Errorf("%+v, asked %+v", outcome, m.subs)
	}
}

// TestLoopsThatTheBudgetRefusesNeverBegin checks that a refused sub-loop gets no session, no folder
// and no place in the record, however many sub-loops a snippet requests.
func TestLoopsThatTheBudgetRefusesNeverBegin(t *testing.T) {
	long := "'x' * 40_000"
	m := &models{
		script: []string{
			code(
				"for _ in range(2):\n    try:\n" +
					"        rlm_query_batched([" + long + "] * 40)\n    except Exception as e:\n        print(e)",
			),
			`FINAL("done")`,
		},
		byPurpose: func(r llm.Request) (llm.Response, bool) {
			return llm.Response{Text: "FINAL(1)"}, r.Metadata.Depth == 1
		},
	}
	cfg := config(m)
	cfg.Budget.Calls, cfg.Trace = 8, t.TempDir()
	var begun, recorded atomic.Int64
	cfg.Progress = func(e ledger.Event) {
		switch e.Kind {
		case ledger.EventLoopStarted:
			begun.Add(1)
		case ledger.EventSnippet:
			for _, call := range e.Ran.Calls {
				recorded.Add(int64(len(call.Prompt)))
			}
		default:
		}
	}
	outcome := answered(t, cfg, "done")
	folders, err := filepath.Glob(filepath.Join(cfg.Trace, "sub_*"))
	if err != nil || begun.Load() > 10 || len(folders) > 10 ||
		int64(outcome.Loops) != begun.Load() || begun.Load() == 0 {
		t.Errorf(
			"%d loops were begun, %d folders made, %+v, %v", begun.Load(), len(folders), outcome,
			err,
		)
	}
	if recorded.Load() > 10*21_000 {
		t.Errorf("%d bytes of prompts are kept", recorded.Load())
	}
}

// TestNoDirectAnswerWhereOnlyCodeCanAnswer checks that there is no direct answer if the run has
// tools, agents or a directory, which only snippets reach, or has no input.
func TestNoDirectAnswerWhereOnlyCodeCanAnswer(t *testing.T) {
	tools, err := repl.NewTools(repl.Tool{
		Name: "look", Call: func(context.Context, map[string]tiers.Value) (tiers.Value, error) {
			return tiers.Value("1"), nil
		},
	})
	if err != nil {
		t.Fatal(err)
	}

	for name, change := range map[string]func(*run.Config){
		"switched off": func(c *run.Config) { c.Bypass = -1 },
		"tools":        func(c *run.Config) { c.Tools = tools },
		"agents":       func(c *run.Config) { c.Agents = map[string]repl.Agent{"a": {Model: "sub"}} },
		"no input":     func(c *run.Config) { c.Inputs = nil },
		"fields beside an input": func(c *run.Config) {
			c.Signature, c.Fields = "q -> by: str", map[string]tiers.Value{"q": tiers.Value("1")}
		},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := config(&models{script: []string{code(`FINAL(by="code")`)}}, text("short"))
			cfg.Bypass = 0
			change(&cfg)
			if outcome := solve(t, cfg); outcome.Bypassed || outcome.Turns != 1 {
				t.Errorf("the run did not loop: %+v", outcome)
			}
		})
	}
}
