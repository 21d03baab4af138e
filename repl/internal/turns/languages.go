package turns

import (
	"slices"
	"strings"

	"github.com/rlmhq/rlm/internal/text/lazyregexp"
	"github.com/rlmhq/rlm/repl/ledger"
	"github.com/rlmhq/rlm/tiers"
)

// languages maps the words after the marks of a fence to languages that run. A version may follow
// the word, as in python3.12.
var languages = map[string]tiers.Language{
	"repl":        tiers.Python,
	"python":      tiers.Python,
	"py":          tiers.Python,
	"cpython":     tiers.Python,
	"ipython":     tiers.Python,
	"jupyter":     tiers.Python,
	"pycon":       tiers.Python,
	"python-repl": tiers.Python,
	"python_repl": tiers.Python,
	"python-exec": tiers.Python,
	"python_exec": tiers.Python,
	"pyodide":     tiers.Python,
	"sage":        tiers.Python,
	"tool_code":   tiers.Python,

	"code_interpreter":   tiers.Python,
	"python_interpreter": tiers.Python,

	"go":     tiers.Go,
	"golang": tiers.Go,
}

// anyCode are words after the marks of a fence with code of any language.
var anyCode = strings.Fields("code code-cell exec execute run cell interpreter tool_call tool_calls")

// languageOf returns the language that runs for a word after the marks of a fence.
func languageOf(word string) (language tiers.Language, runs bool) {
	language, runs = languages[strings.TrimRight(strings.ToLower(word), "0123456789.")]
	return language, runs
}

// dataWords follow the marks of a fence that holds no code. Any other word that is not in
// languages names code that does not run.
var dataWords = func() map[string]bool {
	words := map[string]bool{}
	for _, word := range strings.Fields("text txt plain plaintext md markdown html xml svg css json jsonl json5 " +
		"yaml yml toml ini csv tsv log output stdout console result answer final example quote prompt diff patch " +
		"think thinking thought thoughts reasoning " +
		"latex tex math mermaid table ascii none") {
		words[word] = true
	}
	return words
}()

// languageSigns identify the languages that models write instead of Python, the clearest sign
// first.
var languageSigns = []struct {
	name string
	sign *lazyregexp.Regexp
}{
	{"Rust", lazyregexp.New(`\blet mut\b|\bfn \w+\(|\bprintln!`)},
	{"Go", lazyregexp.New(`(?m)^\s*(package \w+$|func [\w(]|import \($)|\bfmt\.\w|^\s*\w+ := `)},
	{"JavaScript", lazyregexp.New(
		`(?m)^\s*(let|const|var)\s+[\w$\[{]|\bconsole\.log\(|\)\s*=>|=>\s*[{(]|^\s*(async )?function\b|===|^\s*//`)},
	{"SQL", lazyregexp.New(
		`(?i)^\s*(select\b(?s:.*)\bfrom\b|insert into\b|update \w+ set\b|create table\b)`)},
	{"PHP", lazyregexp.New(`<\?php|(?m)^\s*\$\w+ = `)},
	{"shell", lazyregexp.New(
		`(?m)^\s*(\$ |#!.*sh\b|echo |export |sudo |(grep|awk|sed|cat|wc|curl|pip|ls|head|tail) [-\w'"/$]` +
			`|fi$|done$)|=\$\(`)},
	{"R", lazyregexp.New(`(?m)^\s*[\w.]+ *<- |\bfunction\(.*\) *\{|^\s*library\(`)},
	{"C", lazyregexp.New(`(?m)^\s*#include|\bint main\(|\bstd::|System\.out\.|^\s*public (static|class) `)},
	{"Python 2", lazyregexp.New(`(?m)^\s*print +["'\w]`)},
	{"Ruby", lazyregexp.New(`(?m)^\s*puts |\.each do\b`)},
}

// guessLanguage returns the language in which text is probably written, or "" if it shows no sign
// of a language other than Python.
func guessLanguage(text string) string {
	for _, l := range languageSigns {
		if l.sign.MatchString(text) {
			return l.name
		}
	}
	return ""
}

