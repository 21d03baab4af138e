package texts

import (
	"strings"
	"unicode"

	"github.com/rlmhq/rlm/internal/text/lazyregexp"
)

// thoughtTags matches the tags around models' thoughts. The groups before the name match the mark
// of an end tag.
var thoughtTags = lazyregexp.New(
	`(?i)<(/?)(?:think|thinking|thoughts?|reasoning|scratchpad|seed:think|antthinking)(?:\s[^<>\n]*)?>` +
		`|\[(/?)THINK\]` + `|◁(/?)think▷` + `|<\|(?:(END)|START)_THINKING\|>` +
		`|<\|(?:(end)|begin)_of_thought\|>` + `|<unused9(?:4|(5))>`,
)

// DropThoughts returns a reply without the model's thoughts: elements such as <think>, and all
// channels of the Harmony format except the final one and the calls of its tool python, which
// become tool calls in Llama's format. A thought without an end tag extends to the end of the
// reply, and one without a start tag begins with the reply, because some servers send the first tag
// with the prompt. Tags in code are kept.
func DropThoughts(reply string) string {
	if isHarmony(reply) {
		reply = readFinalChannel(reply)
	}
	if !thoughtTags.MatchString(reply) {
		return reply
	}

	var kept strings.Builder
	at, thinks := 0, false
	fences := fenceReader{text: reply}
	for _, tag := range thoughtTags.FindAllStringSubmatchIndex(reply, -1) {
		begin, end := tag[0], tag[1]
		ends := isEndTag(tag)
		switch {
		case strings.HasSuffix(reply[begin:end], "/>") || isQuoted(reply, begin, end):
		case thinks && ends:
			at, thinks = end, false
			fences.next = end
		case thinks:
		case fences.covers(begin) && (!ends || !standsAlone(reply, begin, end)):
		case ends:
			kept.Reset()
			at, fences.next = end, end
		default:
			kept.WriteString(reply[at:begin])
			thinks = true
		}
	}

	if !thinks {
		kept.WriteString(reply[at:])
	}
	return kept.String()
}

// isEndTag reports whether a match of thoughtTags ends a thought.
func isEndTag(match []int) bool {
	for i := 2; i < len(match); i += 2 {
		if match[i] >= 0 && match[i] < match[i+1] {
			return true
		}
	}
	return false
}

// isQuoted reports whether text only mentions a tag: whether the tag is between two identical
// marks.
func isQuoted(text string, begin, end int) bool {
	return begin > 0 && end < len(text) && text[begin-1] == text[end] &&
		strings.IndexByte("`'\"", text[end]) >= 0
}

// standsAlone reports whether a part of a text is alone on its line.
func standsAlone(text string, begin, end int) bool {
	before := strings.TrimRightFunc(text[:begin], isBlank)
	after := strings.TrimLeftFunc(text[end:], isBlank)
	return (before == "" || strings.HasSuffix(before, "\n")) && (after == "" || after[0] == '\n')
}

// isBlank reports whether a character is a space within a line.
func isBlank(r rune) bool { return r != '\n' && unicode.IsSpace(r) }

// fenceReader finds the closed fenced blocks of a text, from its beginning.
type fenceReader struct {
	text       string
	next       int   // where the search continues
	opening    []int // the next line from next on that may open a block
	begin, end int   // the last block found
	unclosed   int   // number of lines that opened a block without an end
}

// maxUnclosed bounds how often the rest of a text is searched without success for the end of a
// block. After that, no position is considered inside a block.
const maxUnclosed = 10

// fenceLine is a line that opens or closes a fenced block.
var fenceLine = lazyregexp.New("(?m)^ {0,3}(`{3,}[^`\n]*|~{3,}.*)$")

// covers reports whether a position is inside a closed fenced block. Positions must be passed in
// order.
func (r *fenceReader) covers(place int) bool {
	for r.next <= place {
		if r.unclosed == maxUnclosed {
			return false
		}
		if len(r.opening) == 0 || r.opening[0] < r.next {
			r.opening = findFenceLine(r.text, r.next)
		}
		if r.opening[0] > place {
			return false
		}

		r.begin = r.opening[0]
		r.end = findFenceEnd(r.text, r.opening[1], r.text[r.opening[2]:r.opening[3]])
		if r.end < 0 {
			r.unclosed++
			r.next = len(r.text) + 1 // nothing closes it
			return false
		}
		r.next = r.end
	}

	return r.begin <= place && place < r.end
}

