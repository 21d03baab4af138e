package openai_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/rlmhq/rlm/repl/llm"
	"github.com/rlmhq/rlm/repl/llm/internal/openai"
)

// weather is a question with a tool.
var weather = llm.Request{
	Model: "any", Messages: []llm.Message{{Role: llm.RoleUser, Content: "Is it sunny in Oslo?"}},
	Tools: []json.RawMessage{json.RawMessage(`{"name":"weather","parameters":{"type":"object"}}`)},
}

// ask asks a server that answers with the replies, in order, and returns the bodies that the server
// received.
func ask(t *testing.T, isStream bool, replies ...string) (response llm.Response, bodies []string) {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		reply := replies[min(len(bodies), len(replies)-1)]
		bodies = append(bodies, string(body))
		if strings.HasPrefix(reply, "data: ") {
			w.Header().Set("Content-Type", "text/event-stream")
		} else {
			w.Header().Set("Content-Type", "application/json")
		}
		if strings.HasPrefix(reply, `{"error"`) {
			w.WriteHeader(http.StatusBadRequest)
		}
		fmt.Fprint(w, reply)
	}))
	t.Cleanup(server.Close)

	provider, err := openai.New(openai.Options{Name: "test", BaseURL: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = provider.Close() })

	var stream func(string)
	if isStream {
		stream = func(string) {}
	}
	response, err = provider.Complete(t.Context(), weather, stream)
	if err != nil {
		t.Fatal(err)
	}
	return response, bodies
}

// called is the text of a reply with a call.
const called = `{"calls":[{"name":"weather","arguments":"{\"city\":\"Oslo\"}"}],"answer":""}`

func TestCallsOfToolsAreRead(t *testing.T) {
	whole := func(arguments string) string {
		return `{"choices":[{"index":0,"finish_reason":"tool_calls","message":{"role":"assistant","content":null,` +
			`"tool_calls":[{"id":"c1","type":"function","function":{"name":"weather","arguments":` +
			arguments + `}}]}}]}`
	}
	for _, reply := range []string{whole(`"{\"city\":\"Oslo\"}"`), whole(`{"city":"Oslo"}`)} {
		got, bodies := ask(t, false, reply)
		if got.Text != called || got.Finish != llm.FinishStop {
			t.Errorf("%s is read as %+v", reply, got)
		}
		want := `"tools":[{"type":"function","function":{"name":"weather","parameters":{"type":"object"}}}]`
		if !strings.Contains(bodies[0], want) {
			t.Errorf("the server gets %s, without %s", bodies[0], want)
		}
	}
}

func TestCallsOfToolsAreStreamed(t *testing.T) {
	piece := func(text string) string {
		return `data: {"choices":[{"index":0,"delta":{"tool_calls":[` + text + "]}}]}\n\n"
	}
	end := `data: {"choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}]}` + "\n\ndata: [DONE]\n\n"
	for _, index := range []string{`"index":0,`, `"index":1,`, ""} {
		got, _ := ask(t, true, piece(`{`+index+`"id":"c1","function":{"name":"weather","arguments":""}}`)+
			piece(`{`+index+`"function":{"arguments":"{\"city\":"}}`)+
			piece(`{`+index+`"function":{"arguments":"\"Oslo\"}"}}`)+end)
		if got.Text != called || got.Finish != llm.FinishStop {
			t.Errorf("with %q it is %+v", index, got)
		}
	}
}

func TestCallsAreNeitherJoinedNorDoubledNorLost(t *testing.T) {
	event := func(member, list string) string {
		return `data: {"choices":[{"index":0,"` + member + `":{"tool_calls":[` + list + "]}}]}\n\n"
	}
	const (
		oslo = `"id":7,"function":{"name":"weather","arguments":"{\"city\":\"Oslo\"}"}`
		bonn = `"function":{"name":"weather","arguments":"{\"city\":\"Bonn\"}"}`
		end  = `data: {"choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}]}` + "\n\ndata: [DONE]\n\n"
		both = `{"calls":[{"name":"weather","arguments":"{\"city\":\"Oslo\"}"},` +
			`{"name":"weather","arguments":"{\"city\":\"Bonn\"}"}],"answer":""}`
	)
	for name, c := range map[string]struct{ reply, want string }{
		"a message beside pieces": {
			event("delta", `{"index":0,`+oslo+`}`) + event("message", `{"index":0,`+oslo+`}`) + end, called,
		},
		"a message again": {event("message", `{`+oslo+`}`) + event("message", `{`+oslo+`}`) + end, called},
		"pieces from 1": {
			event("delta", `{"index":1,`+oslo+`}`) + event("delta", `{"index":2,`+bonn+`}`) + end, both,
		},
		"a message without ID": {event("message", `{`+strings.TrimPrefix(oslo, `"id":7,`)+`},{`+bonn+`}`) + end, both},
	} {
		got, _ := ask(t, true, c.reply)
		if got.Text != c.want {
			t.Errorf("%s: got %s", name, got.Text)
		}
	}
}

// TestToolsThatAreRejectedAreLeftOut checks that a request with rejected tools is repeated once,
// without them.
func TestToolsThatAreRejectedAreLeftOut(t *testing.T) {
	got, bodies := ask(t, false, `{"error":{"message":"any does not support tools"}}`,
		`{"choices":[{"index":0,"finish_reason":"stop","message":{"role":"assistant","content":"yes"}}]}`)
	if got.Text != "yes" || len(bodies) != 2 || strings.Contains(bodies[1], `"tools"`) {
		t.Errorf("it is %+v, after %q", got, bodies)
	}
}
