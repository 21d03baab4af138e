package texts_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/rlmhq/rlm/internal/testing/skip"
	"github.com/rlmhq/rlm/internal/text/texts"
)

func TestDropThoughts(t *testing.T) {
	const code = "```repl\ns = '<think>'\nt = context.count('</think>')\n```"
	for reply, want := range map[string]string{
		"plain":                                       "plain",
		"<think>a</think>b":                           "b",
		" \n<think>\na\n</think>\nb":                  " \n\nb",
		"<THINK>a</Think>b":                           "b",
		"<thinking>a</thinking>b":                     "b",
		"<thought>a</thought>b":                       "b",
		"<reasoning effort=\"x\">a</reasoning>b":      "b",
		"<scratchpad>a</scratchpad>b":                 "b",
		"<seed:think>a</seed:think>b":                 "b",
		"[THINK]a[/THINK]b":                           "b",
		"◁think▷a◁/think▷b":                           "b",
		"<|START_THINKING|>a<|END_THINKING|>b":        "b",
		"<|begin_of_thought|>a<|end_of_thought|>b":    "b",
		"<think>FINAL(1)":                             "",
		"b\n<think>FINAL(1)":                          "b\n",
		"a</think>b":                                  "b",
		"a <think>b</think> c <think>d</think> e":     "a  c  e",
		"<think>a <think> b</think>c":                 "c",
		"<think><think>a</think>b</think>c":           "c",
		"<think/>b":                                   "<think/>b",
		"The tag `<think>` begins it":                 "The tag `<think>` begins it",
		code:                                          code,
		code + "\n<think>x</think>":                   code + "\n",
		"<think>\n```py\nFINAL(1)\n</think>\n" + code: "\n" + code,
		"```py\nFINAL(1)\n</think>\nFINAL(2)":         "\nFINAL(2)",
		"x\n```py\nFINAL(1)\n```\n</think>\nFINAL(2)": "\nFINAL(2)",

		"<|channel|>analysis<|message|>FINAL(1)<|end|><|start|>assistant<|channel|>final<|message|>b<|return|>": "b",
		"<|channel|>analysis<|message|>FINAL(1)":                                                         "",
		"<|channel|>analysis<|message|>FINAL(1)<|channel|>final<|message|>b":                             "b",
		"analysis<|message|>FINAL(1)<|end|><|start|>assistant<|channel|>final<|message|>b":               "b",
		"<|start|>assistant<|channel|>commentary to=search <|constrain|>json<|message|>FINAL(1)<|call|>": "",

		"<|channel|>analysis to=python<|message|>FINAL(1)<|call|>": "<|python_tag|>FINAL(1)<|eom_id|>",

		"<|start|>assistant<|message|>b<|end|>":           "b",
		"<|channel|>final<|message|>b":                    "b",
		"<|channel|>final <|constrain|>json<|message|>{}": "{}",
		"final<|message|>b":                               "b",
		"analysisWe count FINAL(1)assistantfinalFINAL(2)": "FINAL(2)",
		"analysisWe count FINAL(1)":                       "",
		"analysis of it":                                  "analysis of it",
		"x = context.split('<|message|>')":                "x = context.split('<|message|>')",
	} {
		t.Run(fmt.Sprintf("%.60s", reply), func(t *testing.T) {
			if got := texts.DropThoughts(reply); got != want {
				t.Errorf("%q becomes %q, want %q", reply, got, want)
			}
		})
	}
}

// TestAFloodOfTagsIsReadOnce checks that the work is not quadratic: otherwise the test would exceed
// its time limit.
func TestAFloodOfTagsIsReadOnce(t *testing.T) {
	skip.UnderRace(t)
	for _, part := range []string{
		"<think>", "</think>", "```\n<think>\n", "```\n<think>\n```\n", "~~~~\n<think>\n```\n", "<|channel|>",
		"```\n</think>",
	} {
		texts.DropThoughts(strings.Repeat(part, 400_000/len(part)))
	}
	inCode := "```\n" + strings.Repeat("</think>", 200_000) + "\n```\nb"
	if got := texts.DropThoughts(inCode); got != inCode {
		t.Errorf("of code with %d bytes, %d are left", len(inCode), len(got))
	}
}
