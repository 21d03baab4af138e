package run_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/rlmhq/rlm/internal/testing/skip"
	"github.com/rlmhq/rlm/repl/internal/calls"
	"github.com/rlmhq/rlm/repl/ledger"
	"github.com/rlmhq/rlm/repl/llm"
	"github.com/rlmhq/rlm/repl/run"
)

// reply is one row of testdata/replies.txt: a model's reply, and the required outcome.
type reply struct {
	name, text string
	answer     string
	told       string // the feedback to the model, if the text is not an answer
	wrap       string // what surrounds the code; empty for a whole reply
	kind       string // "reply", "calls", or "leaf", "direct" or "last" with the requested type
	finish     string // how the reply ended; empty if it is complete
	again      string // the second reply of a sub-call; empty if it equals the first
	atRoot     bool   // the row is played only at the root
}

// readReplies reads the table.
func readReplies(tb testing.TB) []reply {
	tb.Helper()
	data, err := os.ReadFile("testdata/replies.txt")
	if err != nil {
		tb.Fatal(err)
	}

	var wraps, codes, all []reply
	for _, section := range strings.Split(string(data), "\n== ")[1:] {
		title, body, _ := strings.Cut(section, "\n")
		kind, name, _ := strings.Cut(title, ": ")
		r := reply{name: name, text: body, kind: kind}
		if kind == "wrap" {
			wraps = append(wraps, r)
			continue
		}
		r.expect(tb)
		if kind == "code" {
			codes = append(codes, r)
		} else {
			all = append(all, r)
		}
	}

	for i, wrap := range wraps {
		for j, code := range codes {
			r := code.in(wrap)
			r.atRoot = (i+j)%len(codes) > 0 // in a sub-loop, one code of each wrapping will do
			all = append(all, r)
		}
	}
	return all
}

// expect reads the first lines of a row: how the reply ended, then the expected outcome.
func (r *reply) expect(tb testing.TB) {
	tb.Helper()
	for {
		line, rest, _ := strings.Cut(r.text, "\n")
		key, value, _ := strings.Cut(line, ": ")
		r.text = rest
		switch key {
		case "finish":
			r.finish = value
			continue
		case "again":
			r.again = value
			continue
		case "answer":
			r.answer = strings.ReplaceAll(value, `\n`, "\n")
		case "told":
			r.told = value
		default:
			tb.Fatalf("%s: no outcome in %q", r.name, line)
		}
		return
	}
}

// in returns a row with its code in a wrapping.
func (r reply) in(wrap reply) reply {
	indent := func(by string) string { return by + strings.ReplaceAll(r.text, "\n", "\n"+by) }
	lines := strings.Split(r.text, "\n")
	quote, _ := json.Marshal(r.text)
	arguments, _ := json.Marshal(`{"code": ` + string(quote) + `}`)
	text := strings.NewReplacer(
		"{codejson}", string(quote), "{argumentsjson}", string(arguments),
		"{codeprompt}", strings.TrimPrefix(eachLine(lines, func(_ int, line string) string {
			if strings.HasPrefix(line, " ") {
				return "... " + line
			}
			return ">>> " + line
		}), ">>> "),
		"{codequote}", strings.ReplaceAll(r.text, "\n", "\n> "),
		"{codenbsp}", strings.ReplaceAll(r.text, " ", "\u00a0"),
		"{codenumbered}", eachLine(lines, func(i int, line string) string { return fmt.Sprintf("%d. %s", i+1, line) }),
		"{codebullets}", eachLine(lines, func(_ int, line string) string { return "- " + line }),
		"{codeticks}", eachLine(lines, func(_ int, line string) string { return "`" + line + "`" }),
		"{codebold}", eachLine(lines, func(_ int, line string) string { return "**" + line + "**" }),
		"{code}", r.text, "{code3}", indent("   "), "{code4}", indent("    "),
		"{code8}", indent("        "), "{codetab}", indent("\t"),
		"{codecr}", strings.ReplaceAll(r.text, "\n", "\r\n"),
	).Replace(wrap.text)
	r.name, r.wrap, r.text, r.kind = wrap.name+", "+r.name, wrap.text, text, "reply"
	return r
}

