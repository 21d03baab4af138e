package turns

import (
	"encoding/json"
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
	// Bare holds unfenced texts that may be code, the likeliest first. The session decides: see
	// [Executor.Execute]. The first one that is code replaces Blocks and Final.
	Bare []string
	// Unread is unfenced text that looks like code. It runs if there are no Blocks and none of Bare
	// is code, so that the model receives the error.
	Unread string
	// Notes explain to the model which parts of its reply were ignored. An answer in the text
	// around these parts is also ignored, because the model relied on them.
	Notes []string
	// TakenBack reports that the words after the code or the answer retract it.
	TakenBack bool

	unfinished int // number of last blocks that the token limit may have truncated
}

// maxBlocks bounds the blocks of code in one reply. The excess is dropped, because no model reads
// the feedback on a larger number.
const maxBlocks = 64

// Extract finds code and answers in a reply: fenced blocks of every dialect, tool calls, and
// elements such as <code>. It returns them in order. A fence without a language is code if it looks
// like Python. A fence in another format (json, text) is not code, and an answer in it is ignored.
func Extract(reply string) Reply {
	reply = cleanReply(reply)
	pieces, outside := findPieces(reply)
	r := Reply{}
	after := r.take(pieces, outside)

	text := readText(outside)
	r.Final, r.Unread = text.final, text.unread
	r.Notes = append(r.Notes, text.notes...)
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
	return r
}

// findPieces returns the code and the calls of a reply in order, and the text around them.
func findPieces(reply string) (pieces []piece, outside string) {
	pieces, outside = findFences(reply)
	add := func(found []piece) {
		for i := range found {
			found[i].isOutside = true
		}
		outside = blankPieces(outside, found)
		for _, p := range found {
			if p.answer == "" || p.isUnknown {
				pieces = append(pieces, p)
			}
		}
	}

	fences := slices.Clone(pieces)
	add(findCalls(outside, fences))
	add(findElements(outside, slices.ContainsFunc(pieces, piece.runs)))
	add(findObjects(outside))
	if len(fences) > 0 {
		add(findIndentedPieces(outside[:fences[len(fences)-1].begin]))
	}
	slices.SortStableFunc(pieces, func(a, b piece) int { return a.begin - b.begin })
	refuseNameless(pieces)
	return pieces, outside
}

// refuseNameless refuses objects with code if there are several, because each may be an example.
func refuseNameless(pieces []piece) {
	n := 0
	for _, p := range pieces {
		if p.isNameless {
			n++
		}
	}
	for i := range pieces {
		if n > 1 && pieces[i].isNameless {
			pieces[i].isUnknown, pieces[i].isOutside, pieces[i].language = true, false, "JSON beside another"
		}
	}
}

// runs reports whether a piece is code that runs here.
func (p piece) runs() bool { return !p.isUnknown }

// blankPieces returns text with some pieces replaced by spaces, so that its length is unchanged.
func blankPieces(text string, pieces []piece) string {
	blank := []byte(text)
	for _, p := range pieces {
		for i := p.begin; i < p.end; i++ {
			blank[i] = '\n'
		}
		if p.answer != "" && !p.isUnknown {
			copy(blank[p.begin+1:], p.answer)
		}
	}
	return string(blank)
}

// take makes pieces the code of the reply and returns the text after the last. An answer after a
// piece that cannot run is ignored if no code computes it, because the model relied on the output
// of the piece.
func (r *Reply) take(pieces []piece, outside string) (after string) {
	var fences, tools []string
	end, isStale := 0, false
	for _, p := range pieces {
		switch {
		case p.isUnknown && p.isOutside:
			tools = append(tools, p.tool)
		case p.isUnknown:
			fences = append(fences, p.language)
		case len(fences)+len(tools) > 0 && answersStated(p.block):
			isStale = true
		default:
			r.Blocks = append(r.Blocks, p.block)
			end = p.end
			if r.unfinished++; !p.isOpen && !p.isOutside {
				r.unfinished = 0
			}
		}
	}

	r.Notes = noteOthers(fences, tools)
	if isStale {
		r.Notes = append(r.Notes, "The answer in your code was not taken: it stands behind code that was not run.")
	}
	if excess := len(r.Blocks) - maxBlocks; excess > 0 {
		r.Blocks, r.unfinished = r.Blocks[:maxBlocks], max(0, r.unfinished-excess)
	}
	return outside[end:]
}

