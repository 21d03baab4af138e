package anthropic

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/rlmhq/rlm/repl/llm"
	"github.com/rlmhq/rlm/repl/llm/internal/chat"
	"github.com/rlmhq/rlm/repl/llm/internal/kind"
)

func TestTheBeginningOfABlockBelongsToTheText(t *testing.T) {
	r := &reader{}
	err := chat.Read(strings.NewReader(
		`data: {"type":"content_block_start","index":0,"content_block":{"type":"text","text":"Not "}}`+"\n\n"+
			`data: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"Rome"}}`+"\n\n"+
			`data: {"type":"message_delta","delta":{"stop_reason":"end_turn"}}`+"\n\n"+
			`data: {"type":"message_stop"}`+"\n\n"), r, llm.Request{}, nil)
	if text := r.Reply().Text; err != nil || text != "Not Rome" {
		t.Errorf("got %q, %v", text, err)
	}
}

func TestAnErrorOfAGatewayIsAnError(t *testing.T) {
	r := &reader{}
	err := chat.Read(strings.NewReader(
		`data: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"Rome"}}`+"\n\n"+
			`data: {"error":{"message":"upstream reset"}}`+"\n\ndata: [DONE]\n\n"), r, llm.Request{}, nil)
	if !errors.Is(err, kind.ErrServer) {
		t.Errorf("got %v, with the text %q", err, r.Reply().Text)
	}
}

func TestCallsOfToolsAreRead(t *testing.T) {
	events := []string{
		`{"type":"content_block_start","index":0,"content_block":{"type":"text","text":"I look."}}`,
		`{"type":"content_block_start","index":1,"content_block":{"type":"tool_use","name":"f","input":{}}}`,
		`{"type":"content_block_start","index":2,"content_block":{"type":"tool_use","name":"g","input":{}}}`,
		`{"type":"content_block_delta","index":2,"delta":{"type":"input_json_delta","partial_json":"{\"y\""}}`,
		`{"type":"content_block_delta","index":1,"delta":{"type":"input_json_delta","partial_json":"{\"x\": 1}"}}`,
		`{"type":"content_block_delta","index":2,"delta":{"type":"input_json_delta","partial_json":": 2}"}}`,
		`{"type":"content_block_start","index":3,"content_block":{"type":"tool_use","name":"h"}}`,
		`{"type":"message_delta","delta":{"stop_reason":"tool_use"}}`,
		`{"type":"message_stop"}`,
	}
	streamed := "data: " + strings.Join(events, "\n\ndata: ") + "\n\n"
	const whole = `{"type":"message","content":[{"type":"text","text":"I look."},
		{"type":"tool_use","name":"f","input":{"x": 1}}, {"type":"tool_use","name":"g","input":{"y": 2}},
		{"type":"tool_use","name":"h"}],"stop_reason":"tool_use"}`
	want := []chat.Call{
		{Name: "f", Arguments: `{"x": 1}`}, {Name: "g", Arguments: `{"y": 2}`}, {Name: "h", Arguments: "{}"},
	}

	for name, body := range map[string]string{"streamed": streamed, "whole": whole} {
		t.Run(name, func(t *testing.T) {
			r := &reader{}
			var err error
			if name == "whole" {
				err = r.ReadWhole(strings.NewReader(body))
			} else {
				err = chat.Read(strings.NewReader(body), r, llm.Request{}, nil)
			}
			got := r.Reply()
			if err != nil || got.Text != "I look." || !slices.Equal(got.Calls, want) {
				t.Errorf("got %+v, %v", got, err)
			}
		})
	}
}

func TestAReplyWithTooManyCallsIsMalformed(t *testing.T) {
	block := `{"type":"tool_use","name":"f","input":{}}`
	err := (&reader{}).ReadWhole(strings.NewReader(
		`{"type":"message","content":[` + strings.Repeat(block+",", 128) + block + `]}`))
	if !errors.Is(err, kind.ErrMalformed) {
		t.Errorf("got %v", err)
	}
}

func TestFunctionsAreSentAsTools(t *testing.T) {
	sent, err := json.Marshal(format{}.Encode(chat.Request{Request: llm.Request{Tools: []json.RawMessage{
		json.RawMessage(`{"name":"f","description":"d",
			"parameters":{"type":"object","properties":{"x":{"type":"integer"}}}}`),
		json.RawMessage(`{"name":"g","parameters":null}`),
	}}}, false))
	const want = `"tools":[{"name":"f","description":"d",` +
		`"input_schema":{"type":"object","properties":{"x":{"type":"integer"}}}},` +
		`{"name":"g","input_schema":{"type":"object"}}]`
	if err != nil || !strings.Contains(string(sent), want) {
		t.Errorf("sent %s, %v", sent, err)
	}
}

func TestASecondMessageInAStreamIsMalformed(t *testing.T) {
	const start = `data: {"type":"message_start","message":{"type":"message","content":[]}}` + "\n\n"
	const text = `data: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"Paris"}}` + "\n\n"
	err := chat.Read(strings.NewReader(start+text+start+text), &reader{}, llm.Request{}, nil)
	if !errors.Is(err, kind.ErrMalformed) {
		t.Errorf("got %v", err)
	}
}
