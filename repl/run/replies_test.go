package run_test

import (
	"os"
	"strings"
	"testing"

	"github.com/rlmhq/rlm/repl/ledger"
	"github.com/rlmhq/rlm/repl/llm"
	"github.com/rlmhq/rlm/repl/run"
)

// reply is one row of testdata/replies.txt: what a model wrote, and what must become of it.
type reply struct {
	name, text string
	answer     string
	told       string // it is no answer, and the model is told this
	wrap       string // what the code stands in, empty for a whole reply
	kind       string // "reply", or "leaf" and the type that a sub-call asks for
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

	for _, wrap := range wraps {
		for _, code := range codes {
			all = append(all, code.in(wrap))
		}
	}
	return all
}

// expect takes the expected outcome from the first line of a row.
func (r *reply) expect(tb testing.TB) {
	tb.Helper()
	line, rest, _ := strings.Cut(r.text, "\n")
	key, value, _ := strings.Cut(line, ": ")
	switch key {
	case "answer":
		r.answer = value
	case "told":
		r.told = value
	default:
		tb.Fatalf("%s: no outcome in %q", r.name, line)
	}
	r.text = rest
}

// in returns a row whose code stands in a wrapping.
func (r reply) in(wrap reply) reply {
	indent := func(by string) string { return by + strings.ReplaceAll(r.text, "\n", "\n"+by) }
	text := strings.NewReplacer(
		"{code}", r.text, "{code3}", indent("   "), "{code4}", indent("    "),
		"{code8}", indent("        "), "{codetab}", indent("\t"),
		"{codecr}", strings.ReplaceAll(r.text, "\n", "\r\n"),
	).Replace(wrap.text)
	r.name, r.wrap, r.text, r.kind = wrap.name+", "+r.name, wrap.text, text, "reply"
	return r
}

// prepared is the namespace that the rows count on.
const prepared = `n = 42
found = {"a": 1}
row_count = 3
class Row:
    def __init__(self): self.name = "Ann"
row = Row()
def double(x): return 2 * x`

// askedAgain is the answer of a model that was asked again.
const askedAgain = "asked again"

// TestReplies plays the table at the root and in a sub-loop. No row may give another answer
// than its own.
func TestReplies(t *testing.T) {
	rows := readReplies(t)
	if len(rows) < 300 {
		t.Errorf("the table has %d rows", len(rows))
	}
	for _, r := range rows {
		if schema, ok := strings.CutPrefix(r.kind, "leaf"); ok {
			t.Run(r.kind+"/"+r.name, func(t *testing.T) { r.checkLeaf(t, strings.TrimSpace(schema)) })
			continue
		}
		t.Run("root/"+r.name, func(t *testing.T) {
			t.Parallel()
			m := &models{script: []string{
				code(prepared), r.text, code("FINAL('" + askedAgain + "')"),
			}}
			cfg := config(m, text("banana"))
			r.check(t, solve(t, cfg), func() string { return last(m.requests[2]) })
		})
		t.Run("sub/"+r.name, func(t *testing.T) {
			t.Parallel()
			told := ""
			m := &models{
				script: []string{code("FINAL(rlm_query('q', context))")},
				byPurpose: func(q llm.Request) (llm.Response, bool) {
					if q.Metadata.Depth == 0 {
						return llm.Response{}, false
					}
					if q.Metadata.Turn == 3 {
						told = last(q)
					}
					replies := []string{
						code(prepared), r.text, code("FINAL('" + askedAgain + "')"),
					}
					return llm.Response{Text: replies[q.Metadata.Turn-1]}, true
				},
			}
			r.check(t, solve(t, config(m, text("banana"))), func() string { return told })
		})
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
		sub:    func(llm.Request) (llm.Response, error) { return llm.Response{Text: r.text}, nil },
	}
	r.check(t, solve(t, config(m)), func() string { return last(m.requests[1]) })
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
