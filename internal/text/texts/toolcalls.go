package texts

import (
	"strings"

	"github.com/rlmhq/rlm/internal/text/lazyregexp"
)

// toolCalls match the marks around the tool calls that models write into their text.
var toolCalls = []struct{ begin, end *lazyregexp.Regexp }{
	marks(`<(?:minimax:)?tool_calls?>`, `</(?:minimax:)?tool_calls?>`),
	marks(`<(?:antml:)?function_calls?>`, `</(?:antml:)?function_calls?>`),
	marks(`<function\b`, `</function>`),
	marks(`<invoke\b`, `</invoke>`),
	marks(`<execute(?:_\w+)?>`, `</execute(?:_\w+)?>`),
	marks(`<\|python_(?:tag|start)\|>`, `<\|(?:python_end|eom_id|eot_id)\|>`),
	marks(`<\|tool_calls_section_begin\|>`, `<\|tool_calls_section_end\|>`),
	marks(`<\|action_start\|>`, `<\|action_end\|>`),
	marks(`<｜tool▁calls▁begin｜>`, `<｜tool▁calls▁end｜>`),
	marks(`\[TOOL_CALLS\]`, `</s>`),
}

func marks(begin, end string) struct{ begin, end *lazyregexp.Regexp } {
	return struct{ begin, end *lazyregexp.Regexp }{lazyregexp.New(begin), lazyregexp.New(end)}
}

// CutToolCalls returns the text between the marks of the tool calls in a reply, and the text
// before, between and after them. A call may lack its end; marks in quotes are only mentions. Most
// servers remove tool calls from a reply; with others, or when no tool was offered, they arrive as
// text.
func CutToolCalls(reply string) (calls, around []string) {
	for _, form := range toolCalls {
		begun, at := 0, 0
		for {
			begin := form.begin.FindStringIndex(reply[at:])
			if begin == nil {
				break
			}
			from, to := at+begin[0], at+begin[1]
			if at = to; from > 0 && strings.IndexByte("`'\"", reply[from-1]) >= 0 {
				continue
			}

			around = append(around, reply[begun:from])
			end := form.end.FindStringIndex(reply[to:])
			if end == nil {
				end = []int{len(reply) - to, len(reply) - to}
			}
			calls = append(calls, reply[to:to+end[0]])
			begun, at = to+end[1], to+end[1]
		}
		if len(calls) > 0 {
			return calls, append(around, reply[begun:])
		}
	}
	return nil, []string{reply}
}

// IsToolCall reports whether a reply consists only of tool calls.
func IsToolCall(reply string) bool {
	calls, around := CutToolCalls(reply)
	return len(calls) > 0 && strings.TrimSpace(strings.Join(around, "")) == ""
}
