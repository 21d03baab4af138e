package run_test

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/rlmhq/rlm/repl/internal/calls"
	"github.com/rlmhq/rlm/repl/ledger"
	"github.com/rlmhq/rlm/repl/llm"
)

// numbered matches the records in the prompt of a call for several.
var numbered = regexp.MustCompile(`(?m)^"(\d+)": "(.*)",?$`)

// colours answers for each record with its last word. Spoil may change the reply to a call for
// several records; a record that it omits has no value.
func colours(spoil func(records []string, reply map[string]any) string) func(llm.Request) (llm.Response, error) {
	return func(r llm.Request) (llm.Response, error) {
		prompt := last(llm.Request{Messages: r.Messages[:1]})
		_, context, _ := strings.Cut(prompt, "Context:\n")
		found := numbered.FindAllStringSubmatch(context, -1)
		if found == nil {
			return llm.Response{Text: fmt.Sprintf("%q", lastWord(context))}, nil
		}
		var records []string
		reply := map[string]any{}
		for _, match := range found {
			records = append(records, match[2])
			reply[match[1]] = lastWord(match[2])
		}
		if text := spoil(records, reply); text != "" {
			return llm.Response{Text: text}, nil
		}
		data, err := json.Marshal(reply)
		return llm.Response{Text: string(data)}, err
	}
}

func lastWord(text string) string { return text[strings.LastIndexByte(text, ' ')+1:] }

func unspoiled([]string, map[string]any) string { return "" }

// things makes 50 records: 25 red, 15 blue and 10 black.
const things = `
from typing import Literal
colour = Literal["red", "blue", "black", "green"]
records = [f"thing {i} is " + ["red", "red", "blue", "red", "black", "red", "blue", "black", "red", "blue"][i % 10]
           for i in range(50)]
seen = map_llm("Which colour?", records, schema=colour, cover=True)
`

func TestCoverGivesEachRecordItsValue(t *testing.T) {
	const rest = `FINAL([seen.counts, list(seen)[:5], seen.missing, len(seen), seen.partial() == seen])`
	const want = `[{"red": 25, "blue": 15, "black": 10, "green": 0}, ["red", "red", "blue", "red", "black"], [], ` +
		"50, true]"
	for name, c := range map[string]struct {
		spoil func(records []string, reply map[string]any) string
		calls func(int) bool
	}{
		"honest": {unspoiled, func(n int) bool { return n == 3 }},
		"a line is missing": {
			func(records []string, reply map[string]any) string {
				if len(records) > 5 {
					delete(reply, "3")
				}
				return ""
			}, func(n int) bool { return n >= 10 && n < 25 },
		},
		"a line is there twice": {
			func(records []string, _ map[string]any) string {
				if slices.Contains(records, "thing 7 is black") {
					return `{"1": "red", "1": "blue"}`
				}
				return ""
			}, func(n int) bool { return n > 3 && n < 25 },
		},
		"a value is no label": {
			func(records []string, reply map[string]any) string {
				if len(records) > 1 && strings.Contains(records[0], "thing 2") {
					reply["1"] = "reddish"
				}
				return ""
			}, func(n int) bool { return n > 3 && n < 25 },
		},
		"lists": {
			func(records []string, _ map[string]any) string {
				return `["red"` + strings.Repeat(`, "red"`, len(records)-1) + "]"
			}, func(n int) bool { return n > 50 },
		},
	} {
		t.Run(name, func(t *testing.T) {
			m := &models{script: []string{code(things + rest)}, sub: colours(c.spoil)}
			outcome := answered(t, config(m), want)
			if outcome.Reason != "" || !c.calls(len(m.subs)) {
				t.Errorf("%d calls, reason %q", len(m.subs), outcome.Reason)
			}
		})
	}
}

// unknown leaves one record without a value until the model has been asked more than after times.
func unknown(after int64) func(llm.Request) (llm.Response, error) {
	var asked atomic.Int64
	honest := colours(unspoiled)
	return func(r llm.Request) (llm.Response, error) {
		prompt := r.Messages[0].Content
		if strings.Contains(prompt, "thing 7 is black") && asked.Add(1) <= after {
			return llm.Response{Text: "I cannot say."}, nil
		}
		return honest(r)
	}
}

func TestNothingReadsValuesOfWhichSomeAreMissing(t *testing.T) {
	const reads = `
gaps = [(m.index, m.record, bool(m.reason)) for m in seen.missing]
refused, passed = 0, []
reads = [lambda: list(seen), lambda: seen.counts, lambda: seen[7], lambda: seen[5:9], lambda: sorted(seen),
         lambda: seen.count("red"), lambda: "red" in seen, lambda: [*seen], lambda: json.dumps(seen),
         lambda: collections.Counter(seen), lambda: tally(seen), lambda: sum(1 for x in seen), lambda: seen == [],
         lambda: seen + [], lambda: filter_llm("?", seen), lambda: FINAL(seen), lambda: dict(zip(records, seen)),
         lambda: seen.copy(), lambda: FINAL({"all": seen}), lambda: llm_query("?", context=seen),
         lambda: tuple(reversed(seen))]
for read in reads:
    try:
        read()
    except RuntimeError as error:
        refused += "1 of 50 records have no value, the first at index 7" in str(error)
    else:
        passed.append(reads.index(read))
assert refused == len(reads), passed
assert gaps == [(7, "thing 7 is black", True)] and seen[6] == "blue" and len(seen) == 50, gaps
`
	for name, c := range map[string]struct {
		failures     int64
		rest         string
		want, reason string
	}{
		"asked for again": {
			3 * (1 + calls.DefaultRetries), reads + "FINAL(seen.retry().counts)",
			`{"red": 25, "blue": 15, "black": 10, "green": 0}`, "",
		},
		"filled in by the code": {
			1e9, reads + "seen[7] = 'black'\nFINAL([seen.counts['black'], seen.missing])", "[10, []]", "",
		},
		"left out": {
			1e9, reads + "v = seen.partial()\nFINAL([v[7], v.count('black'), seen.partial().count(None)])",
			"[null, 9, 1]", "the code continued without 1 of 50 records, because no model gave a value for them",
		},
	} {
		t.Run(name, func(t *testing.T) {
			m := &models{
				script: []string{code("import json, collections" + things), code(c.rest)},
				sub:    unknown(c.failures),
			}
			outcome := answered(t, config(m), c.want)
			if outcome.Reason != c.reason || outcome.Status != ledger.StatusAnswered {
				t.Errorf("%s: the reason is %q, want %q", outcome.Status, outcome.Reason, c.reason)
			}
		})
	}
}
