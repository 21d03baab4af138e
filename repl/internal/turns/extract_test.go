package turns

import (
	"slices"
	"strings"
	"testing"

	"github.com/rlmhq/rlm/internal/testing/skip"
	"github.com/rlmhq/rlm/tiers"
)

func TestExtractReadsEveryLayer(t *testing.T) {
	for _, c := range []struct {
		name, reply string
		sources     []string
		final       string // Call(Argument)
	}{
		{"nothing", "just words", nil, ""},
		{"empty", "", nil, ""},
		{"fence", "a\n```repl\nx = 1\n```\nb", []string{"x = 1"}, ""},
		{"indented fence", "1. item\n   ```python\nx = 1\n   ```", []string{"x = 1"}, ""},
		{"windows line ends", "```repl\r\nx = 1\r\n```\r\n", []string{"x = 1"}, ""},
		{"attributes", "```{.python .numberLines}\nx = 1\n```", []string{"x = 1"}, ""},
		{"inline code is no fence", "use ```x``` here\nand there", nil, ""},
		{"empty fence", "```repl\n\n```", nil, ""},
		{"two fences, the second open", "```repl\na = 1\n```\n```repl\nb = 2", []string{"a = 1", "b = 2"}, ""},
		{"a fence left open before another", "```repl\na = 1\n```text\nnote\n```\n```repl\nb = 2\n```", nil, "*"},
		{"code and final", "```repl\nx = 1\n```\nFINAL_VAR(x)", []string{"x = 1"}, "FINAL_VAR(x)"},
		{"final in code only", "```repl\nFINAL(1)\n```", []string{"FINAL(1)"}, ""},
		{"final in a fence of text", "```text\nFINAL(1)\n```", nil, ""},
		{"two finals", "FINAL(first)\nor rather\nFINAL(second)", nil, ""},
		{"a final twice", "FINAL(first)\nso\nFINAL(first)", nil, "FINAL(first)"},
		{"brackets in strings", `FINAL("a ) b (")`, nil, `FINAL("a ) b (")`},
		{"triple quotes", "FINAL(\"\"\"a\n) b\"\"\")", nil, "FINAL(\"\"\"a\n) b\"\"\")"},
		{"never closed", "FINAL(never closed", nil, ""},
		{"a smiley", "FINAL(good :) really)", nil, "FINAL(good :) really)"},
		{"lower case", "final(1)", nil, ""},
		{"finality", "FINALLY(1)", nil, ""},
		{"a version", "```python3.12\nx = 1\n```", []string{"x = 1"}, ""},
		{"a late version", "Run ```python3.12\nx = 1\n```", []string{"x = 1"}, ""},
		{"jupyter", "```jupyter\nx = 1\n```", []string{"x = 1"}, ""},
		{"code of no name", "```code\nprint(1)\n```", []string{"print(1)"}, ""},
		{"the end of code after the fence", "Code:\n```py\nx = 1\n```<end_code>", []string{"x = 1"}, ""},
		{"the end of code inside", "Code:\n```py\nx = 1<end_code>\n```", []string{"x = 1"}, ""},
		{"a fence in a fence", "```\n```py\nx = 1\n```\n```", []string{"x = 1"}, ""},
		{"a fence in a page", "````markdown\n```py\nx = 1\n```\n````", nil, ""},
		{"an object with code", `{"thought": "I count.", "code": "print(1)"}`, []string{"print(1)"}, ""},
		{"an object with code in a fence of data", "```json\n{\"code\": \"print(1)\"}\n```", []string{"print(1)"}, ""},
		{"an object with more", `{"code": "print(1)", "price": 3}`, nil, ""},
		{"an object with code of Rust", `{"language": "rust", "code": "print(1)"}`, nil, ""},
		{
			"a call of DeepSeek V3", "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>python\n" +
				"```json\n{\"code\": \"print(1)\"}\n```<｜tool▁call▁end｜><｜tool▁calls▁end｜>", []string{"print(1)"}, "",
		},
		{
			"a call of DeepSeek V3.1", "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>python<｜tool▁sep｜>" +
				`{"code": "print(1)"}<｜tool▁call▁end｜><｜tool▁calls▁end｜>`, []string{"print(1)"}, "",
		},
		{
			"a call of Granite", `<|tool_call|>[{"name": "python", "arguments": {"code": "print(1)"}}]`,
			[]string{"print(1)"},
			"",
		},
		{
			"a call of Cohere", `<|START_ACTION|>[{"tool_call_id": "0", "tool_name": "python_interpreter", ` +
				`"parameters": {"code": "print(1)"}}]<|END_ACTION|>`, []string{"print(1)"}, "",
		},
		{
			"harmony's python tool", "<|channel|>analysis to=python code<|message|>print(1)<|call|>",
			[]string{"print(1)"},
			"",
		},
		{
			"harmony's commentary", "<|start|>assistant<|channel|>commentary to=functions.python <|constrain|>json" +
				"<|message|>" +
				`{"code": "print(1)"}<|call|>`, []string{"print(1)"}, "",
		},
		{"half a tag", "Thoughts: x\n<code>\nprint(1)\n</code", []string{"print(1)"}, ""},
		{"a box", "<|begin_of_box|>```repl\nx = 1\n```<|end_of_box|>", []string{"x = 1"}, ""},
		{"wide brackets", "```repl\nFINAL（6*7）\n```", []string{"FINAL(6*7)"}, ""},
		{"wide brackets in a text", "```repl\nFINAL('FINAL（x）')\n```", []string{"FINAL('FINAL（x）')"}, ""},
		{"a backslash in a text", "```repl\nFINAL(r'FINAL\\_VAR')\n```", []string{`FINAL(r'FINAL\_VAR')`}, ""},
		{
			"wide punctuation in texts", "```repl\nx = [“a，b”，'（c）'] # （d）\n```",
			[]string{`x = ["a，b",'（c）'] # （d）`},
			"",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := Extract(c.reply)
			if c.final == "*" {
				return // either reading is acceptable, but it must end
			}
			if len(r.Blocks) != len(c.sources) {
				t.Fatalf("blocks %+v, want %q", r.Blocks, c.sources)
			}
			for i, b := range r.Blocks {
				if strings.TrimSpace(b.Source) != c.sources[i] || b.Language != tiers.Python {
					t.Errorf("block %d is %q, want %q", i, b.Source, c.sources[i])
				}
			}
			final := ""
			if r.Final != nil {
				final = r.Final.Call + "(" + r.Final.Argument + ")"
			}
			if final != c.final {
				t.Errorf("final is %q, want %q", final, c.final)
			}
		})
	}
}

