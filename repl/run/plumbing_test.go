package run_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/rlmhq/rlm/internal/keep/trajectory"
	"github.com/rlmhq/rlm/internal/testing/llmtest"
	"github.com/rlmhq/rlm/repl/internal/tokens"
	"github.com/rlmhq/rlm/repl/llm"
	"github.com/rlmhq/rlm/repl/llm/providers"
	"github.com/rlmhq/rlm/repl/run"
)

// These tests run the whole path over large inputs, with a table in place of a model's judgement.
// They check that nothing is lost, duplicated or mixed up, and say nothing about how well a model
// answers.

var (
	questionKinds = []string{"location", "person", "number", "date", "entity"}
	questionWords = strings.Fields(
		"where who how-many when what river king bridges born metal city poet atoms founded " +
			"bird lake actor moons signed tree",
	)
)

// labelledLines returns n lines in the style of OOLONG and the label of each, which the line does
// not contain.
func labelledLines(n int) (lines []string, label map[string]string) {
	rng := rand.New(rand.NewPCG(1, 2))
	label = map[string]string{}
	for i := range n {
		question := fmt.Sprintf(
			"%s %s %s %d?", questionWords[rng.IntN(len(questionWords))],
			questionWords[rng.IntN(len(questionWords))],
			questionWords[rng.IntN(len(questionWords))], i,
		)
		lines = append(
			lines,
			fmt.Sprintf(
				"Date: 2024-%02d-%02d || User: %d || Instance: %s", 1+i%12, 1+i%28, 1000+i%97,
				question,
			),
		)
		label[question] = questionKinds[rng.IntN(len(questionKinds))]
	}
	return lines, label
}

// tabled answers a leaf with the labels of the lines in its prompt.
func tabled(label map[string]string) func(llm.Request) (llm.Response, error) {
	return func(r llm.Request) (llm.Response, error) {
		labels := []string{}
		for line := range strings.Lines(last(r)) {
			if _, question, ok := strings.Cut(strings.TrimSpace(line), "Instance: "); ok {
				labels = append(labels, label[question])
			}
		}
		data, err := json.Marshal(labels)
		return llm.Response{Text: "```json\n" + string(data) + "\n```"}, err
	}
}

const oolongProgram = `
lines = context.splitlines()
parts = ["\n".join(lines[i:i + 40]) for i in range(0, len(lines), 40)]
labels = map_llm("Give the kind of answer that each line asks for, in order.", parts, schema=list[str])
assert [len(x) for x in labels] == [p.count("\n") + 1 for p in parts]
counts = tally(label for part in labels for label in part)
FINAL(counts)
`

func TestAggregatesOverOOLONGStyleInputAreExact(t *testing.T) {
	lines, label := labelledLines(7_800)
	input := strings.Join(lines, "\n")
	if tokens := tokens.Estimate(input); tokens < 125_000 || tokens > 137_000 {
		t.Fatalf("the input has %d tokens, want about 131,000", tokens)
	}
	m := &models{script: []string{code(oolongProgram)}, sub: tabled(label)}
	outcome := solve(t, config(m, text(input)))
	var got map[string]int
	if err := json.Unmarshal(outcome.Answer, &got); err != nil {
		t.Fatalf("%v in %s (%s)", err, outcome.Answer, outcome.Reason)
	}
	want := map[string]int{}
	for _, l := range label {
		want[l]++
	}
	for kind, n := range want {
		if got[kind] != n {
			t.Errorf("%s: counted %d, there are %d", kind, got[kind], n)
		}
	}
	if len(got) != len(want) || len(m.subs) != 195 {
		t.Errorf("counted %v with %d sub-calls", got, len(m.subs))
	}
}

// needleProgram reads the whole input with leaves, in parts that overlap by more than the
// needle's length.
const needleProgram = `
parts = chunk(context, size=300_000, overlap=200)
found = map_llm("What are the magic numbers? Answer [] if the text does not say.", parts, schema="list[int]")
numbers = {n for some in found for n in some}
FINAL({"found": sorted(numbers), "parts": len(parts)})
`

func TestNeedleSweepReachesEveryPlace(t *testing.T) {
	sizes := []int{10_000, 100_000, 1_000_000, 10_000_000}
	if testing.Short() {
		sizes = sizes[:3]
	}
	for _, tokens := range sizes {
		t.Run(fmt.Sprintf("%d tokens", tokens), func(t *testing.T) {
			filler := strings.Repeat("The grass is green and the sky is blue. ", tokens*4/40)
			var input strings.Builder
			var want []int
			for at, depth := 0, 0; depth <= 100; depth += 50 { // one input with a number per place
				next := len(filler) * depth / 100
				number := 4_000_000 + tokens/100 + depth
				fmt.Fprintf(&input, "%s The magic number is %d. ", filler[at:next], number)
				want, at = append(want, number), next
			}
			m := &models{
				script: []string{code(needleProgram)},
				facts:  llm.Facts{Window: 200_000},
				sub: func(r llm.Request) (llm.Response, error) {
					parts := strings.Split(last(r), "The magic number is ")
					numbers := []string{}
					for _, rest := range parts[1:] {
						number, _, _ := strings.Cut(rest, ".")
						numbers = append(numbers, number)
					}
					return llm.Response{Text: "[" + strings.Join(numbers, ", ") + "]"}, nil
				},
			}
			outcome := solve(t, config(m, text(input.String())))
			var got struct {
				Found []int `json:"found"`
				Parts int   `json:"parts"`
			}
			if err := json.Unmarshal(outcome.Answer, &got); err != nil {
				t.Fatalf("%v in %s: %s", err, outcome.Answer, outcome.Reason)
			}
			if !slices.Equal(got.Found, want) || len(m.subs) != got.Parts {
				t.Errorf(
					"found %v in %d parts by %d sub-calls, want %v", got.Found, got.Parts,
					len(m.subs), want,
				)
			}
		})
	}
}

