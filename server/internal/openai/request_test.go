package openai

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/rlmhq/rlm/internal/text/problem"
)

func TestALongMessageIsSplit(t *testing.T) {
	long := strings.Repeat("ä", 3_000)
	for _, c := range []struct {
		texts    []string
		question string
		parts    int
	}{
		{[]string{"short"}, "short", 0},
		{[]string{long, "what?"}, "what?", 1},
		{[]string{"Look:", long, "what?"}, "Look:\n\nwhat?", 1},
		{[]string{long}, "Do what the message in the context asks.", 1},
		{[]string{long, long}, "Do what the message in the context asks.", 2},
		{nil, "Describe what the contexts contain.", 0},
	} {
		question, parts := splitQuestion(c.texts, 100)
		if !strings.HasPrefix(question, c.question) || len(parts) != c.parts || !utf8.ValidString(question) {
			t.Errorf("%.40q gives %.80q and %d parts, want %q and %d",
				c.texts, question, len(parts), c.question, c.parts)
		}
		for _, p := range parts {
			if p.Text != long {
				t.Errorf("%.40q lost a part of its text", c.texts)
			}
		}
	}
}

// seeds are bodies of both kinds of requests.
var seeds = []string{
	`{"model":"rlm/default","messages":[{"role":"user","content":"hi"}],"stop":["a"],"max_tokens":5}`,
	`{"model":"rlm/default","input":"hi","metadata":{"rlm_budget_usd":"0.5","rlm_max_turns":"3"}}`,
	`{"model":"rlm/x","messages":[{"role":"developer","content":null},{"role":"user","content":[
		{"type":"text","text":"a"},{"type":"image_url","image_url":{"url":"data:image/png;base64,AAAA"}},
		{"type":"file","file":{"file_data":"data:text/plain;base64,YQ==","filename":"a"}}]}],
		"response_format":{"type":"json_schema","json_schema":{"schema":{"type":"object"}}}}`,
	`{"model":"rlm/x","input":[{"type":"reasoning"},{"role":"assistant","content":[{"type":"output_text","text":"b"}]},
		{"role":"user","content":[{"type":"input_image","image_url":"data:image/png;base64,AAAA"},
		{"type":"input_file","file_id":"file-1"}]}],"text":{"format":{"type":"json_schema","schema":{}}},
		"tools":[{"type":"code_interpreter"}],"max_output_tokens":9,"max_tool_calls":2,"background":true}`,
	`{"model":"rlm/x","tools":[{"type":"function","function":{"name":"f","parameters":{"type":"object"}}}],
		"tool_choice":{"type":"function","function":{"name":"f"}},"messages":[{"role":"assistant","tool_calls":[
		{"id":"c","function":{"name":"f","arguments":"{}"}}]},{"role":"tool","tool_call_id":"c","content":"d"}]}`,
	`{"model":"rlm/x","tools":[{"type":"function","name":"f","strict":true}],"parallel_tool_calls":false,
		"tool_choice":{"type":"allowed_tools","mode":"required","tools":[{"type":"function","name":"f"}]},
		"input":[{"type":"function_call","call_id":"c","name":"f","arguments":"{}"},
		{"type":"function_call_output","call_id":"c","output":[{"type":"input_text","text":"d"}]}]}`,
	`{"model":"rlm/x","input":"hi","max_tokens":7.0,"tools":[{"type":"custom","name":"p","format":{"type":"text"}}]}`,
	`{"model":"rlm/x","input":[{"type":"item_reference","id":"msg_a"},
		{"type":"compaction","encrypted_content":"rlm1.YQ=="},
		{"type":"custom_tool_call","call_id":"c","name":"p","input":"x"},
		{"type":"custom_tool_call_output","call_id":"c","output":"d"}],"conversation":{"id":"conv_a"}}`,
	`{"model":"rlm/","messages":[[]]}`, `[]`, `{"input":7}`,
}

