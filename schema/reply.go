package schema

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"
)

const (
	// maxCandidates bounds how many values are tried in one reply, maxScan how
	// many bytes are read in search of them.
	maxCandidates = 16
	maxScan       = 8 << 20
)

// CheckReply finds the value in the text of a model's reply and checks it.
//
// Where the contract admits a text and nothing with members, the reply is the
// text. Otherwise the value is, the first that meets the contract: the whole
// reply as JSON; the last fenced block, then the one before; the last JSON
// object or array in the prose; for a bool, a number or an enumeration also the
// reply, or its last line, as plain words ("Answer: yes."). An object with one
// member called value, answer or result stands for the member where the
// contract wants no object.
//
// If no candidate meets the contract, the violations are those of the first;
// without a candidate there is one that says so.
func (c *Contract) CheckReply(text string) (coerced json.RawMessage, violations []Violation, err error) {
	values, violations, err := c.checkReply(text, 1)
	if len(values) == 0 {
		return nil, violations, err
	}
	return values[0], nil, nil
}

// CheckReplyAll is [Contract.CheckReply] with every value of the reply that meets the
// contract, the likeliest first; the same value may be among them twice. It is for a
// caller to whom it matters that a model may quote a value that is not its own. A
// reply with more values than are looked at has a violation.
func (c *Contract) CheckReplyAll(text string) (values []json.RawMessage, violations []Violation, err error) {
	return c.checkReply(text, maxCandidates)
}

// checkReply returns the first values of a reply that meet the contract, at most so
// many, or what is wrong with it.
func (c *Contract) checkReply(text string, most int) (values []json.RawMessage, violations []Violation, err error) {
	if len(text) > valueBounds.bytes {
		_, err := decode([]byte(text), valueBounds)
		return nil, refusal(err), nil
	}
	text = strings.TrimSpace(Spoken(strings.ToValidUTF8(text, "\uFFFD")))
	candidates := c.candidates(text)
	if most > 1 && len(candidates) == maxCandidates {
		return nil, []Violation{{Path: pathText(nil), Message: "the reply has too many JSON values in it: answer with one alone"}}, nil
	}
	for i, candidate := range candidates {
		checked, found, err := c.check(candidate)
		if err != nil {
			return nil, nil, err
		}
		if len(found) == 0 {
			if values = append(values, checked.appendJSON(nil)); len(values) == most {
				break
			}
		} else if i == 0 {
			violations = found
		}
	}
	if values != nil {
		return values, nil, nil
	}
	if violations == nil {
		violations = []Violation{{Path: pathText(nil), Message: "the reply has no JSON value in it: answer with the value alone"}}
	}
	return nil, violations, nil
}

// Spoken returns a reply without the thoughts that some models put before it, between
// <think> and </think>: what stands in them is not meant yet.
func Spoken(reply string) string {
	thought, after, ended := strings.Cut(reply, "</think>")
	if ended && strings.HasPrefix(strings.TrimLeft(thought, " \t\r\n"), "<think>") {
		return after
	}
	return reply
}

// candidates returns the values that a reply may mean, the likeliest first.
func (c *Contract) candidates(text string) []*node {
	wants := c.facts[c.root].admitted
	var found []*node
	add := func(n *node) {
		if n == nil || len(found) == maxCandidates {
			return
		}
		inner := unwrap(n)
		if wants&wantsObject != 0 || inner == n {
			found = append(found, n)
		}
		if inner != n {
			found = append(found, inner)
		}
	}
	if n, err := decode([]byte(text), valueBounds); err == nil {
		add(n)
	}
	if wants == wantsString && len(found) == 0 {
		add(newText(text))
	}
	for _, block := range fences(text) {
		if n, err := decode([]byte(block), valueBounds); err == nil {
			add(n)
		}
	}
	if wants&(wantsObject|wantsArray) != 0 || strings.ContainsRune(text, '{') {
		for _, n := range embedded(text) {
			add(n)
		}
	}
	if wants&^(wantsObject|wantsArray) != 0 {
		for _, words := range plainWords(text) {
			add(newText(words))
		}
		if wants&wantsString != 0 && c.root.Enum == nil && c.root.Const == nil {
			add(newText(text))
		}
	}
	return found
}

// Wrapped is the name under which [Contract.Strict] wraps a value that is no
// object.
const Wrapped = "value"

// unwrap returns the only member of an object if its name says that it is the
// value.
func unwrap(n *node) *node {
	if n.kind == objectKind && len(n.keys) == 1 {
		switch strings.ToLower(n.keys[0]) {
		case Wrapped, "answer", "result":
			return n.kids[0]
		}
	}
	return n
}

// fences returns the contents of the last fenced blocks, the very last first. A block
// ends with the next line that is a fence and nothing else.
func fences(text string) []string {
	var blocks []string
	begin, at := -1, 0
	for line := range strings.Lines(text) {
		bare := strings.Trim(line, " \t\r\n")
		switch {
		case begin < 0 && (strings.HasPrefix(bare, "```") || strings.HasPrefix(bare, "~~~")):
			begin = at + len(line)
		case begin >= 0 && (bare == "```" || bare == "~~~"):
			if blocks = append(blocks, strings.TrimSpace(text[begin:at])); len(blocks) > maxCandidates {
				blocks = blocks[1:]
			}
			begin = -1
		}
		at += len(line)
	}
	slices.Reverse(blocks)
	return blocks
}

// embedded returns the objects and arrays that stand in a text, the last first.
// It looks from each bracket that is not inside of a value found before, until
// it has read maxScan bytes.
func embedded(text string) []*node {
	var found []*node
	scanned := 0
	for at := 0; at < len(text) && scanned < maxScan; at++ {
		step := strings.IndexAny(text[at:], "{[")
		if step < 0 {
			break
		}
		at += step
		rest := strings.NewReader(text[at:])
		var raw json.RawMessage
		err := json.NewDecoder(rest).Decode(&raw)
		scanned += len(text) - at - rest.Len()
		if err != nil {
			continue
		}
		if n, err := decode(raw, valueBounds); err == nil {
			if found = append(found, n); len(found) > maxCandidates {
				found = found[1:]
			}
		}
		at += len(raw) - 1
	}
	slices.Reverse(found)
	return found
}

var label = regexp.MustCompile(`(?i)^(the )?(final )?(answer|result|value|verdict)( is)?\s*[:=]?\s*`)

// plainWords returns a reply, and its last line, without the decoration that
// models put around a word.
func plainWords(text string) []string {
	last := text[strings.LastIndexByte(text, '\n')+1:]
	var words []string
	for _, line := range []string{text, last} {
		if len(line) > maxDigits {
			continue
		}
		for _, quoted := range []bool{false, true} {
			bare := strings.Trim(line, "*_`'\" \t.!")
			if quoted {
				bare = strings.Trim(label.ReplaceAllString(bare, ""), "*_`'\" \t.!:")
			}
			if bare != "" && (len(words) == 0 || words[len(words)-1] != bare) {
				words = append(words, bare)
			}
		}
	}
	return words
}
