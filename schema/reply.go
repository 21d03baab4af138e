package schema

import (
	"bytes"
	"encoding/json"
	"regexp"
	"slices"
	"strings"

	"github.com/rlmhq/rlm/internal/text/lazyregexp"
	"github.com/rlmhq/rlm/internal/text/texts"
)

const (
	maxCandidates = 16      // values tried in one reply
	maxScan       = 8 << 20 // bytes searched for values
)

// CheckReply finds the value in the text of a model's reply and checks it.
//
// If the contract admits strings but no arrays or objects, the value is the whole reply. Otherwise
// it is the first of the following that meets the contract: the whole reply as JSON; the last
// fenced block, then the previous one; the last JSON object or array in the prose; and for a bool,
// a number or an enumeration also the reply or its last line as plain words ("Answer: yes."). The
// following have no value: prose with several different valid values, code that continues to use
// its values, and a fenced block that later prose contradicts. An object with a single member
// called value, answer or result stands for that member if the contract does not require an object.
// JSON with typical slips of models, such as comments or Python's True and None, is repaired if it
// has only one meaning. The contract's own document is not a value.
//
// If no candidate meets the contract, the violations are those of the first candidate. Without any
// candidate, a single violation reports that.
func (c *Contract) CheckReply(
	text string,
) (coerced json.RawMessage, violations []Violation, err error) {
	values, violations, err := c.checkReply(text, 1)
	if len(values) == 0 {
		return nil, violations, err
	}
	return values[0], nil, nil
}

// CheckReplyAll is [Contract.CheckReply] but returns every value in the reply that meets the
// contract, the likeliest first. The same value may appear twice. It is for callers that must find
// out whether a model quotes a value that is not its own. A reply with too many values is a
// violation.
func (c *Contract) CheckReplyAll(
	text string,
) (values []json.RawMessage, violations []Violation, err error) {
	return c.checkReply(text, maxCandidates)
}

// checkReply returns the first values of a reply that meet the contract, at most limit, or
// otherwise the violations of the reply.
func (c *Contract) checkReply(
	text string, limit int,
) (values []json.RawMessage, violations []Violation, err error) {
	if len(text) > valueBounds.bytes {
		_, err := decode([]byte(text), valueBounds)
		return nil, violationOf(err), nil
	}

	text = strings.TrimSpace(texts.DropThoughts(strings.ToValidUTF8(text, "\uFFFD")))
	candidates := c.findCandidates(text)
	if limit > 1 && len(candidates.found) == maxCandidates {
		return nil, wholeViolation(
			"the reply has too many JSON values in it: answer with one alone"), nil
	}

	left := allWork
	for i, candidate := range candidates.found {
		checked, wrong, err := c.check(candidate, &left)
		if err != nil {
			return nil, nil, err
		}
		if c.isDocument(candidate) {
			wrong = wholeViolation("the reply repeats the schema: answer with a value that meets it")
		}
		if len(wrong) > 0 {
			if i == 0 {
				violations = wrong
			}
			continue
		}
		if values = append(values, checked.appendJSON(nil)); len(values) == limit {
			if limit > 1 {
				break
			}
			isAmbiguous, err := c.isOneOfSeveral(values[0], candidates, i, &left)
			if err != nil {
				return nil, nil, err
			}
			if isAmbiguous {
				return nil, wholeViolation("the reply has several values in its text: answer with one alone"), nil
			}
			break
		}
	}

	switch {
	case values != nil:
		return values, nil, nil
	case violations == nil:
		violations = wholeViolation(
			"the reply has no JSON value in it: answer with the value alone")
	}
	return nil, violations, nil
}

// isDocument reports whether a value is the contract's document or has its properties, as happens
// if a model repeats the schema instead of filling it in.
func (c *Contract) isDocument(value *node) bool {
	if value.kind != objectKind || c.document.kind != objectKind || len(c.document.keys) == 0 {
		return false
	}
	properties := c.document.member("properties")
	if properties != nil && properties.member("properties") != nil {
		return false // the contract describes schemas
	}
	given := value.member("properties")
	return value.equals(c.document) || properties != nil && given != nil && given.equals(properties)
}

