package turns

import (
	"slices"
	"strings"

	"github.com/rlmhq/rlm/internal/text/lazyregexp"
	"github.com/rlmhq/rlm/repl/internal/loopsession"
	"github.com/rlmhq/rlm/tiers"
)

// Reply is the code and the answer found in a model's reply.
type Reply struct {
	// Blocks are the blocks of code, in order.
	Blocks []loopsession.Block
	// Final is the answer given as text outside of code, or nil.
	Final *textFinal
	// Bare are unfenced texts that may be code, the likeliest first. The session decides: see
	// [Executor.Execute]. The first text that is code replaces Blocks and Final.
	Bare []string
	// Unread is unfenced text that looks like code. It runs if there are no Blocks and none of
	// Bare is code: the model must see why it cannot run.
	Unread string
	// Notes explain to the model which parts of its reply do not count. An answer in text beside
	// them does not count either, because the model relied on the parts that the notes name.
	Notes []string
	// TakenBack reports that the words after the code or the answer retract it.
	TakenBack bool

	isOpen    bool // the last block has no end
	isOutside bool // the blocks are not in fences
}

// maxBlocks bounds the blocks of code in one reply. The excess is dropped: no model reads the
// feedback on a larger number.
const maxBlocks = 64

// Extract finds code and answers in a reply. It looks for code in layers, and the first layer
// with any code wins: fenced blocks of every dialect, tool calls, elements such as <code>. A
// fence without a language counts if it looks like Python. A fence in another format (json,
// text) is not code, and an answer in it does not count.
func Extract(reply string) Reply {
	reply = cleanReply(reply)
	found := findFences(reply)
	r := Reply{Blocks: found.blocks, isOpen: found.isOpen, isOutside: len(found.blocks) == 0}
	after := found.after
	called, tools, around := findCalls(found.outside)
	if len(r.Blocks) == 0 && len(called) == 0 {
		called, around = findElements(strings.Join(around, "\n"))
	}
	if len(r.Blocks) == 0 {
		r.Blocks, after = called, around[len(around)-1]
	}

	outside := strings.Join(around, "\n")
	text := readText(outside)
	r.Final, r.Unread = text.final, text.unread
	r.Notes = append(noteOthers(found.others, tools), text.notes...)
	switch {
	case len(r.Blocks) == 0:
		r.Bare = findBare(reply, outside)
	case r.Unread != "" && r.Final != nil:
		r.Notes = append(r.Notes, r.Final.refuse("a line of your text looks like code, which was not run; "+
			"put all code into ```repl blocks"))
	}
	if len(r.Blocks) == 0 || r.Final != nil {
		after = text.after
	}
	r.TakenBack = doubt.MatchString(after)
	if len(r.Blocks) > maxBlocks {
		r.Blocks = r.Blocks[:maxBlocks]
	}
	return r
}

// DropUnfinished drops parts of a reply that the token limit may have truncated: answers in
// text, and code without an end.
func (r *Reply) DropUnfinished() {
	if r.isOutside {
		r.Blocks = nil
	} else if r.isOpen {
		r.Blocks = r.Blocks[:len(r.Blocks)-1]
	}
	r.Final, r.Bare, r.Unread = nil, nil, ""
}

// maxLooked bounds the part of a reply that is searched, in bytes. No model writes that much,
// but a server may send it.
const maxLooked = 4 << 20

var (
	// fenceMargin matches the space before a fence, including characters that editors insert
	// there.
	fenceMargin = lazyregexp.New("(?m)^[ \t\u00a0\u202f\u200b\u200c\u200d\u2060\ufeff]+([`~]{3,})")
	// anyFence matches the beginning of a line that may open a fence, even in a quotation.
	anyFence  = lazyregexp.New("(?m)^ {0,3}(?:> ?)?[`~]{3,}")
	quoteMark = lazyregexp.New("(?m)^ {0,3}> ?")
	// turnEnd matches the markers that servers leave at the end of a reply.
	turnEnd = lazyregexp.New(
		`(?:\s*(?:<\|(?:eot_id|eom_id|im_end|end|endoftext|end_of_text|return)\|>|</s>|<end_of_turn>` +
			`|<｜end▁of▁sentence｜>))+\s*$`)
)

// cleanReply returns the part of a reply that is searched, with Unix line ends, without a byte
// order mark, and with plain fence marks.
func cleanReply(reply string) string {
	reply = strings.TrimPrefix(reply, "\ufeff")
	reply = strings.ReplaceAll(reply[:min(len(reply), maxLooked)], "\r\n", "\n")
	reply = turnEnd.ReplaceAllString(reply, "")
	if strings.Contains(anyFence.FindString(reply), ">") {
		reply = quoteMark.ReplaceAllString(reply, "")
	}
	return fenceMargin.ReplaceAllStringFunc(reply, plainQuotes.Replace)
}