func TestTextThatMayBeCodeLosesItsMarks(t *testing.T) {
	for reply, want := range map[string]string{
		"text\n\tx = llm_query('a')\n\tprint(x)":        "x = llm_query('a')\nprint(x)",
		"1. x = 1\n2. print(x)":                         "x = 1\nprint(x)",
		"so:\n> x = 1\n> print(x)\nthat is it":          "x = 1\nprint(x)",
		"`x = 1`\n**print(x)**":                         "x = 1\nprint(x)",
		">>> def f():\n...     pass\n>>> print(f())\n5": "def f():\n    pass\nprint(f())",
		"- for x in y:\n-     print(“x”)":               "for x in y:\n    print(\"x\")",
	} {
		t.Run(reply, func(t *testing.T) {
			if r := Extract(reply); !slices.Contains(r.Bare, want) {
				t.Errorf("%q: %q lacks %q", reply, r.Bare, want)
			}
		})
	}
}

func TestGoFencesAreRecognised(t *testing.T) {
	if r := Extract("```go\nfmt.Println(1)\n```"); len(r.Blocks) != 1 ||
		r.Blocks[0].Language != tiers.Go {
		t.Errorf("got %+v", r)
	}
}

// TestCodeExtractionTable checks each layer and batches.
//
// Source 000, repl/internal/turns/extract.go: Three-layer fallback chain: fenced, indented,
// FINAL.
//
// Source 000, repl/internal/turns/extract.go: looks_like_python(code) filters false positives
// from bare code fences.
func TestCodeExtractionTable(t *testing.T) {
	for _, c := range []struct{ name, reply, source string }{
		{"one of two", "```py\na = 1\n```\n```py\nb = 2\n```", "a = 1"},
		{"batch", "```py\n# BATCH\na = 1\n```\n```go\nx\n```\n```py\nb = 2\n```", "# BATCH\na = 1\n\nb = 2"},
		{"code of another language", "```go\nx := 1\n```\n```py\nb = 2\n```", "b = 2"},
		{"tilde", "~~~python\na = 1\n~~~", "a = 1"},
		{"bare", "```\nprint(1)\n```", "print(1)"},
		{"bare data", "```\n1;2;3\n```", ""},
		{"json", "```json\n{\"a\": 1}\n```", ""},
		{"indented", "I look:\n\n    x = 1\n    print(x)\n", "x = 1\nprint(x)"},
		{"indented before final", "I look:\n\n    x = len(trace)\n\nFINAL(x)", "x = len(trace)"},
		{"code before final", "```py\na = 1\n```\nFINAL(a)", "a = 1"},
		{"final at a line's start", "Done.\nFINAL({'reasoning': 'a (b)'})\nThanks.", "FINAL({'reasoning': 'a (b)'})"},
		{"final in a line", `So: FINAL({"reasoning": "x"}) it is`, `FINAL({"reasoning": "x"})`},
		{"final of a variable", "FINAL_VAR(result)", `FINAL_VAR("result")`},
		{"prose", "I would call FINAL(...) now.", ""},
		{"nothing", "", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			if source, ok := ExtractScript(c.reply, false); ok != (c.source != "") || source != c.source {
				t.Errorf("%s: %q (%v), want %q", c.name, source, ok, c.source)
			}
		})
	}
}

