package turns

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"

	"github.com/rlmhq/rlm/internal/text/lazyregexp"
	"github.com/rlmhq/rlm/internal/text/texts"
	"github.com/rlmhq/rlm/repl/internal/loopsession"
	"github.com/rlmhq/rlm/repl/internal/pysyntax"
	"github.com/rlmhq/rlm/tiers"
)

// call is a call of a tool. The tool's name may be empty.
type call struct {
	tool string
	// source is the code passed to the tool; answer is the answer in text to which a call of FINAL
	// is equivalent. Both are empty if the call has another meaning.
	source, answer string
}

// piece returns the call with its range in the text.
func (c call) piece(begin, end int) piece {
	p := piece{begin: begin, end: end, answer: c.answer}
	isCode := isPythonTool(c.tool) && strings.TrimSpace(c.source) != "" || looksLikePython(c.source)
	switch {
	case c.answer != "":
		// The answer replaces the call, if it fits in its place.
		p.isUnknown, p.tool = len(c.answer)+2 > end-begin, clipWord(c.tool)
	case slices.Contains(otherTools, strings.ToLower(c.tool)) || !isCode:
		p.isUnknown, p.tool = true, clipWord(c.tool)
	default:
		p.block = loopsession.Block{Language: tiers.Python, Source: plainSource(c.source)}
	}

	return p
}

// findCalls returns the tool calls in text. A call without an end ends before the next fence.
func findCalls(text string, fences []piece) (found []piece) {
	for _, at := range texts.FindToolCalls(text) {
		if at[1] == at[3] {
			if next := slices.IndexFunc(fences, func(p piece) bool { return p.begin > at[2] }); next >= 0 {
				at[1], at[3] = fences[next].begin, fences[next].begin
			}
		}
		holdsFence := slices.ContainsFunc(fences, func(p piece) bool {
			return p.begin > at[2] && p.begin <= at[3]
		})

		for _, c := range readCalls(text[at[2]:at[3]], 0) {
			isOurs := c.tool == "" || isPythonTool(c.tool)
			if holdsFence && isOurs && strings.TrimSpace(c.source) == "" {
				continue // the call's code is in the fence
			}
			found = append(found, c.piece(at[0], at[1]))
		}
	}

	return found
}

// otherTools are the names of tools that run code other than Python.
var otherTools = []string{"bash", "shell", "sh", "terminal", "javascript", "node", "sql"}

// pythonTools are the names that models give the REPL when they call it.
var pythonTools = strings.Fields("repl python py python3 ipython python_repl python_interpreter " +
	"code_interpreter interpreter code_execution code_executor tool_code execute_code run_code " +
	"execute_python run_python python_exec python_tool python_code execute_python_code run_python_code")

func isPythonTool(name string) bool {
	name = strings.ToLower(name[strings.LastIndexByte(name, '.')+1:])
	return slices.Contains(pythonTools, strings.ReplaceAll(name, "-", "_"))
}

var (
	// parameter matches an argument that is not JSON.
	parameter = lazyregexp.New(
		`(?s)<(?:antml:|｜DSML｜)?parameter(?:=|\s+name=)"?(\w+)"?[^>]*>(.*?)(?:</(?:antml:|｜DSML｜)?parameter>|$)` +
			`|<(?:longcat_)?arg_key>(\w+)</(?:longcat_)?arg_key>\s*` +
			`<(?:longcat_)?arg_value>(.*?)(?:</(?:longcat_)?arg_value>|$)` +
			`|(\w+):<escape>(.*?)<escape>` +
			`|<parameters>\s*<(\w+)>(.*?)</\w+>\s*</parameters>`)
	// callHeader matches the name of the tool, before the arguments of a call.
	callHeader = lazyregexp.New(
		`^\s*(?:(?:=|\s*name=)"?([\w.]+)"?>` +
			`|function<[｜|]tool[▁_]sep[｜|]>(\w+)\s*\n` +
			`|>?\s*<tool_name>([\w.]+)</tool_name>` +
			`|call:([\w.]+)\{` +
			`|(?:functions\.)?([A-Za-z_]\w*)(?::\d+)?(?:\[CALL_ID\]\w+)?` +
			`(?:<\|\w+\|>|<[｜|]tool[▁_]sep[｜|]>|\[ARGS\]|\s*\n✿ARGS✿:|\s*<(?:longcat_)?arg_key>))`)
	// nameBefore matches a name directly before an object. objectMark matches the text before code
	// or an object.
	nameBefore = lazyregexp.New(`^\s*([A-Za-z_][\w.]*)\s*\{`)
	objectMark = lazyregexp.New(`^\s*<\|(?:interpreter|plugin)\|>`)
	// innerCode matches code after the object of a call.
	innerCode = lazyregexp.New(`(?s)<code>(.*?)</code>`)
)

// maxNested bounds the nesting of calls.
const maxNested = 4