// ExtractScript finds the single Python script of a reply, in the form of the Recursive
// Reflector. Layers are those of [Extract], but an answer in text is ordinary code, and only the
// first of several blocks counts. A first block that begins with "# BATCH" includes the others.
// In a truncated reply, only code with its end counts.
func ExtractScript(reply string, isCut bool) (source string, ok bool) {
	found := findFences(cleanReply(reply))
	if isCut && found.isOpen {
		found.blocks = found.blocks[:len(found.blocks)-1]
	}
	if blocks := keepLanguage(found.blocks, tiers.Python); len(blocks) > 0 {
		return joinScript(blocks[:min(len(blocks), maxBlocks)]), true
	}
	if isCut {
		return "", false
	}

	source = findIndented(found.outside)
	if text := readText(found.outside); source == "" && text.final != nil {
		source = text.final.source()
	}
	return source, source != ""
}

// keepLanguage returns the blocks in one language.
func keepLanguage(blocks []loopsession.Block, language tiers.Language) []loopsession.Block {
	return slices.DeleteFunc(blocks, func(b loopsession.Block) bool { return b.Language != language })
}

// joinScript returns the first block, or a batch of blocks.
func joinScript(blocks []loopsession.Block) string {
	if !strings.HasPrefix(strings.TrimSpace(blocks[0].Source), "# BATCH") {
		return blocks[0].Source
	}
	sources := make([]string, len(blocks))
	for i, b := range blocks {
		sources[i] = strings.Trim(b.Source, "\n")
	}

	return strings.Join(sources, "\n\n")
}

// pythonSigns matches signs of Python, at the start of a line or within it.
var pythonSigns = lazyregexp.New(
	`(?m)^[ \t]*(import |from \w[\w.]* import |def \w|async def |class \w|for .+ in .+:|` +
		`while .+:|if .+:|` +
		`with .+:|try:|return\b|await |print\(|assert |del |raise |@\w)|` +
		`\b(print|len|FINAL|FINAL_VAR|SUBMIT|SHOW_VARS|llm_\w+|rlm_\w+|ask_llm|recursive_llm|` +
		`run_parallel_sub_calls|predict)\(|` +
		`^[A-Za-z_][\w.\[\]'", ]*[ \t]*[-+*/%|&]?=[^=]|\bcontext(_\d+)?\b[.\[]`,
)

// looksLikePython reports whether text shows a sign of Python. It distinguishes code from prose
// and data; the parser decides whether it is Python.
func looksLikePython(text string) bool { return pythonSigns.MatchString(text) }

// findIndented returns the first indented block that looks like Python, without its common
// indentation, which marks the block and is not part of the code.
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

// listItem matches the beginning of a list item, whose continuation lines are indented prose.
var listItem = lazyregexp.New(`^\s*([-*+]|\d+[.)])\s`)

// margin returns the indentation of a line of code, or "".
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

// maxBare bounds unfenced text that may be code, in bytes.
const maxBare = 256 << 10

// findBare returns unfenced text that may be code: the whole reply; the lines outside of fences
// from the first to the last that look like code, including indented lines of list items; and
// both without the list and quotation marks on each line.
func findBare(reply, outside string) []string {
	whole := strings.TrimSpace(reply)
	if len(whole) > maxBare || !strings.ContainsAny(whole, "(=") && !strings.Contains(whole, "import ") {
		return nil
	}

	plain := bareText(outside)
	var bare []string
	for _, text := range []string{
		whole, cutLines(outside, mayBeCode), strings.TrimSpace(plain), cutLines(plain, mayBeCode),
	} {
		if text != "" && !slices.Contains(bare, text) && !otherMeaning.MatchString(text) {
			bare = append(bare, text)
		}
	}
	return bare
}

// cutLines returns the lines of a text from the first to the last of some kind, without the
// indentation of the first, or "" if there are none.
func cutLines(text string, isKind func(string) bool) string {
	lines := strings.Split(text, "\n")
	for i := range lines {
		if !isKind(strings.TrimSpace(lines[i])) {
			continue
		}
		last := len(lines) - 1
		for !isKind(strings.TrimSpace(lines[last])) {
			last--
		}
		return dedentAll(lines[i : last+1])
	}
	return ""
}

// dedentAll removes the indentation of the first line from all lines.
func dedentAll(lines []string) string {
	indent := len(lines[0]) - len(strings.TrimLeft(lines[0], " \t"))
	return strings.Join(cutIndent(lines, indent), "\n")
}