// otherMeaning matches statements of other languages that have another meaning in Python: n <- 5
// compares, ++n does nothing.
var otherMeaning = lazyregexp.New(`(?m)^[ \t]*(?:[\w.]+ *<- |(?:\+\+|--)[A-Za-z_]\w*[ \t]*;?[ \t]*$)`)

// hintLanguage returns a hint for the model about the language of its code if the code is not
// Python but resembles another language, or else "".
func hintLanguage(ran *ledger.Snippet) string {
	if ran.Language != tiers.Python || ran.Exception == nil || !isSyntax(ran.Exception.Type) {
		return ""
	}
	if name := guessLanguage(ran.Source); name != "" {
		return "This looks like " + name + ": " + onlyPython
	}
	return ""
}

// onlyPython tells a model which languages run.
const onlyPython = "only Python (or Go) runs here."

// isSyntax reports whether an exception means that code is not Python.
func isSyntax(exception string) bool {
	return exception == "SyntaxError" || exception == "IndentationError" || exception == "TabError"
}

// noteOthers informs the model about code that cannot run here.
func noteOthers(fences, tools []string) (notes []string) {
	add := func(note string) {
		if len(notes) < maxNotes && (len(notes) == 0 || notes[len(notes)-1] != note) {
			notes = append(notes, note)
		}
	}
	for _, name := range fences {
		add("A block of " + name + " was not run: " + onlyPython)
	}
	for _, tool := range tools {
		if tool != "" {
			tool = " to " + tool
		}
		add("The tool call" + tool + " was not run: there are no tools besides the functions of the REPL. " +
			"Call them in a ```repl block.")
	}
	return notes
}

// maxNotes bounds the notes about one reply.
const maxNotes = 3

// codeLine matches a line that looks like code of some language.
var codeLine = lazyregexp.New(`^(?:` + strings.Join([]string{
	// n = 5, a, b = f(), n: int = 5, $n .= 5
	`[$@%]?[A-Za-z_][\w.$]*(?:\[[^\]]*\])*(?:\s*,\s*[$@%]?[A-Za-z_][\w.]*)*` +
		`(?:\s*:\s*(?:int|str|float|bool|list|dict|tuple|set|[A-Z]\w*)(?:\[.*\])?)?` +
		`\s*(?:[-+*/%|&^:?.]|\*\*|//|<<|>>)?=(?:[^=]|$)`,
	// n <- 5, n++
	`[A-Za-z_][\w.]*(?:\[[^\]]*\])?\s*(?:<-|<<-|\+\+|--)|(?:\+\+|--)\w+`,
	// let n = 5, int n;
	`(?:let|const|var|my|our|local|export|declare|int|long|float|double|bool|char|auto|val|string|String|set)` +
		`(?:\s+mut)?\s+[$@%]?[\w{\[][^.?!]*(?:=|;\s*$)`,
	`(?:import|from|package|using|require|#include|use) [\w<"'.(]+(?:[;>]|$| import | as )`,
	`(?:def|class|func|fn|function|sub|async def|async function)\s+\w+\s*[({:<]`,
	`(?:if|elif|else if|for|foreach|while|until|switch|match|with|try|else|do|case|except|finally)\b.*` +
		`(?::|\{|; *(?:then|do))$`,
	`(?:await |return |yield |raise |throw |del |assert |puts |echo )[\w"'$(\[]+[\w"'$().\[\], ]*;?$`,
	// the print statement of Python 2
	`print +["'\w][\w"'., %()]*$`,
	// f(x), console.log(x), println!(x)
	`[A-Za-z_$][\w.$]*!?\(.*`,
	`(?:SELECT|INSERT|UPDATE|DELETE|CREATE|WITH)\s.*`,
	`(?:grep|awk|sed|cat|wc|sort|cut|curl|find|head|tail)\s+(?:-|['"$/]|\S+\.\w+$).*`,
	`\$ \w.*|#!.*|<\?php.*`,
	// a line that ends with a mark of code
	`.*(?:[=()\[\]{}$].*;|\)\s*\{|=>\s*\{?)$`,
}, `|`) + `)`)