// readCalls reads the text between the marks of one or more calls.
func readCalls(text string, depth int) (all []call) {
	inner := texts.FindToolCalls(text)
	if len(inner) > 0 && strings.TrimSpace(text[:inner[0][0]]) == "" && depth < maxNested {
		for _, at := range inner {
			all = append(all, readCalls(text[at[2]:at[3]], depth+1)...)
		}
		return all
	}

	tool, rest := "", objectMark.ReplaceAllString(text, "")
	header := callHeader.FindStringSubmatch(rest)
	if header != nil {
		tool, rest = strings.Join(header[1:], ""), rest[len(header[0]):]
	} else if m := nameBefore.FindStringSubmatch(rest); m != nil {
		tool, rest = m[1], rest[len(m[0])-1:]
	}

	if list := parameter.FindAllStringSubmatch(text, -1); list != nil && header != nil {
		arguments := map[string]any{}
		for _, a := range list {
			arguments[a[1]+a[3]+a[5]+a[7]] = strings.Trim(a[2]+a[4]+a[6]+a[8], "\n")
		}
		return []call{readArguments(tool, arguments)}
	}

	rest = strings.Trim(rest, "\n")
	if first := strings.TrimLeft(rest, " \t\n"); strings.HasPrefix(first, "{") || strings.HasPrefix(first, "[") {
		if value, ok := decodeLoosely(first); ok {
			all = readValue(tool, value)
			code := innerCode.FindStringSubmatch(first)
			if len(all) == 1 && code != nil && strings.TrimSpace(all[0].source) == "" {
				all[0].source = strings.Trim(code[1], "\n")
			}
			return all
		}
		if strings.HasPrefix(first, "{") {
			return []call{{tool: tool}}
		}
	}

	if name, source, _, ok := readFunction(rest); ok {
		return []call{{tool: cmp.Or(tool, name), source: source}}
	}

	return []call{{tool: tool, source: rest}}
}

// decodeLoosely decodes the object or the list at the beginning of a text: JSON, including JSON
// with line ends in strings, in Python's notation, or without its last brackets.
func decodeLoosely(text string) (value any, ok bool) {
	for _, form := range []string{text, plainJSON(text)} {
		for _, end := range []string{"", "}", "}}", "]", "}]", "}}]"} {
			if json.NewDecoder(strings.NewReader(form+end)).Decode(&value) == nil {
				return value, true
			}
		}
	}

	return nil, false
}

// plainJSON converts the strings and constants of Python to those of JSON.
func plainJSON(text string) string {
	var out strings.Builder
	for at := 0; at < len(text); {
		if text[at] != '"' && text[at] != '\'' {
			next := strings.IndexAny(text[at:], `"'`)
			if next < 0 {
				next = len(text) - at
			}
			out.WriteString(jsonConstants.Replace(text[at : at+next]))
			at += next
			continue
		}

		end := at + 1
		for end < len(text) && text[end] != text[at] {
			if text[end] == '\\' {
				end++
			}
			end++
		}
		if end >= len(text) {
			return text
		}
		quoted, _ := json.Marshal(unescape(text[at+1 : end])) //nolint:errchkjson // a string always encodes
		out.Write(quoted)
		at = end + 1
	}

	return out.String()
}

var jsonConstants = strings.NewReplacer("True", "true", "False", "false", "None", "null")

