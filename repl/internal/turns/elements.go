package turns

import (
	"strings"

	"github.com/rlmhq/rlm/internal/text/lazyregexp"
)

// elements match blocks whose delimiters are not Markdown: elements that name code, two backticks,
// an action, and three quotes. The first pattern matches anywhere, the others at the start of a
// line.
var elements = []*lazyregexp.Regexp{
	lazyregexp.New(`(?is)(?:^|\n)[ \t]*<repl\b[^>\n]*>(.*?)(?:</repl>|$)`),
	lazyregexp.New(`(?is)<python\b[^>\n]*>(.*?)(?:</python>|$)`),
	lazyregexp.New(`(?is)<tool_code\b[^>\n]*>(.*?)(?:</tool_code>|$)`),
	lazyregexp.New(`(?is)(?:^|\n)[ \t]*<pre\b[^>\n]*>\s*(?:<code\b[^>\n]*>)?(.*?)(?:(?:</code>\s*)?</pre>|$)`),
	lazyregexp.New(`(?is)(?:^|\n)[ \t]*<code\b[^>\n]*>(.*?)(?:</code>|\n<code>\s*$|$)`),
	lazyregexp.New(`(?is)<code\b[^>\n]*>([^<]*\bFINAL(?:_VAR)?\(.*?)(?:</code>|$)`),
	lazyregexp.New("(?s)(?:^|\n)``[ \t]*(?:python|py|repl)?[ \t]*\n(.*?)(?:\n``[ \t]*(?:\n|$)|$)"),
	lazyregexp.New(`(?is)(?:^|\n)[ \t]*Action:[ \t]*(?:` + strings.Join(pythonTools, "|") + `)[ \t]*\n[ \t]*` +
		`Action Input:[ \t]*\n?([^{\[\s].*?)(?:\n[ \t]*(?:Observation|Thought|Final Answer):|$)`),
	lazyregexp.New("(?s)(?:^|\n)'''[ \t]*(?:python|py|repl)?[ \t]*\n(.*?)(?:\n'''[ \t]*(?:\n|$)|$)"),
}

// halfTag matches the beginning of a closing tag at the end of a reply.
var halfTag = lazyregexp.New(`\s*</\w*\s*$`)

// findElements returns the code delimited by the first of elements that occurs in text. If the
// reply has other code, an element must begin a line and have an end.
func findElements(text string, beside bool) (found []piece) {
	for _, element := range elements {
		for _, at := range element.FindAllStringSubmatchIndex(text, -1) {
			begins := strings.TrimSpace(lineBefore(text, at[0])) == "" || text[at[0]] == '\n'
			if beside && (at[3] == at[1] || !begins) {
				continue
			}
			source := halfTag.ReplaceAllString(text[at[2]:at[3]], "")
			if block, ok, _ := blockOf("", strings.Trim(source, "\n")); ok {
				found = append(found, piece{block: block, begin: at[0], end: at[1]})
			}
		}
		if len(found) > 0 {
			return found
		}
	}
	return nil
}
