package runs

import (
	"encoding/json"
	"strings"
	"testing"
)

// TestCallsInTextAreRead checks that only a reply that can be read unambiguously as calls of
// offered tools yields calls.
func TestCallsInTextAreRead(t *testing.T) {
	tools := []json.RawMessage{
		json.RawMessage(`{"name":"add","parameters":{"properties":{"a":{"type":"integer"},"s":{"type":"string"}}}}`),
		json.RawMessage(`{"name":"get-time","parameters":{"type":"object"}}`),
	}
	one := `{"calls":[{"name":"add","arguments":"{\"a\":1}"}],"answer":""}`
	two := `{"calls":[{"name":"add","arguments":"{\"a\":1}"},{"name":"get-time","arguments":"{}"}],"answer":""}`
	for name, c := range map[string]struct{ reply, want string }{
		"Hermes": {`<tool_call>{"name": "add", "arguments": {"a": 1}}</tool_call>`, one},
		"two of Hermes": {
			"<tool_call>\n{\"name\": \"add\", \"arguments\": {\"a\": 1}}\n</tool_call>\n" +
				"<tool_call>{\"name\": \"get-time\"}</tool_call>",
			two,
		},
		"words before": {
			"Let me add.\n<tool_call>{\"name\":\"add\",\"arguments\":{\"a\":1}}</tool_call>",
			`{"calls":[{"name":"add","arguments":"{\"a\":1}"}],"answer":"Let me add."}`,
		},
		"thoughts before": {
			"<think>I call <tool_call>x</tool_call></think>\n" +
				"<tool_call>{\"name\":\"add\",\"arguments\":{\"a\":1}}</tool_call>",
			one,
		},
		"Llama": {
			`<|python_tag|>{"name": "add", "parameters": {"a": 1}}<|eom_id|>`,
			one,
		},
		"Llama, a name": {`<function=add>{"a": 1}</function>`, one},
		"bare JSON":     {`{"name": "add", "parameters": {"a": 1}}`, one},
		"a fence": {
			"```json\n{\"name\": \"add\", \"arguments\": {\"a\": 1}}\n```",
			one,
		},
		"OpenAI": {
			`{"tool_calls":[{"id":"x","type":"function","function":{"name":"add","arguments":"{\"a\":1}"}}]}`,
			one,
		},
		"the contract, with an object": {`{"calls":[{"name":"add","arguments":{"a":1}}]}`, one},
		"Mistral": {
			`[TOOL_CALLS][{"name": "add", "arguments": {"a": 1}}, {"name": "get-time", "arguments": {}}]`,
			two,
		},
		"Mistral, later": {`[TOOL_CALLS]add[ARGS]{"a": 1}`, one},
		"Qwen Coder": {
			"<tool_call>\n<function=add>\n<parameter=a>\n1\n</parameter>\n</function>\n</tool_call>",
			one,
		},
		"Anthropic": {
			`<function_calls><invoke name="add"><parameter name="a">1</parameter></invoke></function_calls>`,
			one,
		},
		"GLM": {
			"<tool_call>add\n<arg_key>a</arg_key>\n<arg_value>1</arg_value>\n</tool_call>",
			one,
		},
		"DeepSeek": {
			"<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>add\n" +
				"```json\n{\"a\": 1}\n```<｜tool▁call▁end｜><｜tool▁calls▁end｜>",
			one,
		},
		"Kimi": {
			`<|tool_calls_section_begin|><|tool_call_begin|>functions.add:0<|tool_call_argument_begin|>{"a": 1}` +
				`<|tool_call_end|><|tool_calls_section_end|>`, one,
		},
		"harmony": {
			`<|channel|>commentary to=functions.add <|constrain|>json<|message|>{"a": 1}<|call|>`,
			one,
		},
		"a text that looks like a number": {
			`<function=add><parameter=s>1</parameter></function>`,
			`{"calls":[{"name":"add","arguments":"{\"s\":\"1\"}"}],"answer":""}`,
		},
		"digits stay": {
			`{"name":"add","arguments":{"a":12345678901234567890}}`,
			`{"calls":[{"name":"add","arguments":"{\"a\":12345678901234567890}"}],"answer":""}`,
		},

		"words": {"The sum is 1.", ""},
		"another tool": {
			`<tool_call>{"name": "sub", "arguments": {"a": 1}}</tool_call>`,
			"",
		},
		"a known and an other tool": {
			`[{"name":"add","arguments":{"a":1}},{"name":"sub","arguments":{}}]`,
			"",
		},
		"invented output": {
			"<tool_call>{\"name\":\"add\",\"arguments\":{\"a\":1}}</tool_call>\nThe result is 7.",
			"",
		},
		"an example": {
			"Write this:\n```\n<tool_call>{\"name\":\"add\",\"arguments\":{\"a\":1}}</tool_call>\n```",
			"",
		},
		"a quotation": {"The page says:\n<tool_call>{\"name\":\"add\",\"arguments\":{\"a\":1}}</tool_call>", ""},
		"a quotation in Markdown": {
			"The page:\n\n> <tool_call>{\"name\":\"add\",\"arguments\":{\"a\":1}}</tool_call>", "",
		},
		"a quoted paragraph":  {"> A\n> <function=add>{\"a\":1}</function>", ""},
		"an indented example": {"The page:\n\n    <function=add>{\"a\":1}</function>", ""},
		"an item of a list":   {"The page has\n- <function=add>{\"a\":1}</function>", ""},
		"an open fence":       {"The page:\n~~~\n<function=add>{\"a\":1}</function>", ""},
		"an element":          {"<document>\n<function=add>{\"a\":1}</function>", ""},
		"quotation marks":     {"It has “<function=add>{\"a\":1}</function>", ""},
		"an injection":        {"I will not obey it: <function=add>{\"a\":1}</function>", ""},
		"an intention": {
			"I do not run it. Let me see what the file contains:\n<function=add>{\"a\":1}</function>",
			`{"calls":[{"name":"add","arguments":"{\"a\":1}"}],` +
				`"answer":"I do not run it. Let me see what the file contains:"}`,
		},
		"two arguments of a name": {
			`<function=add><parameter=a>1</parameter><parameter=a>2</parameter></function>`,
			"",
		},
		"two kinds of arguments": {`{"name":"add","arguments":{"a":1},"parameters":{"a":2}}`, ""},
		"an unknown member":      {`{"name":"add","arguments":{"a":1},"result":7}`, ""},
		"no arguments":           {`{"name":"add"}`, ""},
		"a cut call":             {`<tool_call>{"name": "add", "arguments": {"a": `, ""},
		"words between": {
			`<function=add>{"a": 1}</function> and <function=add>{"a": 2}</function>`,
			"",
		},
		"too deep, JSON": {
			strings.Repeat("[", 9_000) + `{"name":"add","arguments":{"a":1}}` + strings.Repeat("]", 9_000), "",
		},
		"too deep": {"<tool_call><tool_call><tool_call>", ""},
	} {
		t.Run(name, func(t *testing.T) {
			if got := string(readTextCalls(c.reply, tools)); got != c.want {
				t.Errorf("%s\nis %s\nwant %s", c.reply, got, c.want)
			}
		})
	}
}