func TestOfACutReplyOnlyCodeWithItsEndCounts(t *testing.T) {
	for reply, want := range map[string]int{
		"```py\nFINAL(1)":                     0,
		"```py\nx = 1\n```\n```py\nFINAL(1)":  1,
		"```py\nx = 1\n```\nFINAL(x)":         1,
		"x = 1\nFINAL(x)":                     0,
		"FINAL(1)":                            0,
		"<code>FINAL(1)</code>":               0,
		"<tool_call>{\"code\": \"FINAL(1)\"}": 0,
		"```js\nlet x\n```":                   0,
	} {
		t.Run(reply, func(t *testing.T) {
			r := Extract(reply)
			r.DropUnfinished()
			if len(r.Blocks) != want || r.Final != nil || r.Bare != nil || r.Unread != "" {
				t.Errorf("%q: %+v", reply, r)
			}
			if source, ok := ExtractScript(reply, true); ok != (want > 0) || strings.Contains(source, "FINAL") {
				t.Errorf("%q: the script is %q", reply, source)
			}
		})
	}
}

func TestAFloodOfBlocksIsBounded(t *testing.T) {
	if r := Extract(strings.Repeat("```py\nprint(1)\n```\n", 10_000)); len(r.Blocks) != maxBlocks {
		t.Errorf("%d blocks", len(r.Blocks))
	}
	Extract(strings.Repeat("```json\n", 20_000))
	Extract(strings.Repeat("FINAL(", 20_000))
	Extract(strings.Repeat("    x = (\n", 20_000))
	Extract("FINAL(" + strings.Repeat("it's) ", 20_000))
	Extract(strings.Repeat("```\n~~~\n", 20_000))
}

// TestAFloodOfFencesIsReadOnce checks inputs that open nested blocks, for which a naive reader
// would search the whole rest for the end of each.
func TestAFloodOfFencesIsReadOnce(t *testing.T) {
	skip.UnderRace(t)
	for part, size := range map[string]int{
		"```a\n```a\n```\n":              512 << 10,
		"~~~a\n~~~a\n~~~\n":              64 << 10,
		"```json\n```text\n```\nx = 1\n": 64 << 10,
	} {
		t.Run(part, func(t *testing.T) {
			r := Extract(strings.Repeat(part, size/len(part)) + "FINAL(1)")
			if len(r.Blocks) != 0 || r.Final == nil {
				t.Errorf("%q: found %+v", part, r)
			}
		})
	}
	if r := Extract(strings.Repeat("x", maxLooked) + "\nFINAL(1)"); r.Final != nil {
		t.Errorf("found %+v beyond what is looked at", r.Final)
	}
	if r := Extract("FINAL(" + strings.Repeat("a ", 1<<19) + ")\n" + strings.Repeat("q=1 ", 1<<18)); r.Final == nil {
		t.Error("the words around an answer set none of its names")
	}
	r := Extract(strings.Repeat("```a\n```a\n```\n", 10) + "```py\nprint(1)\n```\nFINAL(1)")
	if len(r.Blocks) != 1 || r.Final == nil {
		t.Errorf("found %+v", r)
	}
}

func FuzzExtract(f *testing.F) {
	for _, seed := range []string{
		"```repl\nx\n```", "~~~\nFINAL(1)", "    a = 1\n    FINAL(a)", "FINAL(\"x\")",
		"FINAL_VAR('x')", "SUBMIT(a=1)", "```\n```\n```", "FINAL('''", "**FINAL(x)**",
		"```python\n\"\"\"\n```json\n{}\n```\n\"\"\"\n```",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, reply string) {
		r := Extract(reply)
		for _, b := range r.Blocks {
			if strings.TrimSpace(b.Source) == "" {
				t.Errorf("an empty block in %q", reply)
			}
		}
		if source, ok := ExtractScript(reply, false); ok && strings.TrimSpace(source) == "" {
			t.Errorf("empty code in %q", reply)
		}
		if r.Final != nil {
			r.Final.literal()
			_ = r.Final.source() + string(r.Final.text())
		}
	})
}