// escapes replaces the escape sequences in string literals with their characters.
var escapes = strings.NewReplacer(`\\`, `\`, `\n`, "\n", `\t`, "\t", `\r`, "\r", `\"`, `"`, `\'`, "'", "\\\n", "")

// unescape returns the characters of a string literal.
func unescape(text string) string { return escapes.Replace(text) }

// readValue reads a call in JSON, or a list of calls. The name may precede the JSON.
func readValue(tool string, value any) (all []call) {
	switch v := value.(type) {
	case []any:
		for _, item := range v {
			all = append(all, readValue(tool, item)...)
		}
	case map[string]any:
		for _, key := range []string{"tool_calls", "function_call", "tool_call", "function"} {
			switch v[key].(type) {
			case []any, map[string]any:
				return readValue(tool, v[key])
			}
		}
		return []call{readObject(tool, v)}
	}

	if len(all) == 0 {
		return []call{{tool: tool}}
	}

	return all[:min(len(all), maxBlocks)]
}

var (
	nameKeys     = strings.Fields("name tool_name tool function action recipient_name")
	argumentKeys = strings.Fields("arguments parameters input args action_input tool_input")
)

// readObject reads one call in JSON.
func readObject(tool string, in map[string]any) call {
	for _, key := range nameKeys {
		if name, ok := in[key].(string); ok && tool == "" {
			tool = name
		}
	}

	for _, key := range argumentKeys {
		if arguments, ok := in[key]; ok {
			return readArguments(tool, arguments)
		}
	}

	for name, arguments := range in {
		if _, isObject := arguments.(map[string]any); tool == "" && len(in) == 1 && isObject {
			return readArguments(name, arguments)
		}
	}

	return readArguments(tool, in)
}

// readArguments reads the arguments of a call.
func readArguments(tool string, arguments any) call {
	if text, ok := arguments.(string); ok { // a JSON string, or the code itself
		var inner map[string]any
		if json.Unmarshal([]byte(text), &inner) == nil {
			arguments = inner
		}
	}

	if answers := answerTools[strings.TrimPrefix(tool, "functions.")]; answers != "" {
		return call{tool: tool, answer: writeAnswer(answers, arguments)}
	}

	switch a := arguments.(type) {
	case map[string]any:
		return call{tool: tool, source: pickCode(tool, a)}
	case string:
		return call{tool: tool, source: a}
	}

	return call{tool: tool}
}

// answerTools maps the names of tools that give an answer to the equivalent answers in text.
var answerTools = map[string]string{
	"FINAL": "FINAL", "final": "FINAL", "final_answer": "FINAL", "FINAL_VAR": "FINAL_VAR",
}

// aName matches a string that may be meant as the name of a variable.
var aName = lazyregexp.New(`^[\pL_][\pL\d_]*$`)

// computes matches a string that may be meant as a calculation.
var computes = lazyregexp.New(`[()\[\]{}=_*+<>|@]|\d\s*%\s*\d`)

// writeAnswer returns an answer in text, or "" if the arguments are not one clear value. A string
// that may be code or a name has two meanings.
func writeAnswer(answers string, arguments any) string {
	value := arguments
	if object, ok := arguments.(map[string]any); ok {
		if len(object) != 1 {
			return ""
		}
		for _, only := range object {
			value = only
		}
	}

	text, isText := value.(string)
	if answers == "FINAL_VAR" {
		if !isText || !aName.MatchString(text) {
			return ""
		}
		return "FINAL_VAR(" + text + ")"
	}

	// A lower-case word may be a variable, and a calculation may be code.
	isWord := strings.ToUpper(text[:min(len(text), 1)]) == text[:min(len(text), 1)]
	if isText && (aName.MatchString(text) && !isWord || looksLikePython(text) || computes.MatchString(text)) {
		return ""
	}

	if value == nil {
		return ""
	}

	return answers + "(" + quoteJSON(value) + ")"
}

// codeKeys are the names of arguments that hold code; otherKeys are further such names in calls of
// the REPL.
var (
	codeKeys  = []string{"code", "source", "python", "python_code", "script", "snippet"}
	otherKeys = []string{"input", "command", "query"}
)

// pickCode returns the code among the arguments of a call, or "" if two arguments are code.
func pickCode(tool string, arguments map[string]any) (source string) {
	keys := codeKeys
	if tool == "" || isPythonTool(tool) {
		keys = append(slices.Clone(codeKeys), otherKeys...)
	}

	for _, key := range keys {
		text, ok := arguments[key].(string)
		switch {
		case !ok || text == source:
		case source == "":
			source = text
		case looksLikePython(text):
			return ""
		}
	}

	return source
}

// functionStart matches the beginning of a call of the REPL as a function, up to the code in
// quotes.
var functionStart = lazyregexp.New(`^\s*(\[)?\s*(print\()?\s*([A-Za-z_][\w.]*)` +
	`\(\s*(?:(?:code|source|input|script|command|query)\s*=\s*)?(["'])`)

// runMethod matches the method that runs code, after the name of a tool.
var runMethod = lazyregexp.New(`\.(?:call|run|execute|exec)$`)

// readFunction reads a call of the REPL as a Python function, such as repl(code="..."), at the
// beginning of text. It also returns the length of the call.
func readFunction(text string) (tool, source string, length int, ok bool) {
	m := functionStart.FindStringSubmatchIndex(text)
	if m == nil {
		return "", "", 0, false
	}

	tool = runMethod.ReplaceAllString(text[m[6]:m[7]], "")
	if !isPythonTool(tool) {
		return "", "", 0, false
	}

	begin := m[8]
	last := pysyntax.StringEnd(text, begin)
	if last < 0 {
		return "", "", 0, false
	}

	closing := ")"
	if m[4] >= 0 {
		closing += ")"
	}

	if m[2] >= 0 {
		closing += "]"
	}

	at := last + 1
	for i := range len(closing) {
		at += len(text[at:]) - len(strings.TrimLeft(text[at:], " \t\n,"))
		if at >= len(text) || text[at] != closing[i] {
			return "", "", 0, false
		}
		at++
	}

	literal := text[begin : last+1]
	quote := 1
	if len(literal) >= 6 && strings.HasPrefix(literal, strings.Repeat(literal[:1], 3)) {
		quote = 3
	}

	return tool, strings.Trim(unescape(literal[quote:len(literal)-quote]), "\n"), at, true
}