// isOneOfSeveral reports whether there is another value that meets the contract next to the
// candidate at a position: in the prose, or after the last fence if the candidate is from a block.
func (c *Contract) isOneOfSeveral(
	value json.RawMessage, k candidates, at int, left *int,
) (bool, error) {
	for i := at + 1; i < len(k.found); i++ {
		if k.places[i] == 0 || k.places[i] == k.places[i-1] || k.places[i] == k.places[at] {
			continue
		}
		if k.places[at] == 0 && k.places[i] > k.behind {
			continue
		}
		other, wrong, err := c.check(k.found[i], left)
		if err != nil {
			return false, err
		}
		if len(wrong) == 0 && !bytes.Equal(other.appendJSON(nil), value) {
			return true, nil
		}
	}
	return false, nil
}

// wholeViolation returns a violation of a whole reply.
func wholeViolation(message string) []Violation {
	return []Violation{{Path: formatPath(nil), Message: message}}
}

// candidates are the values that a reply may mean, the likeliest first.
type candidates struct {
	wants typeSet
	found []*node
	// places numbers the candidates in the prose, from 1. It is 0 for all other candidates.
	places []int
	place  int
	behind int // the last place of a candidate after the last fence
}

// findCandidates returns the values that a reply may mean.
func (c *Contract) findCandidates(text string) candidates {
	k := candidates{wants: c.root.admitted}
	k.addJSON(text)
	isWhole := len(k.found) > 0
	if k.wants == wantsString && len(k.found) == 0 {
		k.add(newText(text))
	}

	blocks := findFences(text)
	for _, block := range blocks {
		k.addJSON(block)
	}
	if k.wants.has(wantsObject|wantsArray) || strings.ContainsRune(text, '{') {
		for i, n := range findEmbedded(codeFence.ReplaceAllString(text, "\n")) {
			k.place = i + 1
			k.add(n)
		}
		k.place = 0
		if len(blocks) > 0 && !isWhole {
			fence := max(strings.LastIndex(text, "```"), strings.LastIndex(text, "~~~"))
			k.behind = len(findEmbedded(text[fence:]))
		}
	}

	if k.wants.has(everyType &^ (wantsObject | wantsArray)) {
		for _, words := range findPlainWords(text) {
			k.add(newText(words))
		}
		if k.wants.has(wantsString) && c.root.enum == nil && c.root.constant == nil {
			k.add(newText(text))
		}
	}
	return k
}

// codeFence matches a fenced block of code in a language. Values in such a block are not values of
// the reply.
var codeFence = lazyregexp.New("(?is)(?:^|\n)[ \t]*(?:```+|~~~+)[ \t]*" +
	"(?:repl|python3?|py|ipython|tool_code|go|golang|javascript|js|typescript|ts|" +
	"bash|sh|shell|sql|r|ruby|java|c|cpp|rust)\\b[^\n]*\n.*?" +
	"(?:\n[ \t]*(?:```+|~~~+)[ \t]*(?:\n|$)|$)")

// addJSON adds the value of a text that is JSON or almost JSON.
func (k *candidates) addJSON(text string) {
	n, err := decode([]byte(text), valueBounds)
	if err != nil && text != "" && strings.IndexByte("{[", text[0]) >= 0 {
		repaired, length, ok := repairJSON(text)
		if ok && strings.TrimSpace(text[length:]) == "" {
			n, err = decode([]byte(repaired), valueBounds)
		}
	}
	if err == nil {
		k.add(n)
	}
}

// add adds a value. If the value is wrapped, it adds the inner value too, and the outer one only
// if an object is required.
func (k *candidates) add(n *node) {
	if len(k.found) == maxCandidates {
		return
	}
	inner := unwrapValue(n)
	if inner == n || k.wants.has(wantsObject) {
		k.found, k.places = append(k.found, n), append(k.places, k.place)
	}
	if inner != n {
		k.found, k.places = append(k.found, inner), append(k.places, k.place)
	}
}

// wrapper is the name under which [Contract.Strict] wraps a value that is not an object.
const wrapper = "value"

