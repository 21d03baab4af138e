package run_test

import (
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"

	"github.com/rlmhq/rlm/internal/testing/skip"
	"github.com/rlmhq/rlm/repl/run"
)

// marks are the parts around code that models get wrong.
var marks = []string{
	"`", "``", "```", "~~~", "'", "'''", "\"", "<", ">", "</", "*", "_", " ", "    ", "\t", "\n", "\r", "#",
	"(", ")", "[", "]", "{", "}", "<think>", "</think>", "<code>", "</code>", "python", "repl", "json",
	"\ufeff", "\u00a0", "\x00", "- ", "1. ", "> ", "<|channel|>", "<|message|>", "FINAL", "FINAL(",
}

// codePlace matches the placeholder for the code in a wrapping.
var codePlace = regexp.MustCompile(`\{(code\w*|argumentsjson)\}`)

// mangle changes the text around the code of a reply, in the order of ops. The code stays in one
// piece, so the only answer in the reply is that of the code.
func mangle(wrap string, ops []byte) string {
	pieces, at := []string{}, 0
	for _, place := range append(codePlace.FindAllStringIndex(wrap, -1), []int{len(wrap), len(wrap)}) {
		for _, char := range wrap[at:place[0]] {
			pieces = append(pieces, string(char))
		}
		pieces = append(pieces, wrap[place[0]:place[1]])
		at = place[1]
	}

	for ; len(ops) >= 3; ops = ops[3:] {
		at := (int(ops[1]) | int(ops[2])<<8) % (len(pieces) + 1)
		isChar := at < len(pieces) && !codePlace.MatchString(pieces[at])
		switch kind := int(ops[0]); {
		case kind < 40 && isChar:
			pieces = append(pieces[:at:at], pieces[at+1:]...)
		case kind < 60 && isChar:
			pieces = append(pieces[:at:at], append([]string{pieces[at], pieces[at]}, pieces[at+1:]...)...)
		case kind < 80 && isChar && at > 0:
			pieces[at-1], pieces[at] = pieces[at], pieces[at-1]
		default:
			mark := marks[kind%len(marks)]
			pieces = append(pieces[:at:at], append([]string{mark}, pieces[at:]...)...)
		}
	}
	return strings.Join(pieces, "")
}

// goodReplies returns the rows of the table that have an answer, and answers in text, except those
// with another answer in a thought, or other characters in their code.
func goodReplies(tb testing.TB) (wraps []string, codes []reply) {
	tb.Helper()
	all := readReplies(tb)
	seen := map[string]bool{}
	for _, r := range all {
		isGood := r.wrap != "" && !strings.Contains(r.wrap, "999") && !strings.Contains(r.wrap, "{codenbsp}")
		if isGood && !seen[r.wrap] {
			seen[r.wrap] = true
			wraps = append(wraps, r.wrap)
		}
		if r.wrap == "{code}" && r.answer != "" {
			codes = append(codes, r)
		}
	}

	codes = append(codes, reply{text: "FINAL(len(context))", answer: "6"},
		reply{text: "FINAL(f\"{context.count('a')} of {len(context)}\")", answer: "3 of 6"})
	wraps = append(wraps, "I am done.\n{code}", "**{code}**", "**Answer:** {code}.", "- {code}", "> {code}\n",
		"FINAL(`\nFINAL{code}\n```", "`FINAL(``repl{code}\n``` ")
	return wraps, codes
}

// checkMangled plays one mangled reply. The run must return the program's answer, or ask the model
// again.
func checkMangled(t *testing.T, wrap string, r reply, ops []byte) {
	t.Helper()
	mangled := reply{text: r.text}.in(reply{text: mangle(wrap, ops)})
	m := &models{script: []string{mangled.text, code("FINAL('" + askedAgain + "')")}}
	outcome, err := run.Run(t.Context(), config(m, text("banana")))
	if err != nil {
		t.Fatalf("the run failed: %v for %q", err, mangled.text)
	}
	if got := outcome.Text(); got != r.answer && got != askedAgain {
		t.Errorf("the answer is %q, want %q or none for %q", got, r.answer, mangled.text)
	}
}

// TestMangledReplies plays a fixed part of the inputs of FuzzMangledReplies.
func TestMangledReplies(t *testing.T) {
	skip.UnderRace(t)
	wraps, codes := goodReplies(t)
	random := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // the same in every run
	kept := 0
	for range 600 {
		ops := make([]byte, 3*(1+random.IntN(4)))
		for i := range ops {
			ops[i] = byte(random.Uint32())
		}
		wrap, r := wraps[random.IntN(len(wraps))], codes[random.IntN(len(codes))]
		if checkMangled(t, wrap, r, ops); mangle(wrap, ops) != wrap {
			kept++
		}
	}
	if kept < 500 {
		t.Errorf("only %d replies were mangled", kept)
	}
}

func FuzzMangledReplies(f *testing.F) {
	wraps, codes := goodReplies(f)
	for i := range wraps {
		f.Add(uint(i), uint(i), []byte{byte(i), byte(7 * i), 0, byte(90 + i), byte(3 * i), 0})
	}
	f.Fuzz(func(t *testing.T, wrap, code uint, ops []byte) {
		r := codes[code%uint(len(codes))]
		checkMangled(t, wraps[wrap%uint(len(wraps))], r, ops[:min(len(ops), 60)])
	})
}