// lineMarks matches a line of code with list or quotation marks.
var lineMarks = lazyregexp.New("^(?:[ \t]*(?:>[ \t]?)+)?(?:[ \t]*(?:[-*+]|\\d{1,3}[.)])[ \t])?(.*)$")

// plainQuotes replaces characters that editors insert into code.
var plainQuotes = strings.NewReplacer(
	"“", `"`, "”", `"`, "„", `"`, "‘", "'", "’", "'",
	"\u00a0", " ", "\u202f", " ", "\u2007", " ", "\u200b", "", "\u200c", "", "\u200d", "", "\u2060", "", "\ufeff", "",
)

// bareLine returns a line without list and quotation marks, without emphasis or backticks around
// the whole line, and without characters that editors insert.
func bareLine(line string) string {
	line = lineMarks.ReplaceAllString(plainQuotes.Replace(line), "$1")
	for _, mark := range []string{"**", "__", "`"} {
		inner := strings.TrimSpace(line)
		if len(inner) > 2*len(mark) && strings.HasPrefix(inner, mark) && strings.HasSuffix(inner, mark) {
			line = inner[len(mark) : len(inner)-len(mark)]
		}
	}
	return line
}

// bareText returns text with bareLine applied to each line, or the code of an interactive session.
func bareText(text string) string {
	if session.MatchString(text) {
		return dropPrompts(plainQuotes.Replace(text))
	}
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		lines[i] = bareLine(line)
	}
	return strings.Join(lines, "\n")
}

var (
	// session matches a line of code in an interactive session, prompt the beginning of each
	// line.
	session      = lazyregexp.New(`(?m)^[ \t]*(?:>>>|In \[\d+\]:) `)
	sessionStart = lazyregexp.New(`^\s*(?:>>>|In \[\d+\]:) `)
	prompt       = lazyregexp.New(`(?m)^[ \t]*(?:>>>|\.\.\.:?|In \[\d+\]:)(?: |$)(.*)$`)
)

// dropPrompts returns the code of an interactive session without its output.
func dropPrompts(text string) string {
	var kept []string
	for _, line := range prompt.FindAllStringSubmatch(text, -1) {
		kept = append(kept, line[1])
	}
	return strings.Join(kept, "\n")
}

// isCodeLine reports whether a line of text looks like code of any language.
func isCodeLine(line string) bool {
	line = strings.TrimSpace(bareLine(line))
	return len(line) < maxLine && !anyFinal.MatchString(line) && codeLine.MatchString(line)
}

// mayBeCode reports whether a line of text looks like code, including an answer.
func mayBeCode(line string) bool { return looksLikePython(line) || isCodeLine(line) }

// behindCode returns the lines of text after the last one that looks like code.
func behindCode(text string) string {
	lines := strings.SplitAfter(text, "\n")
	for i, line := range slices.Backward(lines) {
		if mayBeCode(strings.TrimSpace(line)) {
			return strings.Join(lines[i+1:], "")
		}
	}
	return ""
}

var (
	// assignment matches the assignment of a variable, even inside a sentence.
	assignment = lazyregexp.New("\\b([A-Za-z_]\\w*)(?:`?\\s*(?:\\[[^\\]\n]*\\]|\\.\\w+)*\\s*" +
		"(?:[-+*/%|&^:]?=(?:[^=]|$)|<-)|\\+\\+|--)|(?:\\+\\+|--)([A-Za-z_]\\w*)")
	anyName = lazyregexp.New(`[A-Za-z_]\w*`)
)

// findClaim returns the first name in an answer that the surrounding words claim to set, or "",
// because words change no variable.
func findClaim(words string, f *textFinal) string {
	names := map[string]bool{}
	for _, name := range anyName.FindAllString(f.Argument, -1) {
		names[name] = true
	}
	for _, found := range assignment.FindAllStringSubmatch(words, -1) {
		if name := found[1] + found[2]; names[name] {
			return name
		}
	}
	return ""
}
