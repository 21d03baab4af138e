package answers

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/rlmhq/rlm/repl"
	"github.com/rlmhq/rlm/repl/internal/calls"
	"github.com/rlmhq/rlm/repl/internal/fanout"
	"github.com/rlmhq/rlm/repl/ledger"
	"github.com/rlmhq/rlm/repl/llm"
	"github.com/rlmhq/rlm/schema"
	"github.com/rlmhq/rlm/tiers"
)

// sizing answers calls for several records with the records' numbers, unless fail returns an error.
type sizing struct {
	noting

	fail  func(q Query, size int) error
	sizes []int
}

func (s *sizing) Many(_ context.Context, queries []Query, _ bool) ([]fanout.Slot[json.RawMessage], error) {
	slots := make([]fanout.Slot[json.RawMessage], len(queries))
	for i, q := range queries {
		size := max(1, strings.Count(string(q.Schema), `"$ref"`))
		s.sizes = append(s.sizes, size)
		values := map[string]int{}
		for n := range size {
			values[strconv.Itoa(n+1)] = n
		}
		slots[i].Value, slots[i].Err = json.Marshal(values)
		if size == 1 {
			slots[i].Value = json.RawMessage("7")
		}
		if err := s.fail(q, size); err != nil {
			slots[i] = fanout.Slot[json.RawMessage]{Err: err}
		}
	}
	return slots, nil
}

func TestCoverMakesGroupsSmallerWhereThatMayHelp(t *testing.T) {
	lost := &llm.Error{Kind: llm.ErrServer}
	for name, c := range map[string]struct {
		records string
		schema  string
		fail    func(q Query, size int) error
		sizes   []int
		missing int
	}{
		"none": {`[]`, `"int"`, nil, nil, 0},
		"short values": {
			list(45), `"int"`, func(Query, int) error { return nil }, []int{20, 20, 5}, 0,
		},
		"texts": {list(12), `"str"`, func(Query, int) error { return nil }, []int{5, 5, 2}, 0},
		"a contract that cannot be a part": {
			list(3), `{"anyOf":[{"type":"integer"},{"type":"array","items":{"$ref":"#"}}]}`,
			func(Query, int) error { return nil },
			[]int{1, 1, 1},
			0,
		},
		"long records": {
			fmt.Sprintf(`[%q,"b",%q,{"__rlm_text__":[0,0,9]},"e"]`, strings.Repeat("a", 7_000),
				strings.Repeat("c", 7_000)),
			`"int"`, func(Query, int) error { return nil },
			[]int{2, 1, 1, 1},
			0,
		},
		"a broken contract": {
			list(25), `"int"`, func(q Query, _ int) error {
				if strings.Contains(string(q.Context), `"r3"`) {
					return &calls.MismatchError{Violations: []schema.Violation{{Path: "$"}}}
				}
				return nil
			},
			[]int{20, 5, 5, 5, 5, 5, 1, 1, 1, 1, 1},
			1,
		},
		"a prompt that is too long": {
			list(20), `"int"`, func(_ Query, size int) error {
				if size > 5 {
					return &llm.Error{Kind: llm.ErrContextLength}
				}
				return nil
			},
			[]int{20, 5, 5, 5, 5},
			0,
		},
		"a server that fails": {list(20), `"int"`, func(Query, int) error { return lost }, []int{20}, 20},
		"no budget": {
			list(20), `"int"`, func(Query, int) error { return &ledger.BudgetError{What: "calls"} }, []int{20}, 20,
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := &sizing{fail: c.fail}
			reply, err := callCover(t, s, c.records, c.schema)
			missing := strings.Count(string(reply), failedTypedKey)
			if err != nil || !slices.Equal(s.sizes, c.sizes) || missing != c.missing {
				t.Errorf("calls of %v, %d missing, %v: %s", s.sizes, missing, err, reply)
			}
		})
	}
}

// list returns records as JSON.
func list(n int) string {
	var records []string
	for i := range n {
		records = append(records, fmt.Sprintf(`"r%d"`, i))
	}
	return "[" + strings.Join(records, ",") + "]"
}

func callCover(t *testing.T, a Answerer, records, schema string) (tiers.Value, error) {
	t.Helper()
	tools, err := (*repl.Tools)(nil).With(Functions(a)...)
	if err != nil {
		t.Fatal(err)
	}
	call := callOf("map_llm", `"p"`, records, schema)
	call.Named = map[string]tiers.Value{"cover": tiers.Value("true")}
	return tools.Call(t.Context(), call)
}

