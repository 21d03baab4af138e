package texts

import (
	"strings"

	"github.com/rlmhq/rlm/internal/text/lazyregexp"
)

// toolCalls contains expressions for the marks around the tool calls that models write into their
// text.
var toolCalls = []struct{ begin, end *lazyregexp.Regexp }{
	marks(`<`+space+`tool_calls?>`, `</`+space+`tool_calls?>`),
	marks(`<`+space+`function_calls?>`, `</`+space+`function_calls?>`),
	marks(`<function\b`, `</function>`),
	marks(`<`+space+`invoke\b`, `</`+space+`invoke>`),
	marks(`<TOOLCALL>`, `</TOOLCALL>`),
	marks(`<execute(?:_\w+)?>`, `</execute(?:_\w+)?>`),
	marks(`<start_function_call>`, `<end_function_call>`),
	marks(`<\|python_(?:tag|start)\|>`, `<\|(?:python_end|eom_id|eot_id)\|>`),
	marks(`<\|tool_calls_section_begin\|>`, `<\|tool_calls_section_end\|>`),
	marks(`<\|tool_call_start\|>`, `<\|tool_call_end\|>`),
	marks(`<\|tools_prefix\|>`, `<\|tools_suffix\|>`),
	marks(`<\|action_start\|>`, `<\|action_end\|>`),
	marks(`<[|｜]tool[▁_]calls[▁_]begin[|｜]>`, `<[|｜]tool[▁_]calls[▁_]end[|｜]>`),
	marks(`<[|｜]tool[▁_]call[▁_]begin[|｜]>`, `<[|｜]tool[▁_]call[▁_]end[|｜]>`),
	marks(`✿FUNCTION✿:`, `✿(?:RESULT|RETURN)✿`),
	marks(`\[TOOL_CALLS\]`, `</s>`),
	marks(`<\|START_ACTION\|>`, `<\|END_ACTION\|>`),
	marks(`<\|tool_call\|>`, `<\|/?tool_call(?:_end)?\|>`),
	marks(`(?:<\|start\|>assistant)?<\|channel\|>\w+ to=[\w.]+[^<]*(?:<\|constrain\|>\s*\w+)?<\|message\|>`,
		`<\|(?:call|end)\|>`),
}

// space matches the prefix that some models write before the name of an element.
const space = `(?:antml:|minimax:|longcat_|｜DSML｜)?`

func marks(begin, end string) struct{ begin, end *lazyregexp.Regexp } {
	return struct{ begin, end *lazyregexp.Regexp }{lazyregexp.New(begin), lazyregexp.New(end)}
}

// FindToolCalls returns the ranges of the tool calls in a reply: the range of the whole call, then
// that of the text between its marks. A call may lack its end; marks in quotes are only mentions.
// Most servers remove tool calls from a reply; with others, or when no tool was offered, they
// arrive as text.
func FindToolCalls(reply string) (calls [][]int) {
	for _, form := range toolCalls {
		for at := 0; ; {
			begin := form.begin.FindStringIndex(reply[at:])
			if begin == nil {
				break
			}
			from, to := at+begin[0], at+begin[1]
			if at = to; from > 0 && strings.IndexByte("`'\"", reply[from-1]) >= 0 {
				continue
			}

			end := form.end.FindStringIndex(reply[to:])
			if end == nil {
				end = []int{len(reply) - to, len(reply) - to}
			}
			at = to + end[1]
			calls = append(calls, []int{from, at, to, to + end[0]})
		}
		if len(calls) > 0 {
			return calls
		}
	}
	return nil
}

// IsToolCall reports whether a reply consists only of tool calls.
func IsToolCall(reply string) bool {
	calls, at := FindToolCalls(reply), 0
	for _, call := range calls {
		if strings.TrimSpace(reply[at:call[0]]) != "" {
			return false
		}
		at = call[1]
	}
	return len(calls) > 0 && strings.TrimSpace(reply[at:]) == ""
}