// nowhere is a look-up that finds no item.
func nowhere(_, param string) ([]turn, error) { return nil, problem.Bad(param, "there is no item") }

// FuzzRequest reads bodies as each kind of request, and checks that an accepted request yields a
// valid question for a run or a model.
func FuzzRequest(f *testing.F) {
	for _, body := range seeds {
		f.Add([]byte(body))
	}
	a := &API{Options: Options{Long: 50}}
	f.Fuzz(func(t *testing.T, body []byte) {
		r := httptest.NewRequest(http.MethodPost, "/", nil)
		var c chatRequest
		if decode(body, &c) == nil {
			if q, err := c.read(r, nowhere); err == nil {
				checkAsked(t, a, q)
			}
		}
		var d responseRequest
		if decode(body, &d) == nil {
			d.resource()
			if q, fresh, err := d.read(r, nowhere); err == nil {
				if q.turns = fresh; q.check("input") == nil {
					checkAsked(t, a, q)
				}
			}
		}
	})
}

func checkAsked(t *testing.T, a *API, q *asked) {
	t.Helper()
	if q.isDirect(a.Long) {
		if len(q.ask().Messages) == 0 {
			t.Error("a direct question has no messages")
		}
		return
	}
	for i := range q.turns {
		for n := range q.turns[i].Files {
			q.turns[i].Files[n].ID = "" // there is no store
		}
	}
	if r, err := a.request(t.Context(), "local", q); err != nil || strings.TrimSpace(r.Question) == "" {
		t.Errorf("a run has no question: %+v, %v", r, err)
	}
}

// FuzzReply splits the answers of models, and checks that every call that is found is one that the
// client allows.
func FuzzReply(f *testing.F) {
	for _, text := range []string{
		`{"calls":[{"name":"f","arguments":"{\"a\":1}"}],"answer":""}`, `{"calls":[],"answer":"{}"}`,
		`{"calls":[{"name":"g","arguments":""}]}`, `[]`, `{"calls":null}`, `{"calls":[{}]}`,
	} {
		f.Add(text)
	}
	s := shared{Tools: []tool{{
		Type: kindFunction, Name: "f", Parameters: json.RawMessage(`{"type":"object","required":["a"]}`),
	}}}
	known, err := s.functions()
	if err != nil {
		f.Fatal(err)
	}
	known.format = json.RawMessage(`{"type":"object"}`)
	f.Fuzz(func(t *testing.T, text string) {
		got := answered{text: text}
		if known.split(&got) != nil {
			return
		}
		for _, c := range got.calls {
			var arguments map[string]any
			err := json.Unmarshal([]byte(c.Arguments), &arguments)
			if _, has := arguments["a"]; err != nil || c.Name != "f" || !has {
				t.Errorf("%q gives the call %+v, %v", text, c, err)
			}
		}
	})
}

func TestAnIntegerMayBeWrittenAsAFloat(t *testing.T) {
	for text, want := range map[string]whole{"7": 7, "7.0": 7, "1e3": 1000, "-2.0": -2} {
		var n whole
		if err := json.Unmarshal([]byte(text), &n); err != nil || n != want {
			t.Errorf("%s is %d, %v", text, n, err)
		}
	}
	for _, text := range []string{"7.5", "1e300", `"7"`, "[7]", "9007199254740994.0"} {
		var n whole
		if err := json.Unmarshal([]byte(text), &n); err == nil {
			t.Errorf("%s is %d", text, n)
		}
	}
}

// TestLeavingReportsTheLastClient checks which client of each of two runs is reported as the last
// one.
func TestLeavingReportsTheLastClient(t *testing.T) {
	var w waiting
	first, second, other := w.enter("run_a"), w.enter("run_a"), w.enter("run_b")
	if first() || !second() || !other() || !w.enter("run_a")() {
		t.Error("the clients are counted wrongly")
	}
}
