package turns

import (
	"regexp"
	"slices"
	"strings"

	"github.com/rlmhq/rlm/repl"
	"github.com/rlmhq/rlm/tiers"
)

// Reply has the code and the answer of a model's reply.
type Reply struct {
	// Blocks are the code, in order.
	Blocks []repl.Block
	// Final is the answer given as text outside of code, nil if there is none.
	Final *textFinal
	// Bare are texts without a fence that may be code, the likeliest first. The session
	// decides: see [Executor.Execute]. The first that is code replaces Blocks and Final.
	Bare []string
}

// maxBlocks bounds the code of one reply. A flood beyond it is dropped: no model
// reads the feedback of so many.
const maxBlocks = 64

// Extract finds code and answers in a reply. Code is looked for in layers, and
// the first that has any wins: fenced blocks of every dialect, elements such as <code>, an
// indented block, a balanced FINAL(...) anywhere. A fence without a language counts if it
// looks like Python; one of another language (json, text) is no code.
func Extract(reply string) Reply {
	reply = cleanReply(reply)
	blocks, outside, fenced := findFences(reply)
	if !fenced {
		blocks, outside = findElements(outside)
	}

	r := Reply{Blocks: blocks, Final: findTextFinal(outside)}
	if len(blocks) == 0 {
		r.Bare = findBare(reply)
	}
	if len(blocks) == 0 && r.Final == nil {
		if source := findIndented(reply); source != "" {
			r.Blocks = []repl.Block{{Language: tiers.Python, Source: source}}
		} else if source := finalCall(reply); source != "" {
			r.Blocks = []repl.Block{{Language: tiers.Python, Source: source}}
		}
	}

	if len(r.Blocks) > maxBlocks {
		r.Blocks = r.Blocks[:maxBlocks]
	}
	return r
}

// maxLooked bounds the part of a reply that is searched, in bytes. No model writes so much,
// but a server may send it.
const maxLooked = 4 << 20

// cleanReply returns the part of a reply that is searched, with the line ends of Unix and
// without a byte order mark.
func cleanReply(reply string) string {
	reply = strings.TrimPrefix(reply, "\ufeff")
	return strings.ReplaceAll(reply[:min(len(reply), maxLooked)], "\r\n", "\n")
}

// ExtractScript finds the one Python script of a reply, in the form of the Recursive
// Reflector: layers as of [Extract], but an answer in text is code like any other,
// and of several blocks the first alone counts. A first block that begins with
// "# BATCH" takes the others along.
func ExtractScript(reply string) (source string, ok bool) {
	reply = cleanReply(reply)
	blocks, outside, _ := findFences(reply)
	if blocks = keepLanguage(blocks, tiers.Python); len(blocks) > 0 {
		return joinScript(blocks[:min(len(blocks), maxBlocks)]), true
	}
	source = findIndented(outside)
	if f := findTextFinal(outside); source == "" && f != nil {
		source = f.source()
	}
	if source == "" {
		source = finalCall(reply)
	}

	return source, source != ""
}

// keepLanguage keeps the blocks of one language.
func keepLanguage(blocks []repl.Block, language tiers.Language) []repl.Block {
	return slices.DeleteFunc(blocks, func(b repl.Block) bool { return b.Language != language })
}

// joinScript returns the first of some blocks, or a batch of them.
func joinScript(blocks []repl.Block) string {
	if !strings.HasPrefix(strings.TrimSpace(blocks[0].Source), "# BATCH") {
		return blocks[0].Source
	}
	sources := make([]string, len(blocks))
	for i, b := range blocks {
		sources[i] = strings.Trim(b.Source, "\n")
	}

	return strings.Join(sources, "\n\n")
}

// pythonSigns are the signs of Python, at a line's start or within.
var pythonSigns = regexp.MustCompile(
	`(?m)^[ \t]*(import |from \w[\w.]* import |def \w|async def |class \w|for .+ in .+:|` +
		`while .+:|if .+:|` +
		`with .+:|try:|return\b|await |print\(|assert |del |raise |@\w)|` +
		`\b(print|len|FINAL|FINAL_VAR|SUBMIT|SHOW_VARS|llm_\w+|rlm_\w+|ask_llm|recursive_llm|` +
		`run_parallel_sub_calls|predict)\(|` +
		`^[A-Za-z_][\w.\[\]'", ]*[ \t]*[-+*/%|&]?=[^=]|\bcontext(_\d+)?\b[.\[]`,
)

// looksLikePython reports whether text shows a sign of Python. It tells code from
// prose and data; whether it is Python, the parser will say.
func looksLikePython(text string) bool { return pythonSigns.MatchString(text) }

// findIndented returns the first indented block that looks like Python, its common
// indentation removed: that indentation is the block's mark, not the code's.
func findIndented(reply string) string {
	lines := strings.Split(reply, "\n")
	for i := 0; i < len(lines); {
		if margin(lines[i]) == "" {
			i++
			continue
		}
		end := i
		for end < len(lines) && (margin(lines[end]) != "" || strings.TrimSpace(lines[end]) == "") {
			end++
		}

		source := dedent(lines[i:end])
		if looksLikePython(source) && (i == 0 || !listItem.MatchString(lines[i-1])) {
			return source
		}
		i = end
	}
	return ""
}

// listItem begins an entry whose further lines are indented prose.
var listItem = regexp.MustCompile(`^\s*([-*+]|\d+[.)])\s`)

// margin is the indentation of a line of code, empty if it has none.
func margin(line string) string {
	if strings.TrimSpace(line) == "" ||
		!strings.HasPrefix(line, "    ") && !strings.HasPrefix(line, "\t") {
		return ""
	}
	return line[:len(line)-len(strings.TrimLeft(line, " \t"))]
}

func dedent(lines []string) string {
	common := ""
	for i, line := range lines {
		if m := margin(line); m != "" && (i == 0 || len(m) < len(common)) {
			common = m
		}
	}

	out := slices.Clone(lines)
	for i := range out {
		out[i] = strings.TrimPrefix(out[i], common)
	}
	return strings.TrimSpace(strings.Join(out, "\n"))
}

// maxBare bounds the text without a fence that may be code, in bytes.
const maxBare = 256 << 10

// findBare returns what may be code without a fence: the whole reply, the lines from the
// first to the last that look like Python, and the indented lines of a list's entry.
func findBare(reply string) []string {
	whole := strings.TrimSpace(reply)
	if len(whole) > maxBare || !strings.ContainsAny(whole, "(=") && !strings.Contains(whole, "import ") {
		return nil
	}
	bare := []string{whole}

	lines := strings.Split(strings.TrimRight(reply, " \t\n"), "\n")
	isCode := func(line string) bool { return looksLikePython(strings.TrimSpace(line)) }
	first := slices.IndexFunc(lines, isCode)
	if first < 0 {
		return bare
	}
	last := len(lines)
	for last > first && !isCode(lines[last-1]) {
		last--
	}

	if first > 0 || last < len(lines) {
		bare = append(bare, dedentAll(lines[first:last]))
	}
	return bare
}

// dedentAll removes the indentation of the first line from all lines.
func dedentAll(lines []string) string {
	indent := len(lines[0]) - len(strings.TrimLeft(lines[0], " \t"))
	return strings.Join(cutIndent(lines, indent), "\n")
}
