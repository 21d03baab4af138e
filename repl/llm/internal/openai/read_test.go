package openai

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/rlmhq/rlm/repl/llm"
	"github.com/rlmhq/rlm/repl/llm/internal/chat"
	"github.com/rlmhq/rlm/repl/llm/internal/kind"
)

// The bodies are verbatim replies of servers and gateways, for requests with a stream and without.
func TestRepliesAreReadInOddForms(t *testing.T) {
	const (
		whole = `{"id":5,"created":1.5,"model":7,"choices":[{"message":{"content":"Rome"},"finish_reason":"stop"}]}`
		first = `{"choices":[{"index":0,"delta":{"role":"assistant","content":"Ro"},"logprobs":null}],"usage":null}`
		last  = `{"choices":[{"index":0,"delta":{"content":"me","reasoning_content":"?"},"finish_reason":"stop"}]}`
	)
	for name, body := range map[string]string{
		"JSON":                         whole,
		"a mark and blank lines":       "\ufeff\r\n\n  " + whole + "\n",
		"blank lines, then a mark":     "\n\n\ufeff" + whole,
		"comments before JSON":         ": PROCESSING\n\n: PROCESSING\n\n" + strings.ReplaceAll(whole, ",", ",\n"),
		"the end of a stream after it": whole + "\n\ndata: [DONE]\n\n",
		"on the same line of nothing":  whole + "\n[DONE]",
		"trailers after it":            whole + "\n\n: x-gateway-ms=3\n: x-gateway-version=1\ndata: [DONE]\n",
		"a whole reply as an event":    "data: " + whole + "\n\n",
		"a stream":                     "data: " + first + "\n\ndata: " + last + "\n\ndata: [DONE]\n\n",
		"a stream without its end":     "data: " + first + "\n\ndata: " + last,
		"a stream of lines":            first + "\n" + last + "\n",
		"a stream with names": "\ufeff\nevent: message\nid: 1\nretry: 5\ndata: " + first +
			"\n\nevent: message\ndata: " + last + "\n\n",
		"a keep-alive event": `data: {"id":"k","model":"keepalive","choices":[{"delta":{},"finish_reason":null}]}` +
			"\n\ndata: " + first + "\n\ndata: " + last + "\n\n",
		"events without choices": `data: {"choices":[],"x":1}` + "\n\ndata: {\"choices\":null}\n\ndata: " + first +
			"\n\ndata: " + last + "\n\n",
	} {
		for _, isAsked := range []bool{true, false} {
			var shown strings.Builder
			give := func(piece string) { shown.WriteString(piece) }
			if !isAsked {
				give = nil
			}
			r := &reader{}
			err := chat.Read(strings.NewReader(body), r, llm.Request{}, give)
			if reply := r.Reply(); err != nil || reply.Text != "Rome" || reply.Finish != "stop" ||
				isAsked && shown.String() != "Rome" {
				t.Errorf("%s, stream %v: got %+v, %v, shown %q", name, isAsked, reply, err, shown.String())
			}
		}
	}
}

func TestRepliesInNoFormAreMalformedOrCut(t *testing.T) {
	for body, want := range map[string]error{
		"<html>no</html>":                      kind.ErrMalformed,
		`{"choices":[{"message":{"content":"R`: kind.ErrCut,
		": ping\n\n: ping\n\n":                 kind.ErrCut,
		"data: no JSON\n\n":                    kind.ErrMalformed,
		`{"choices":[]}`:                       kind.ErrMalformed,
		"data: [DONE]\n\n":                     kind.ErrCut,
		`{"choices":[{"message":{"content":"a"}}]} {"choices":[]}`: kind.ErrMalformed,
	} {
		if err := chat.Read(strings.NewReader(body), &reader{}, llm.Request{}, nil); !errors.Is(err, want) {
			t.Errorf("%q: got %v, want %v", body, err, want)
		}
	}
}

// A stream that a server abandons ends like any other, so only the error shows that its text is
// incomplete.
func TestErrorsWithoutAMemberOfTheirOwnAreErrors(t *testing.T) {
	const begin = `data: {"choices":[{"index":0,"delta":{"content":"The capital is"}}]}` + "\n\n"
	for event, says := range map[string]string{
		`data: {"object":"error","message":"engine died","type":"ServerError","code":500}`: "engine died",
		`data: {"message":"upstream reset","code":"502"}`:                                  "upstream reset",
		`data: {"type":"error","message":"overloaded"}`:                                    "overloaded",
		`data: {"detail":"Internal Server Error"}`:                                         "Internal Server Error",
		`data: {"error_code":336100,"error_msg":"try again"}`:                              "try again",
		"event: error\ndata: {\"message\":\"worker lost\"}":                                "worker lost",
		"event: error\n": "",
	} {
		r := &reader{}
		err := chat.Read(strings.NewReader(begin+event+"\n\ndata: [DONE]\n\n"), r, llm.Request{}, nil)
		if !errors.Is(err, kind.ErrServer) || !strings.Contains(err.Error(), says) {
			t.Errorf("%q: got %v, with the text %q", event, err, r.Reply().Text)
		}
	}

	for _, event := range []string{
		`data: {"type":"status","message":"in the queue"}`, `data: {"code":0,"message":"ok"}`,
		`data: {"type":"ping"}`, "event: ping\ndata: {}",
	} {
		if err := chat.Read(strings.NewReader(event+"\n\n"+begin+"data: [DONE]\n\n"), &reader{}, llm.Request{},
			nil); err != nil {
			t.Errorf("%q: got %v", event, err)
		}
	}
}

func TestTheFirstCandidateIsTheReply(t *testing.T) {
	piece := func(index int, text string) string {
		return fmt.Sprintf(`data: {"choices":[{"index":%d,"delta":{"content":%q}}]}`+"\n\n", index, text)
	}
	r := &reader{}
	err := chat.Read(strings.NewReader(piece(1, "Paris")+piece(0, "Ro")+piece(1, "!")+piece(0, "me")+
		`data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}`+"\n\ndata: [DONE]\n\n"),
		r, llm.Request{}, nil)
	if text := r.Reply().Text; err != nil || text != "Rome" {
		t.Errorf("got %q, %v", text, err)
	}
}

func TestAnErrorBesideWordsIsAnError(t *testing.T) {
	for _, body := range []string{
		`{"choices":[{"message":{"content":"Ro","error":{"message":"upstream reset"}},"finish_reason":"stop"}]}`,
		`{"choices":[{"delta":{"content":"Ro","error":{"message":"upstream reset"}},"finish_reason":"stop"}]}`,
	} {
		if err := (&reader{}).ReadWhole(strings.NewReader(body)); !errors.Is(err, kind.ErrServer) {
			t.Errorf("%s: got %v", body, err)
		}
	}
}