func TestHundredRunsAtOnce(t *testing.T) {
	var wg sync.WaitGroup
	for i := range 100 {
		wg.Go(func() {
			m := &models{script: []string{
				code("mine = int(context)"),
				code(
					fmt.Sprintf(
						"assert mine == %d\nr = llm_query_batched([f'{mine}.{i}' for i in range(5)])",
						i,
					),
				),
				code("FINAL(r)"),
			}}
			outcome, err := run.Run(t.Context(), config(m, text(fmt.Sprint(i))))
			want := fmt.Sprintf(
				`["re: %d.0", "re: %d.1", "re: %d.2", "re: %d.3", "re: %d.4"]`, i, i, i, i, i,
			)
			if err != nil || string(outcome.Answer) != want {
				t.Errorf("run %d: %s %s (%v)", i, outcome.Status, outcome.Answer, err)
			}
		})
	}
	wg.Wait()
}

// TestBothWireFormatsGiveTheSameRun asks the same model in OpenAI's and in Anthropic's format, over
// HTTP, on a server that fails occasionally.
func TestBothWireFormatsGiveTheSameRun(t *testing.T) {
	conversations := map[string]string{}
	for _, name := range []string{"openai/gpt-5", "anthropic/claude-sonnet-4-5"} {
		server := llmtest.Start(func(r llm.Request) (llm.Response, error) {
			if strings.HasPrefix(last(r), "part ") {
				return llm.Response{Text: strings.ToUpper(last(r))}, nil
			}
			if len(r.Messages) > 2 {
				return llm.Response{Text: code("FINAL(parts)")}, nil
			}
			return llm.Response{
				Text: code(
					"parts = llm_query_batched([f'part {c}' for c in context])\nprint(parts)",
				),
			}, nil
		})
		t.Cleanup(server.Close)
		server.Fail(
			llmtest.Status(429, "rate_limit_error", "slow down", "0"),
			llmtest.Status(500, "server_error", "oops", ""),
		)
		registry, err := providers.New(providers.Options{
			Env: server.Env, Windows: map[string]int64{"*": 200_000}, // prompts mention the window
		})
		if err != nil {
			t.Fatal(err)
		}
		cfg := config(nil, text("abc"))
		cfg.Models, cfg.Model, cfg.SubModel = registry, name, name
		cfg.Trace, cfg.CallsAtOnce = filepath.Join(
			t.TempDir(),
			"trace",
		), 1 // so that the calls end in a fixed order
		outcome, err := run.Run(t.Context(), cfg)
		if err != nil || outcome.Text() != `["PART A", "PART B", "PART C"]` {
			t.Fatalf("%s: %+v, %v", name, outcome, err)
		}
		conversations[name] = readTrajectory(t, cfg.Trace)
		if err := registry.Close(); err != nil {
			t.Error(err)
		}
	}
	if a, b := conversations["openai/gpt-5"], conversations["anthropic/claude-sonnet-4-5"]; a != b {
		t.Errorf("the runs differ:\n%s\n%s", a, b)
	}
}

// readTrajectory returns the dialogue and actions in a trace, without times and models.
func readTrajectory(t *testing.T, dir string) string {
	t.Helper()
	var b strings.Builder
	for _, line := range readLines(t, filepath.Join(dir, trajectory.File))[1:] {
		fmt.Fprintln(&b, line["iteration"], line["prompt"], line["response"], line["final_answer"])
		for _, block := range line["code_blocks"].([]any) {
			result := block.(map[string]any)["result"].(map[string]any)
			fmt.Fprintln(&b, result["stdout"], result["stderr"], result["locals"])
			for _, call := range result["rlm_calls"].([]any) {
				fmt.Fprintln(&b, call.(map[string]any)["prompt"], call.(map[string]any)["response"])
			}
		}
	}
	return b.String()
}

// TestLongTextsGoToSubCallsByReference checks that a long text that the sandbox never held can go
// to a sub-loop, whole or in part.
func TestLongTextsGoToSubCallsByReference(t *testing.T) {
	input := strings.Repeat("é line of text\n", 1_000_000)
	m := &models{
		facts: llm.Facts{Window: 100_000},
		script: []string{code(`assert isinstance(context, str)
whole = rlm_query("q", context)
part = rlm_query("q", context[1_000_000:11_000_000])
both = rlm_query("q", [context[:9_000_000], "plain"])
try:
    llm_query("sum it up", context)
except Exception as e:
    error = str(e)
print("too many" in error)`), code("FINAL([whole, part, both])")},
		byPurpose: func(r llm.Request) (llm.Response, bool) {
			return llm.Response{
				Text: code("FINAL(f'{type(context).__name__} {len(context)}')"),
			}, r.Metadata.Depth == 1
		},
	}
	answered(
		t, config(m, text(input)), `["str 15000000", "str 10000000", "list 2"]`,
	)
	told := last(m.requests[1])
	if !strings.Contains(told, "True") || !strings.Contains(told, "1 of 4 sub-calls failed") {
		t.Errorf("the model was told %q", told)
	}
}
