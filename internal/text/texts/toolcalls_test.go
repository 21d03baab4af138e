package texts

import (
	"slices"
	"strings"
	"testing"
)

func TestToolCallsAreCutOut(t *testing.T) {
	for reply, want := range map[string]struct {
		calls, around []string
	}{
		"just words":                                {nil, []string{"just words"}},
		"a <tool_call>{}</tool_call> b":             {[]string{"{}"}, []string{"a ", " b"}},
		"<tool_call>1</tool_call><tool_call>2":      {[]string{"1", "2"}, []string{"", "", ""}},
		"<function=f>x</function>":                  {[]string{"=f>x"}, []string{"", ""}},
		`<invoke name="f">x</invoke>.`:              {[]string{` name="f">x`}, []string{"", "."}},
		"<|python_tag|>x = 1<|eom_id|>":             {[]string{"x = 1"}, []string{"", ""}},
		"so [TOOL_CALLS][1]</s>":                    {[]string{"[1]"}, []string{"so ", ""}},
		"I see no `<tool_call>` there":              {nil, []string{"I see no `<tool_call>` there"}},
		"`<tool_call>` is <tool_call>1</tool_call>": {[]string{"1"}, []string{"`<tool_call>` is ", ""}},
		"a <functional> word":                       {nil, []string{"a <functional> word"}},
	} {
		t.Run(reply, func(t *testing.T) {
			var calls, around []string
			at := 0
			for _, call := range FindToolCalls(reply) {
				calls, around = append(calls, reply[call[2]:call[3]]), append(around, reply[at:call[0]])
				at = call[1]
			}
			around = append(around, reply[at:])
			if !slices.Equal(calls, want.calls) || !slices.Equal(around, want.around) {
				t.Errorf("%q: %q around %q, want %q around %q", reply, calls, around, want.calls, want.around)
			}
		})
	}

	if calls := FindToolCalls(strings.Repeat("<tool_call>", 200_000)); len(calls) != 1 {
		t.Errorf("a flood of marks is %d calls", len(calls))
	}
	if !IsToolCall(" <tool_call>{}</tool_call>\n") || IsToolCall("red <tool_call>{}</tool_call>") || IsToolCall("") {
		t.Error("a reply of tool calls alone is not told from others")
	}
}
