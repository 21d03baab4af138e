package server

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/rlmhq/rlm/repl/llm"
	"github.com/rlmhq/rlm/repl/llm/scripted"
)

// calling returns a model that calls the function add with the arguments once, in direct answers
// and in runs.
func calling(t *testing.T, arguments string) llm.Provider {
	t.Helper()
	data, err := json.Marshal(object{"calls": []object{{"name": "add", "arguments": arguments}}, "answer": ""})
	if err != nil {
		t.Fatal(err)
	}
	calls, plain, code := string(data), "Hello.", "NEEDS_CODE"
	words := `{"calls": [], "answer": "It is 3."}`
	final := "```repl\narguments = '{\"a\": ' + str(len(context)) + '}'\n" +
		"FINAL({'calls': [{'name': 'add', 'arguments': arguments}], 'answer': ''})\n```"
	isTrue := true
	model, err := scripted.New(
		scripted.Rule{
			When:  scripted.When{Purpose: "direct", Schema: &isTrue, Last: "^Result of the call call_"},
			Reply: &words,
		},
		scripted.Rule{When: scripted.When{Purpose: "direct", Schema: &isTrue, System: `"name":"add"`}, Reply: &calls},
		scripted.Rule{When: scripted.When{Purpose: "direct"}, Reply: &plain},
		scripted.Rule{When: scripted.When{Purpose: "bypass"}, Reply: &code},
		scripted.Rule{Reply: &final},
	)
	if err != nil {
		t.Fatal(err)
	}
	return model
}

// add is a client's tool.
var add = []object{{"type": "function", "name": "add", "parameters": object{
	"type": "object", "required": []string{"a"}, "properties": object{"a": object{"$ref": "#/$defs/n"}},
	"$defs": object{"n": object{"type": "integer"}},
}}}

// inChat is the tool add in the format of chat completions.
var inChat = []object{{"type": "function", "function": object{"name": "add", "parameters": add[0]["parameters"]}}}

// TestTheModelCallsFunctionsOfTheClient checks a call of a client's function whose result the
// client sends back.
func TestTheModelCallsFunctionsOfTheClient(t *testing.T) {
	s := start(t, t.TempDir(), calling(t, `{"a": "2"}`), nil)
	body := object{"model": "rlm/default", "input": "add", "tools": add}
	got := s.do("POST", "/v1/responses", "", body)
	s.want(got, 200, `"type":"function_call","status":"completed","call_id":"call_`)
	s.want(got, 200, `"name":"add","arguments":"{\"a\":2}"`)
	s.want(got, 200, `"description":null`)
	id := s.text(got, "id")
	s.want(s.do("GET", "/v1/responses/"+id, "", nil), 200, `"arguments":"{\"a\":2}"`)

	stored := s.do("GET", "/v1/responses/"+id+"?stream=true", "", nil).body
	body["stream"] = true
	streamed := s.do("POST", "/v1/responses", "", body).body
	for _, text := range []string{stored, streamed} {
		at := -1
		for _, kind := range []string{
			"response.created", "output_item.added", "function_call_arguments.delta", "function_call_arguments.done",
			"output_item.done", "response.completed", "[DONE]",
		} {
			next := strings.Index(text, kind)
			if next <= at {
				t.Errorf("%s comes too early or never: %s", kind, text)
			}
			at = next
		}
	}

	output, _ := s.field(got, "output").([]any)
	call, _ := output[0].(object)
	result := object{
		"model": "rlm/default", "previous_response_id": id, "tools": add,
		"input": []object{{"type": "function_call_output", "call_id": call["call_id"], "output": "3"}},
	}
	second := s.do("POST", "/v1/responses", "", result)
	s.want(second, 200, `"text":"It is 3."`)
	s.want(s.do("GET", "/v1/responses/"+s.text(second, "id")+"/input_items", "", nil), 200,
		`"type":"function_call_output"`)
}

// TestChatCompletionsCallFunctions checks the same for chat completions.
func TestChatCompletionsCallFunctions(t *testing.T) {
	s := start(t, t.TempDir(), calling(t, `{"a": 2}`), nil)
	body := chat("add")
	body["tools"] = inChat
	got := s.do("POST", "/v1/chat/completions", "", body)
	s.want(got, 200, `"finish_reason":"tool_calls"`)
	s.want(got, 200, `"type":"function","function":{"name":"add","arguments":"{\"a\":2}"}`)

	body["stream"] = true
	got = s.do("POST", "/v1/chat/completions", "", body)
	s.want(got, 200, `"tool_calls":[{"index":0,"id":"call_`)
	s.want(got, 200, `"finish_reason":"tool_calls"`)

	delete(body, "stream")
	body["messages"] = []object{
		{"role": "user", "content": "add"},
		{"role": "assistant", "content": nil, "tool_calls": []object{
			{"id": "call_1", "type": "function", "function": object{"name": "add", "arguments": "{}"}},
		}},
		{"role": "tool", "tool_call_id": "call_1", "content": "3"},
	}
	s.want(s.do("POST", "/v1/chat/completions", "", body), 200, `"content":"It is 3."`)
}