// calculates matches a calculation in code without its strings.
var calculates = lazyregexp.New(`[\w)\]][ \t]*[-+*/%][ \t]*[\w(\[]`)

// answersStated reports whether code answers with a value that it contains itself.
func answersStated(block loopsession.Block) bool {
	source := block.Source
	return block.Language == tiers.Python && len(source) < maxStated && isStated(source) &&
		len(listFinals(source)) > 0 && !calculates.MatchString(blankTexts(source))
}

// DropUnfinished drops the parts of a reply that the token limit may have truncated: answers in
// text, and code without an end.
func (r *Reply) DropUnfinished() {
	r.Blocks = r.Blocks[:len(r.Blocks)-r.unfinished]
	r.unfinished, r.Final, r.Bare, r.Unread = 0, nil, nil, ""
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
	// turnEnd matches the end markers that servers do not remove from a reply.
	turnEnd = lazyregexp.New(`(?:\s*` + endMarkers + `)+\s*$`)
	// innerEnd matches such a marker before the end of the last block.
	innerEnd = lazyregexp.New(`[ \t]*` + endMarkers + `[ \t]*(\n[ \t]*(?:` + "```|~~~" + `)\s*)$`)
	// wideCall matches an answer in wide parentheses without inner parentheses, escapedCall an
	// answer that is escaped for Markdown. After a quotation mark or a parenthesis, they are part
	// of a string.
	wideCall    = lazyregexp.New(`(?m)^([^"'(（\n]*)\b(FINAL_VAR|FINAL|SUBMIT)（([^（）()\n]*)）`)
	escapedCall = lazyregexp.New(`(?m)^([^"'(（\n]*)\bFINAL\\_VAR`)
	// codeEnd matches the stop sequences of some agents, boxMarks the marks that some models write
	// around an answer.
	codeEnd  = lazyregexp.New(`(?m)[ \t]*</?end_(?:code|action)>[ \t]*$`)
	boxMarks = lazyregexp.New(`<\|(?:begin|end)_of_(?:box|solution)\|>|<\|(?:START|END)_RESPONSE\|>`)
	// thought matches thoughts at the beginning of a reply, in tags that are ordinary text
	// elsewhere.
	thought = lazyregexp.New(`(?is)^\s*(?:<analysis>.*?</analysis>|<reflection>.*?</reflection>)`)
	// fencedCall matches the arguments of a tool call of DeepSeek or Hunyuan, which are in a fence.
	fencedCall = lazyregexp.New(
		"(?s)((?:<[｜|]tool[▁_]sep[｜|]>|<tool_call>)\\w+)\n```json\n(.*?)\n```")
)

const endMarkers = `(?:<\|(?:eot_id|eom_id|im_end|end|endoftext|end_of_text|return)\|>|</s>|<end_of_turn>` +
	`|<｜end▁of▁sentence｜>|<\|END_RESPONSE\|>)`

// unwrapMessage returns the text of a reply that is a JSON message with only a text.
func unwrapMessage(reply string) string {
	var message struct{ Role, Content string }
	if !strings.HasPrefix(strings.TrimSpace(reply), "{") {
		return reply
	}
	decoder := json.NewDecoder(strings.NewReader(reply))
	decoder.DisallowUnknownFields()
	isMessage := decoder.Decode(&message) == nil && message.Role == "assistant" && message.Content != ""
	if !isMessage || strings.TrimSpace(reply[decoder.InputOffset():]) != "" {
		return reply
	}
	return message.Content
}

