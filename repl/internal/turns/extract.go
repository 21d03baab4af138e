package turns

import (
	"slices"
	"strings"

	"github.com/rlmhq/rlm/internal/text/lazyregexp"
	"github.com/rlmhq/rlm/repl/internal/loopsession"
	"github.com/rlmhq/rlm/tiers"
)

// Reply has the code and the answer of a model's reply.
type Reply struct {
	// Blocks are the code, in order.
	Blocks []loopsession.Block
	// Final is the answer given as text outside of code, nil if there is none.
	Final *textFinal
	// Bare are texts without a fence that may be code, the likeliest first. The session
	// decides: see [Executor.Execute]. The first that is code replaces Blocks and Final.
	Bare []string
	// Unread is text without a fence that looks like code. It runs if there are no Blocks
	// and none of Bare is code: the model must see why it cannot run.
	Unread string
	// Notes tell the model what in its reply does not count. An answer in text beside them
	// does not count either: the model counted on what the notes are about.
	Notes []string
	// TakenBack reports that the words behind the code or the answer take it back.
	TakenBack bool

	isOpen    bool // the last block lacks its end
	isOutside bool // the blocks stand in no fence
}

// maxBlocks bounds the code of one reply. A flood beyond it is dropped: no model
// reads the feedback of so many.
const maxBlocks = 64

// Extract finds code and answers in a reply. Code is looked for in layers, and the first
// that has any wins: fenced blocks of every dialect, tool calls, elements such as <code>. A
// fence without a language counts if it looks like Python; one of another language (json,
// text) is no code, and an answer in it is none.
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

// DropUnfinished drops what a reply may have had only a part of when the limit of tokens
// cut it: answers in text, and code without an end.
func (r *Reply) DropUnfinished() {
	if r.isOutside {
		r.Blocks = nil
	} else if r.isOpen {
		r.Blocks = r.Blocks[:len(r.Blocks)-1]
	}
	r.Final, r.Bare, r.Unread = nil, nil, ""
}

// maxLooked bounds the part of a reply that is searched, in bytes. No model writes so much,
// but a server may send it.
const maxLooked = 4 << 20

var (
	// fenceMargin stands before the marks of a fence, with characters that editors put there.
	fenceMargin = lazyregexp.New("(?m)^[ \t\u00a0\u202f\u200b\u200c\u200d\u2060\ufeff]+([`~]{3,})")
	// anyFence begins a line that may open a fence, also in a quotation.
	anyFence  = lazyregexp.New("(?m)^ {0,3}(?:> ?)?[`~]{3,}")
	quoteMark = lazyregexp.New("(?m)^ {0,3}> ?")
	// turnEnd are the marks with which servers leave a reply that ends.
	turnEnd = lazyregexp.New(
		`(?:\s*(?:<\|(?:eot_id|eom_id|im_end|end|endoftext|end_of_text|return)\|>|</s>|<end_of_turn>` +
			`|<｜end▁of▁sentence｜>))+\s*$`)
)

// cleanReply returns the part of a reply that is searched, with the line ends of Unix,
// without a byte order mark, and with plain marks of fences.
func cleanReply(reply string) string {
	reply = strings.TrimPrefix(reply, "\ufeff")
	reply = strings.ReplaceAll(reply[:min(len(reply), maxLooked)], "\r\n", "\n")
	reply = turnEnd.ReplaceAllString(reply, "")
	if strings.Contains(anyFence.FindString(reply), ">") {
		reply = quoteMark.ReplaceAllString(reply, "")
	}
	return fenceMargin.ReplaceAllStringFunc(reply, plainQuotes.Replace)
}

// ExtractScript finds the one Python script of a reply, in the form of the Recursive
// Reflector: layers as of [Extract], but an answer in text is code like any other,
// and of several blocks the first alone counts. A first block that begins with
// "# BATCH" takes the others along. Of a reply that was cut, only code with its end counts.
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

// keepLanguage keeps the blocks of one language.
func keepLanguage(blocks []loopsession.Block, language tiers.Language) []loopsession.Block {
	return slices.DeleteFunc(blocks, func(b loopsession.Block) bool { return b.Language != language })
}

// joinScript returns the first of some blocks, or a batch of them.
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

// pythonSigns are the signs of Python, at a line's start or within.
var pythonSigns = lazyregexp.New(
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
var listItem = lazyregexp.New(`^\s*([-*+]|\d+[.)])\s`)

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

// findBare returns what may be code without a fence: the whole reply, the lines outside of
// fences from the first to the last that look like code, also the indented lines of a
// list's entry, and both without the marks of lists and quotations on each line.
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
// indentation of the first, empty if there is none.
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