// TestARunCallsAFunction checks that the answer of a run may be a call, and that a continued stream
// repeats it.
func TestARunCallsAFunction(t *testing.T) {
	s := start(t, t.TempDir(), calling(t, `{}`), nil)
	got := s.do("POST", "/v1/responses", "", object{
		"model": "rlm/default", "tools": add, "input": []object{{"role": "user", "content": []object{
			{"type": "input_text", "text": hay}, {"type": "input_text", "text": "add"},
		}}},
	})
	s.want(got, 200, `"type":"code_interpreter_call"`)
	s.want(got, 200, `"name":"add","arguments":"{\"a\":2200}"`)
	s.want(s.do("GET", "/v1/responses/"+s.text(got, "id")+"?stream=true&starting_after=6", "", nil), 200,
		"response.function_call_arguments.done")
	s.want(s.do("POST", "/v1/responses", "", object{ // a run again: a long conversation
		"model": "rlm/default", "previous_response_id": s.text(got, "id"), "input": "thanks",
	}), 200, `"type":"message"`)
}

// TestCallsAreBounded checks that a model can neither call other functions nor pass other
// arguments, and that a client receives no call that it has excluded.
func TestCallsAreBounded(t *testing.T) {
	s := start(t, t.TempDir(), calling(t, `{"a": "x"}`), nil)
	ask := func(name string, value any) answer {
		return s.do("POST", "/v1/responses", "", object{
			"model": "rlm/default", "input": "add", "tools": add, name: value,
		})
	}
	s.want(ask("user", "x"), 502, "the arguments of add: $.a")
	s.want(ask("tool_choice", "none"), 200, `"text":"Hello."`)
	s.want(ask("tool_choice", object{"type": "function", "name": "other"}), 400, `no function \"other\"`)
	s.want(ask("tools", append(add, add...)), 400, `two functions \"add\"`)
	s.want(ask("tools", []object{{"type": "function", "name": "f", "parameters": 7}}), 400,
		"the parameters of function f are 7")
	s.want(ask("input", []object{{"type": "function_call_output", "output": "3"}}), 400, "no call_id")
	many := make([]object, 129)
	for i := range many {
		many[i] = object{"type": "function", "name": "f" + jsonNumber(i)}
	}
	s.want(ask("tools", many), 400, "129 functions")
}

// TestAtMostOneCallIsHandedBack checks that a client that allows one call gets at most one, even
// from a model that only reads the contract.
func TestAtMostOneCallIsHandedBack(t *testing.T) {
	var asked []llm.Request
	two := `{"calls": [{"name": "add", "arguments": "{\"a\": 1}"}, {"name": "add", "arguments": "{\"a\": 2}"}], ` +
		`"answer": ""}`
	s := start(t, t.TempDir(), saying(two, &asked), nil)
	for path, body := range map[string]object{
		"/v1/chat/completions": {
			"model": "rlm/default", "messages": chat("add")["messages"], "tools": inChat, "parallel_tool_calls": false,
		},
		respond: {"model": "rlm/default", "input": "add", "tools": add, "parallel_tool_calls": false},
		messages: ask("add", "tools", adder, "tool_choice", object{
			"type": "auto", "disable_parallel_tool_use": true,
		}),
	} {
		got := s.do("POST", path, "", body)
		if got.status != 200 || strings.Count(got.body, `"name":"add"`)-strings.Count(got.body, `"parameters":{`) != 1 {
			t.Errorf("%s: %d %s", path, got.status, got.body)
		}
		if last := asked[len(asked)-1]; len(last.Tools) != 1 || !last.OneCall {
			t.Errorf("%s: the model gets the tools %s, %v", path, last.Tools, last.OneCall)
		}
	}
}

// TestACallInTextIsACall checks for each wire that only a clear call in a text becomes a call.
// Otherwise, the client receives the text.
func TestACallInTextIsACall(t *testing.T) {
	for text, isCall := range map[string]bool{
		`<tool_call>{"name": "add", "arguments": {"a": "1"}}</tool_call>`:    true,
		`{"name": "add", "parameters": {"a": 1}}`:                            true,
		`<tool_call>{"name": "other", "arguments": {"a": 1}}</tool_call>`:    false,
		`To call it, write <tool_call>{"name": "add"}</tool_call> like this`: false,
	} {
		s := start(t, t.TempDir(), saying(text, nil), nil)
		body := chat("add")
		body["tools"] = inChat
		for path, c := range map[string]struct {
			body object
			call string
		}{
			"/v1/chat/completions": {body, `"function":{"name":"add","arguments":"{\"a\":1}"}`},
			respond: {
				object{"model": "rlm/default", "input": "add", "tools": add}, `"name":"add","arguments":"{\"a\":1}"`,
			},
			messages: {ask("add", "tools", adder), `"input":{"a":1},"name":"add","type":"tool_use"`},
		} {
			got := s.do("POST", path, "", c.body)
			if want := text[len(text)-9:]; !isCall {
				c.call = want
			}
			s.want(got, 200, c.call)
		}
	}
}