// eachLine changes each line of a program and joins the lines.
func eachLine(lines []string, change func(i int, line string) string) string {
	changed := make([]string, len(lines))
	for i, line := range lines {
		changed[i] = change(i, line)
	}
	return strings.Join(changed, "\n")
}

// prepared is the namespace on which the rows rely.
const prepared = `n = 42
found = {"a": 1}
row_count = 3
class Row:
    def __init__(self): self.name = "Ann"
row = Row()
def double(x): return 2 * x`

// askedAgain is the answer of a model that was asked a second time.
const askedAgain = "asked again"

// TestReplies plays the table at the root and in a sub-loop. No row may yield a different
// answer.
func TestReplies(t *testing.T) {
	skip.UnderRace(t)
	rows := readReplies(t)
	if len(rows) < 1_000 {
		t.Errorf("the table has %d rows", len(rows))
	}
	for _, r := range rows {
		place, schema, _ := strings.Cut(r.kind, " ")
		if check := checks[place]; check != nil {
			t.Run(r.kind+"/"+r.name, func(t *testing.T) { check(&r, t, schema) })
			continue
		}
		if r.kind == "calls" {
			r.text = code(r.text)
		}
		t.Run("root/"+r.name, func(t *testing.T) {
			t.Parallel()
			m, told := r.play(0)
			r.check(t, solve(t, config(m, text("banana"))), told)
		})
		if r.wrap == "" && r.kind == "reply" {
			t.Run("direct/"+r.name, func(t *testing.T) { r.checkDirect(t, "") })
			t.Run("last/"+r.name, func(t *testing.T) { r.checkLast(t, "") })
		}
		if r.atRoot {
			continue
		}
		t.Run("sub/"+r.name, func(t *testing.T) {
			t.Parallel()
			m, told := r.play(1)
			m.script = []string{code("FINAL(rlm_query('q', context))")}
			r.check(t, solve(t, config(m, text("banana"))), told)
		})
	}
}

// play returns a model that gives the reply in the second turn of the loops at a depth, and a
// function that returns the feedback in the third.
func (r *reply) play(depth int) (m *models, told func() string) {
	said := ""
	m = &models{sub: answerByName(), byPurpose: func(q llm.Request) (llm.Response, bool) {
		switch {
		case q.Metadata.Depth > depth:
			return llm.Response{Text: "I cannot."}, true
		case q.Metadata.Depth < depth:
			return llm.Response{}, false
		}
		switch q.Metadata.Turn {
		case 1:
			return llm.Response{Text: code(prepared)}, true
		case 2:
			return llm.Response{Text: r.text, Finish: r.finish}, true
		}
		said = last(q)
		return llm.Response{Text: code("FINAL('" + askedAgain + "')")}, true
	}}
	return m, func() string { return said }
}

// answerByName answers sub-calls according to their prompts.
func answerByName() func(llm.Request) (llm.Response, error) {
	var tries atomic.Int64
	return func(q llm.Request) (llm.Response, error) {
		said := last(q)
		switch {
		case strings.HasPrefix(said, "fail"), said == "flaky" && tries.Add(1) == 1:
			return llm.Response{}, errors.New("cannot reach the server of the sub-model")
		case said == "flaky":
			return llm.Response{Text: "red"}, nil
		case said == "cut":
			return llm.Response{Text: "yes", Finish: llm.FinishLength}, nil
		case said == "empty":
			return llm.Response{}, nil
		}
		return llm.Response{Text: said}, nil
	}
}

// checkLeaf plays a row as the reply to a sub-call.
func (r *reply) checkLeaf(t *testing.T, schema string) {
	t.Helper()
	t.Parallel()
	ask := "llm_query('q')"
	if schema != "" {
		ask = "llm_query('q', schema=" + schema + ")"
	}
	m := &models{
		script: []string{code("FINAL(" + ask + ")"), code("FINAL('" + askedAgain + "')")},
		sub: func(q llm.Request) (llm.Response, error) {
			if again := q.MaxTokens > calls.DefaultReply; again && r.again != "" {
				return llm.Response{Text: r.again}, nil
			}
			return llm.Response{Text: r.text, Finish: r.finish}, nil
		},
	}
	r.check(t, solve(t, config(m)), func() string { return last(m.requests[1]) })
}

// checks play the rows of a kind.
var checks = map[string]func(r *reply, t *testing.T, schema string){
	"leaf": (*reply).checkLeaf, "direct": (*reply).checkDirect, "last": (*reply).checkLast,
}