// unwrapValue returns the only member of an object if its name identifies it as the value,
// otherwise the object.
func unwrapValue(n *node) *node {
	if n.kind == objectKind && len(n.keys) == 1 {
		switch strings.ToLower(n.keys[0]) {
		case wrapper, "answer", "result":
			return n.kids[0]
		}
	}
	return n
}

// findFences returns the contents of the last fenced blocks, beginning with the very last. A block
// ends at the next line that is only a fence.
func findFences(text string) []string {
	var blocks []string
	begin, at := -1, 0 // positions of the open block and of the line
	for line := range strings.Lines(text) {
		bare := strings.Trim(line, " \t\r\n")
		switch {
		case begin < 0 && (strings.HasPrefix(bare, "```") || strings.HasPrefix(bare, "~~~")):
			begin = at + len(line)
		case begin >= 0 && (bare == "```" || bare == "~~~"):
			blocks = appendLast(blocks, strings.TrimSpace(text[begin:at]))
			begin = -1
		}
		at += len(line)
	}
	slices.Reverse(blocks)
	return blocks
}

// appendLast appends an item and drops the first one beyond maxCandidates.
func appendLast[T any](items []T, item T) []T {
	items = append(items, item)
	if len(items) > maxCandidates {
		return items[1:]
	}
	return items
}

// findEmbedded returns the objects and arrays in a text, beginning with the last. It tries each
// bracket that is not inside a value found earlier. If it has to read more than maxScan bytes, it
// returns none, because the last value is then unknown.
func findEmbedded(text string) []*node {
	var found []embedded
	scanned := 0
	for at := 0; at < len(text); at++ {
		step := strings.IndexAny(text[at:], "{[")
		if step < 0 {
			break
		}
		if at += step; scanned >= maxScan {
			return nil
		}

		rest := strings.NewReader(text[at:])
		var raw json.RawMessage
		err := json.NewDecoder(rest).Decode(&raw)
		length := len(raw)
		scanned += len(text) - at - rest.Len()
		if err != nil {
			repaired, end, ok := repairJSON(text[at:])
			scanned += end
			if !ok {
				continue
			}
			raw, length = json.RawMessage(repaired), end
		}
		if n, err := decode(raw, valueBounds); err == nil {
			found = appendLast(found, embedded{n, at, at + length})
		}
		at += length - 1
	}

	var values []*node
	for _, e := range slices.Backward(found) {
		if !e.isUsed(text) {
			values = append(values, e.node)
		}
	}
	return values
}

// embedded is a value and its position in a text.
type embedded struct {
	*node
	begin, end int
}

// assigned matches the text before a value that code assigns to a name.
var assigned = lazyregexp.New(`([A-Za-z_]\w*)[ \t]*=[ \t]*$`)

// maxName bounds the name of a value in code, in bytes.
const maxName = 100

// isUsed reports whether a text is code that assigns the value to a name and continues to use
// it.
func (e embedded) isUsed(text string) bool {
	name := assigned.FindStringSubmatch(text[max(0, e.begin-maxName):e.begin])
	return len(name) == 2 && regexp.MustCompile(`\b`+name[1]+`\b`).MatchString(text[e.end:])
}

// label matches the words that models write before an answer.
var label = lazyregexp.New(
	`(?i)^(the )?(final )?(answer|result|value|verdict)( is)?\s*[:=]?\s*`,
)

// findPlainWords returns a reply and its last line, each with and without the preceding label,
// and without surrounding decoration.
func findPlainWords(text string) []string {
	last := text[strings.LastIndexByte(text, '\n')+1:]
	var words []string
	for _, line := range []string{text, last} {
		if len(line) > maxDigits {
			continue
		}
		bare := strings.Trim(line, "*_`'\" \t.!")
		unlabelled := strings.Trim(label.ReplaceAllString(bare, ""), "*_`'\" \t.!:")
		for _, word := range []string{bare, unlabelled} {
			if word != "" && (len(words) == 0 || words[len(words)-1] != word) {
				words = append(words, word)
			}
		}
	}
	return words
}
