package turns

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/rlmhq/rlm/internal/text/lazyregexp"
	"github.com/rlmhq/rlm/internal/text/texts"
	"github.com/rlmhq/rlm/repl/internal/loopsession"
	"github.com/rlmhq/rlm/tiers"
)

// elements match the delimiters of blocks outside Markdown: elements that name code, two
// backticks, and three quotes. The first match anywhere, the others at the start of a line.
var elements = []*lazyregexp.Regexp{
	lazyregexp.New(`(?is)<python\b[^>\n]*>(.*?)(?:</python>|$)`),
	lazyregexp.New(`(?is)<tool_code\b[^>\n]*>(.*?)(?:</tool_code>|$)`),
	lazyregexp.New(`(?is)(?:^|\n)[ \t]*<pre\b[^>\n]*>\s*(?:<code\b[^>\n]*>)?(.*?)(?:(?:</code>\s*)?</pre>|$)`),
	lazyregexp.New(`(?is)(?:^|\n)[ \t]*<code\b[^>\n]*>(.*?)(?:</code>|$)`),
	lazyregexp.New(`(?is)<code\b[^>\n]*>([^<]*\bFINAL(?:_VAR)?\(.*?)(?:</code>|$)`),
	lazyregexp.New("(?s)(?:^|\n)``[ \t]*(?:python|py|repl)?[ \t]*\n(.*?)(?:\n``[ \t]*(?:\n|$)|$)"),
	lazyregexp.New("(?s)(?:^|\n)'''[ \t]*(?:python|py|repl)?[ \t]*\n(.*?)(?:\n'''[ \t]*(?:\n|$)|$)"),
}

// findElements returns the code delimited by the first of elements that occurs in a text, and
// the text before, between and after the blocks.
func findElements(text string) (blocks []loopsession.Block, around []string) {
	for _, element := range elements {
		for _, found := range element.FindAllStringSubmatch(text, -1) {
			if block, ok, _ := blockOf("", strings.Trim(found[1], "\n")); ok {
				blocks = append(blocks, block)
			}
		}
		if len(blocks) > 0 {
			return blocks, element.Split(text, -1)
		}
	}
	return nil, []string{text}
}

// findCalls returns the code passed by the tool calls in a text, the names of the tools of all
// other calls, and the text before, between and after the calls.
func findCalls(text string) (blocks []loopsession.Block, others, around []string) {
	calls, around := texts.CutToolCalls(text)
	for _, call := range calls {
		tool, source := readCall(call)
		if slices.Contains(otherTools, strings.ToLower(tool)) || !looksLikePython(source) {
			others = append(others, clipWord(tool))
			continue
		}
		blocks = append(blocks, loopsession.Block{Language: tiers.Python, Source: source})
	}
	return blocks, others, around
}

// otherTools run code other than Python.
var otherTools = []string{"bash", "shell", "sh", "terminal", "javascript", "node", "sql"}

var (
	// parameter matches an argument that is not JSON.
	parameter = lazyregexp.New(`(?s)<parameter(?:=|\s+name=)"?(\w+)"?[^>]*>(.*?)(?:</parameter>|$)` +
		`|<arg_key>(\w+)</arg_key>\s*<arg_value>(.*?)(?:</arg_value>|$)`)
	// callHeader matches the name of the tool, before the arguments of a call.
	callHeader = lazyregexp.New(
		`^\s*(?:(?:<(?:function|invoke)\b)?(?:=|\s+name=)"?([\w.]+)"?>` +
			`|(?:<\|tool_call_begin\|>)?(?:functions\.)?([A-Za-z_]\w*)(?::\d+)?` +
			`(?:<\|\w+\|>|\[ARGS\]|\s*\n\s*<arg_key>))`)
)

// readCall returns the name of the tool in a call and the code passed to it. Either may be
// empty.
func readCall(call string) (tool, source string) {
	rest := call
	if m := callHeader.FindStringSubmatch(call); m != nil {
		tool, rest = m[1]+m[2], call[len(m[0]):]
	}
	if list := parameter.FindAllStringSubmatch(call, -1); list != nil {
		arguments := map[string]any{}
		for _, a := range list {
			arguments[a[1]+a[3]] = strings.Trim(a[2]+a[4], "\n")
		}
		return tool, pickCode(arguments)
	}

	rest = strings.Trim(rest, "\n")
	if first := strings.TrimLeft(rest, " \t\n["); strings.HasPrefix(first, "{") {
		return readJSONCall(tool, first)
	}
	return tool, rest
}

// readJSONCall is readCall for a call in JSON. The name may precede the JSON.
func readJSONCall(tool, call string) (name, source string) {
	var in map[string]any
	if json.NewDecoder(strings.NewReader(call)).Decode(&in) != nil {
		return tool, ""
	}
	if name, ok := in["name"].(string); ok && tool == "" {
		tool = name
	}
	for _, key := range []string{"arguments", "parameters", "input", "args"} {
		switch arguments := in[key].(type) {
		case map[string]any:
			return tool, pickCode(arguments)
		case string: // of JSON, or the code itself
			var inner map[string]any
			if json.Unmarshal([]byte(arguments), &inner) == nil {
				return tool, pickCode(inner)
			}
			return tool, arguments
		}
	}

	return tool, pickCode(in)
}

// codeKeys are the names of arguments that hold code.
var codeKeys = []string{"code", "source", "python", "python_code", "script", "snippet", "input", "command"}

// pickCode returns the code among the arguments of a call.
func pickCode(arguments map[string]any) string {
	for _, key := range codeKeys {
		if source, ok := arguments[key].(string); ok {
			return source
		}
	}
	return ""
}