// checkDirect plays a row as the reply to a question without a loop. A row of another kind may
// be accepted verbatim if it consists of words; otherwise the loop answers.
func (r *reply) checkDirect(t *testing.T, schema string) {
	t.Helper()
	t.Parallel()
	reason := ""
	cfg := config(&models{byPurpose: func(q llm.Request) (llm.Response, bool) {
		if q.Metadata.Purpose == "bypass" {
			return llm.Response{Text: r.text, Finish: r.finish}, true
		}
		return llm.Response{Text: code("FINAL(" + againAs(schema) + ")")}, true
	}}, text("banana"))
	cfg.Bypass, cfg.Schema = 0, typeOf(schema)
	cfg.Progress = func(e ledger.Event) {
		if e.Kind == ledger.EventWarning && e.Purpose == "bypass" {
			reason = e.Error
		}
	}

	outcome := solve(t, cfg)
	isOwn := strings.HasPrefix(r.kind, "direct")
	switch {
	case isOwn && r.told == "":
		if outcome.Text() != r.answer || !outcome.Bypassed {
			t.Errorf("the answer is %q, want %q for %q", outcome.Text(), r.answer, r.text)
		}
	case isOwn && !strings.Contains(reason, r.told):
		t.Errorf("the loop answered because of %q, want %q", reason, r.told)
	case outcome.Bypassed && (isOwn || outcome.Text() != strings.TrimSpace(r.text)):
		t.Errorf("the answer is %q for %q", outcome.Text(), r.text)
	}
}

// checkLast plays a row as the last word of a loop without turns. A row of another kind that is
// not an answer may be accepted verbatim if it consists of words.
func (r *reply) checkLast(t *testing.T, schema string) {
	t.Helper()
	t.Parallel()
	cfg := config(&models{sub: answerByName(), byPurpose: func(q llm.Request) (llm.Response, bool) {
		if q.Metadata.Purpose == "synthesis" {
			return llm.Response{Text: r.text, Finish: r.finish}, true
		}
		return llm.Response{Text: code(prepared)}, q.Metadata.Purpose == "root"
	}}, text("banana"))
	cfg.MaxTurns, cfg.Schema = 1, typeOf(schema)

	outcome := solve(t, cfg)
	isWords := r.kind == "reply" && outcome.Text() == strings.TrimSpace(r.text)
	switch {
	case r.told == "":
		if outcome.Status != ledger.StatusSynthesised || outcome.Text() != r.answer {
			t.Errorf("the run ended as %s with %q, want %q for %q (%s)",
				outcome.Status, outcome.Text(), r.answer, r.text, outcome.Reason)
		}
	case outcome.Answer != nil && !isWords:
		t.Errorf("the answer is %q for %q", outcome.Text(), r.text)
	case r.kind != "reply" && !strings.Contains(outcome.Reason, r.told):
		t.Errorf("the reason is %q, want %q", outcome.Reason, r.told)
	}
}

// typeOf returns the contract of a type, or nil if schema is empty.
func typeOf(schema string) json.RawMessage {
	if schema == "" {
		return nil
	}
	quoted, _ := json.Marshal(schema)
	return quoted
}

// againAs returns an answer of a type that occurs in no row, as code.
func againAs(schema string) string {
	switch schema {
	case "int":
		return "-1"
	case "bool":
		return "False"
	case "list[int]", "list[str]":
		return "[]"
	}
	return "'" + askedAgain + "'"
}

// check compares a run's outcome with the table.
func (r *reply) check(t *testing.T, outcome run.Outcome, told func() string) {
	t.Helper()
	if outcome.Status != ledger.StatusAnswered {
		t.Fatalf("the run ended as %s: %s", outcome.Status, outcome.Reason)
	}
	if r.told == "" {
		if outcome.Text() != r.answer {
			t.Errorf("the answer is %q, want %q for %q", outcome.Text(), r.answer, r.text)
		}
		return
	}
	if outcome.Text() != askedAgain {
		t.Errorf("the answer is %q, want none for %q", outcome.Text(), r.text)
	} else if said := told(); !strings.Contains(said, r.told) {
		t.Errorf("the model was told %q, which lacks %q", said, r.told)
	}
}