// cleanReply returns the part of a reply that is searched, with Unix line ends, without a byte
// order mark, and with plain fence marks.
func cleanReply(reply string) string {
	reply = strings.TrimPrefix(reply, "\ufeff")
	reply = strings.ReplaceAll(reply[:min(len(reply), maxLooked)], "\r\n", "\n")
	reply = innerEnd.ReplaceAllString(unwrapMessage(reply), "$1")
	if strings.Contains(reply, "（") || strings.Contains(reply, `FINAL\_VAR`) { // both are slow
		reply = wideCall.ReplaceAllString(escapedCall.ReplaceAllString(reply, "${1}FINAL_VAR"), "$1$2($3)")
	}
	reply = thought.ReplaceAllString(turnEnd.ReplaceAllString(reply, ""), "")
	reply = codeEnd.ReplaceAllString(boxMarks.ReplaceAllString(reply, ""), "")
	reply = fencedCall.ReplaceAllString(reply, "$1\n$2")
	if strings.Contains(anyFence.FindString(reply), ">") {
		reply = quoteMark.ReplaceAllString(reply, "")
	}
	return fenceMargin.ReplaceAllStringFunc(reply, plainQuotes.Replace)
}

// ExtractScript finds the single Python script of a reply, in the form of the Recursive Reflector.
// It looks for the same parts as [Extract], but an answer in text is ordinary code, and only the
// first of several blocks is used. A first block that begins with "# BATCH" includes the others. In
// a truncated reply, only code with an end is used.
func ExtractScript(reply string, isCut bool) (source string, ok bool) {
	found, outside := findFences(cleanReply(reply))
	var blocks []loopsession.Block
	for _, p := range found {
		if p.runs() && p.block.Language == tiers.Python && (!isCut || !p.isOpen) {
			blocks = append(blocks, p.block)
		}
	}
	if len(blocks) > 0 {
		return joinScript(blocks[:min(len(blocks), maxBlocks)]), true
	}
	if isCut {
		return "", false
	}

	source = findIndented(outside)
	if text := readText(outside); source == "" && text.final != nil {
		source = text.final.source()
	}
	return source, source != ""
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

// pythonSigns matches signs of Python, at the start of a line or later in it.
var pythonSigns = lazyregexp.New(
	`(?m)^[ \t]*(import |from \w[\w.]* import |def \w|async def |class \w|for .+ in .+:|` +
		`while .+:|if .+:|` +
		`with .+:|try:|return\b|await |print\(|assert |del |raise |@\w)|` +
		`\b(print|len|FINAL|FINAL_VAR|SUBMIT|SHOW_VARS|final_answer|llm_\w+|rlm_\w+|ask_llm|recursive_llm|` +
		`run_parallel_sub_calls|predict)\(|` +
		`^[A-Za-z_][\w.\[\]'", ]*[ \t]*[-+*/%|&]?=[^=]|\bcontext(_\d+)?\b[.\[]`,
)

// looksLikePython reports whether text shows a sign of Python. It distinguishes code from prose and
// data; only the parser decides whether code is Python.
func looksLikePython(text string) bool { return pythonSigns.MatchString(text) }

// findIndented returns the first indented block that looks like Python, without its common
// indentation, which marks the block and is not part of the code.
func findIndented(reply string) string {
	if found := findIndentedPieces(reply); len(found) > 0 {
		return found[0].block.Source
	}
	return ""
}

// findIndentedPieces returns all blocks that findIndented may return.
func findIndentedPieces(text string) (found []piece) {
	lines := strings.SplitAfter(text, "\n")
	for i, at := 0, 0; i < len(lines); {
		if margin(lines[i]) == "" {
			at += len(lines[i])
			i++
			continue
		}
		end, begin := i, at
		for end < len(lines) && (margin(lines[end]) != "" || strings.TrimSpace(lines[end]) == "") {
			at += len(lines[end])
			end++
		}

		source := dedent(strings.Split(text[begin:at], "\n"))
		if looksLikePython(source) && (i == 0 || !listItem.MatchString(lines[i-1])) {
			block := loopsession.Block{Language: tiers.Python, Source: source}
			found = append(found, piece{block: block, begin: begin, end: at})
		}
		i = end
	}
	return found
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
	if first, rest, _ := strings.Cut(whole, "\n"); rest != "" && isPython(first) && word(first) == first {
		whole = strings.TrimSpace(rest)
	}
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

// cutLines returns the lines of text from the first to the last of some kind, without the
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