// findFenceLine returns the positions of the next fenceLine, all equal to the text's end if there
// is none.
func findFenceLine(text string, from int) []int {
	found := fenceLine.FindStringSubmatchIndex(text[from:])
	if found == nil {
		return []int{len(text), len(text), len(text), len(text)}
	}
	for i := range found {
		found[i] += from
	}
	return found
}

// findFenceEnd returns the end of the block that an opening line begins, or -1 if no line closes
// it.
func findFenceEnd(text string, at int, opening string) int {
	marks := len(opening) - len(strings.TrimLeft(opening, opening[:1]))
	for at < len(text) {
		line := findFenceLine(text, at)
		closing := strings.TrimSpace(text[line[2]:line[3]])
		if len(closing) >= marks && strings.Trim(closing, opening[:1]) == "" {
			return line[1]
		}
		at = line[1]
	}

	return -1
}

var (
	// harmonyMark begins or ends a message of the Harmony format, or a part of its header.
	harmonyMark = lazyregexp.New(`<\|(?:start|end|return|call|channel|message|constrain)\|>`)
	// harmonyStart distinguishes a reply in that format from one that only mentions the format.
	harmonyStart = lazyregexp.New(
		`^\s*(?:(?:assistant|analysis|commentary|final)\s*)?<\|(?:start|channel|message)\|>` +
			`|<\|end\|>\s*<\|start\|>`)
	// bareHarmony matches a reply from which the server dropped the marks.
	bareHarmony = lazyregexp.New(`^\s*analysis[A-Z][\w']*,? [\w'"]`)
)

// bareCall matches the call of the tool python at the end of such a reply.
var bareCall = lazyregexp.New(
	`(?s)assistantcommentary to=(?:functions\.)?(?:repl|python|code_interpreter) ?(?:json|code) ?(.*)$`)

func isHarmony(reply string) bool {
	return harmonyStart.MatchString(reply) || bareHarmony.MatchString(reply)
}

// toPython matches the recipient of a call of Harmony's tool python.
var toPython = lazyregexp.New(`\bto=(?:functions\.)?(?:repl|python|code_interpreter)\b`)

// readFinalChannel returns the messages of the final channel of a reply in the Harmony format,
// and the calls of the tool python.
func readFinalChannel(reply string) string {
	if !harmonyStart.MatchString(reply) {
		if call := bareCall.FindStringSubmatch(reply); call != nil {
			return "<|python_tag|>" + call[1] + "<|eom_id|>"
		}
		_, final, _ := strings.Cut(reply, "assistantfinal")
		return final
	}

	var kept strings.Builder
	channel, inHeader, isBody, isCall, at := "", false, false, false, 0
	take := func(text string) {
		isCall = isCall || !isBody && toPython.MatchString(text)
		switch {
		case isBody && isCall:
			kept.WriteString("<|python_tag|>" + text + "<|eom_id|>")
		case isBody && (channel == "" || channel == "final"):
			kept.WriteString(text)
		case inHeader && strings.TrimSpace(text) != "":
			channel = strings.ToLower(strings.Fields(text)[0])
			if channel == "commentary" && !strings.Contains(text, " to=") {
				channel = "final" // text for the user before a call
			}
		}
	}

	for _, mark := range harmonyMark.FindAllStringIndex(reply, -1) {
		if at == 0 && mark[0] > 0 { // the header began in the prompt
			inHeader = true
		}
		take(reply[at:mark[0]])
		switch name := reply[mark[0]+2 : mark[1]-2]; name {
		case "channel":
			channel, inHeader, isBody = "", true, false
		case "message":
			inHeader, isBody = false, true
		case "constrain":
			inHeader, isBody = false, false
		default:
			channel, inHeader, isBody, isCall = "", false, false, false
		}
		at = mark[1]
	}
	take(reply[at:])

	return kept.String()
}