func TestCoverRefusesEmptyRecords(t *testing.T) {
	for _, record := range []string{`""`, `" \n"`, `null`} {
		t.Run(record, func(t *testing.T) {
			s := &sizing{}
			if _, err := callCover(t, s, `["a",`+record+`]`, `"int"`); err == nil ||
				!strings.Contains(err.Error(), "at index 1 is empty") || s.sizes != nil {
				t.Errorf("%s: %v after calls of %v", record, err, s.sizes)
			}
		})
	}
}

func TestAContractOfManyMeansTheSameForEach(t *testing.T) {
	values := []string{
		`1`, `-1`, `"red"`, `"blue"`, `null`, `true`, `[]`, `{"n":1}`, `{"n":-1}`, `{"a":{"a":{}}}`, `{"a":1}`,
	}
	for _, c := range []struct {
		one   string
		parts bool
	}{
		{`{"type":"integer","minimum":0}`, true},
		{`{"enum":["red",null]}`, true},
		{`true`, true},
		{
			`{"$ref":"#/$defs/answer","$defs":{"up":{"minimum":0},
			"answer":{"type":"object","properties":{"n":{"$ref":"#/$defs/up"}}}}}`, true,
		},
		{`{"$ref":"#/$defs/t","$defs":{"t":{"type":"object","additionalProperties":{"$ref":"#/$defs/t"}}}}`, true},
		{`{"type":"object","additionalProperties":{"$ref":"#"}}`, false},
		{`{"type":"object","additionalProperties":{"\u0024ref":"#"}}`, false},
		{`{"$id":"urn:x","type":"string"}`, false},
	} {
		t.Run(fmt.Sprintf("%.60s", c.one), func(t *testing.T) {
			one, err := schema.Parse(json.RawMessage(c.one))
			if err != nil {
				t.Fatal(err)
			}
			document := contractOfMany(one, 2)
			if (document != nil) != c.parts {
				t.Errorf("%s: %s", c.one, document)
			}
			if document == nil {
				return
			}
			many, err := schema.Parse(document)
			if err != nil {
				t.Fatal(err)
			}

			for _, value := range values {
				_, wrong, err := one.Check(json.RawMessage(value))
				for _, pair := range []string{`{"1":%s,"2":%[1]s}`, `{"2":%s,"1":%[1]s}`} {
					_, wrongPair, pairErr := many.Check(fmt.Appendf(nil, pair, value))
					if (len(wrong) == 0) != (len(wrongPair) == 0) || err != nil || pairErr != nil {
						t.Errorf("%s: %s alone %v %v, in a pair %v %v", c.one, value, wrong, err, wrongPair, pairErr)
					}
				}
			}
			for _, reply := range []string{
				`{"1":null}`, `{"1":null,"2":null,"3":null}`, `{"1":null,"1":null,"2":null}`, `[null,null]`,
			} {
				if _, wrong, err := many.Check(json.RawMessage(reply)); len(wrong) == 0 && err == nil {
					t.Errorf("%s takes %s", document, reply)
				}
			}
		})
	}
}

func TestReportsOfLacksAreChecked(t *testing.T) {
	tools, err := (*repl.Tools)(nil).With(Functions(&noting{})...)
	if err != nil {
		t.Fatal(err)
	}
	for args, isFine := range map[[3]string]bool{
		{`"a"`, "1", "2"}: true, {`"a"`, "0", "2"}: false, {`"a"`, "-1", "2"}: false,
		{`"a"`, "1", "null"}: false, {`"a"`, `"1"`, "2"}: false, {`"a"`, "1", "1000000"}: false,
		{`"a"`, "1.5", "2"}: false, {`""`, "1", "2"}: false, {"1", "1", "2"}: false,
		{`"` + strings.Repeat("a", maxLackKey+1) + `"`, "1", "2"}: false,
	} {
		t.Run(fmt.Sprintf("%.60q", args), func(t *testing.T) {
			if _, err := tools.Call(t.Context(), callOf("_rlm_lack", args[:]...)); (err == nil) != isFine {
				t.Errorf("%v: %v", args, err)
			}
		})
	}
}

func TestLacksAreSummedUpOncePerResult(t *testing.T) {
	var l Lacks
	if text := l.String(); text != "" {
		t.Errorf("without a report: %s", text)
	}
	for _, missing := range []int64{3, 5, 1} { // of one result, before and after a retry
		l.put("a", lack{missing, 100})
	}
	l.put("b", lack{2, 20})
	if text := l.String(); !strings.Contains(text, "without 7 of 120 records") {
		t.Error(text)
	}
	for i := range 2 * maxLacks {
		l.put(strconv.Itoa(i), lack{1, 1})
	}
	if text := l.String(); !strings.Contains(text, "without 2,007 of 2,120 records") || len(l.list) > maxLacks+1 {
		t.Errorf("%s in %d entries", text, len(l.list))
	}
}
