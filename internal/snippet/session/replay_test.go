package session

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/rlmhq/rlm/internal/snippet/session/wire"
	"github.com/rlmhq/rlm/tiers"
)

// play runs requests as a snippet of a history. Its host answers "ask" with the call's number.
func play(t *testing.T, limits tiers.Limits) (*Accounts, *History, *int) {
	t.Helper()
	asked := 0
	a, err := NewAccounts(t.Context(), tiers.Config{
		Limits: limits, Functions: []tiers.Function{{Name: "ask"}},
		Host: tiers.HostFunc(func(_ context.Context, call tiers.Call) (tiers.Value, error) {
			asked++
			if string(call.Args[0]) == `"fail"` {
				return nil, errors.New("it failed")
			}
			return call.Args[0], nil
		}),
	})
	if err != nil {
		t.Fatal(err)
	}
	return a, NewHistory(a), &asked
}

// record runs requests as the next snippet and returns their answers.
func record(t *testing.T, a *Accounts, h *History, requests ...string) string {
	t.Helper()
	if err := a.Begin(t.Context(), tiers.Job{}); err != nil {
		t.Fatal(err)
	}
	h.Record(nil)
	said := handleAll(a, requests)
	a.End(wire.CodeOK)
	h.Add(Past{Ordinal: a.Ordinal(), Language: tiers.Go}, a.LastVerdict())
	return said
}

func handleAll(a *Accounts, requests []string) string {
	var answers []string
	for _, r := range requests {
		answers = append(answers, string(a.Handle([]byte(r)).Data))
	}
	return strings.Join(answers, ", ")
}

// TestASnippetThatRunsAgainGetsTheSameAnswers checks the answers to repeated calls, including
// refused ones.
func TestASnippetThatRunsAgainGetsTheSameAnswers(t *testing.T) {
	requests := []string{
		"cask\x00[[1],{}]", "cask\x00[[\"fail\"],{}]", "cllm_query\x00[[1],{}]", "crm\x00[[1],{}]",
		"o1printed", "cask\x00[[2],{}]", "cask\x00[[3],{}]",
	}
	a, h, asked := play(t, tiers.Limits{HostCalls: 5})
	first := record(t, a, h, requests...)
	want := `1, it failed, no model configured: this session runs code only; rlm ask runs it with a model, ` +
		`the host offers no function "rm", , 2, the limit of 5 host calls in one snippet is reached`
	if first != want || *asked != 3 {
		t.Errorf("%s after %d calls, want %s", first, *asked, want)
	}

	isSame, ended := h.RunAgain(t.Context(), 0, func(*Past) (string, bool) {
		if again := handleAll(a, requests); again != first {
			t.Errorf("%s, want %s", again, first)
		}
		return a.Verdict(wire.CodeOK), true
	})
	if !isSame || !ended || *asked != 3 {
		t.Errorf("same: %v, ended: %v, %d calls", isSame, ended, *asked)
	}
}

// TestASnippetThatAsksSomethingElseIsFound checks that RunAgain detects a repeated snippet with
// different calls, a different output or a different end.
func TestASnippetThatAsksSomethingElseIsFound(t *testing.T) {
	a, h, asked := play(t, tiers.Limits{})
	record(t, a, h, "cask\x00[[1],{}]", "o1printed")
	for name, other := range map[string]struct {
		requests []string
		verdict  string
	}{
		"another call":   {[]string{"cask\x00[[2],{}]", "o1printed"}, "ok"},
		"one more call":  {[]string{"cask\x00[[1],{}]", "cask\x00[[1],{}]", "o1printed"}, "ok"},
		"another output": {[]string{"cask\x00[[1],{}]", "o2printed"}, "ok"},
		"another end":    {[]string{"cask\x00[[1],{}]", "o1printed"}, "raised"},
	} {
		t.Run(name, func(t *testing.T) {
			isSame, ended := h.RunAgain(t.Context(), 0, func(*Past) (string, bool) {
				handleAll(a, other.requests)
				return other.verdict, true
			})
			if isSame || !ended || *asked != 1 {
				t.Errorf("%s: same: %v, %d calls", name, isSame, *asked)
			}
		})
	}
}

// TestTheHostKeepsNoMoreOfASessionThanItsLimit checks calls with long arguments and answers.
func TestTheHostKeepsNoMoreOfASessionThanItsLimit(t *testing.T) {
	const most = 4 << 20
	a, h, asked := play(t, tiers.Limits{Memory: most})
	long := `cask` + "\x00" + `[["` + strings.Repeat("x", most/8) + `"],{}]`
	said := ""
	for range 20 {
		said = record(t, a, h, long)
	}
	if !strings.Contains(said, "open a new session") || *asked != 8 {
		t.Errorf("%.200s after %d calls", said, *asked)
	}

	kept := 0
	for _, p := range h.Past() {
		for _, c := range p.Calls {
			kept += len(c.Call) + len(c.Value) + len(c.Error)
		}
	}
	if kept > most+most/4 {
		t.Errorf("the host keeps %d bytes", kept)
	}
	h.Forget()
	if said := record(t, a, h, "cask\x00[[1],{}]"); said != "1" {
		t.Errorf("after it forgot: %s", said)
	}
}

// TestAStateIsReadStrictly checks that a history refuses states that no tier can have written.
func TestAStateIsReadStrictly(t *testing.T) {
	for data, want := range map[string]string{
		`["x := 1", {"source": "y", "calls": []}]`: "",
		`{}`:                        "cannot",
		`[1]`:                       "cannot",
		`[{"source": "y", "z": 1}]`: "unknown field",
		`["x"] ["y"]`:               "extra bytes",
		`[{"source": "y", "calls": [{"call": 3}]}]`: "cannot",
	} {
		t.Run(data, func(t *testing.T) {
			_, h, _ := play(t, tiers.Limits{})
			err := h.Adopt(tiers.State{Language: tiers.Go, Data: []byte(data)})
			if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v", data, err)
			}
		})
	}
}
