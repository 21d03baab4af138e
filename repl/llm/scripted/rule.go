package scripted

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/rlmhq/rlm/repl/llm"
)

// prepare checks a rule and compiles its expressions.
func (rule *Rule) prepare() error {
	answers := 0
	for _, has := range []bool{rule.Reply != nil, rule.Expand != nil, rule.Error != nil, rule.Do != nil} {
		if has {
			answers++
		}
	}
	switch {
	case answers != 1:
		return errors.New("it needs one of reply, expand and error")
	case rule.Error != nil && !rule.Error.Kind.Known():
		return fmt.Errorf("there is no kind of error %q", string(rule.Error.Kind))
	case rule.Delay < 0 || rule.Delay > maxDelay:
		return fmt.Errorf("a delay of %s is not between 0 and %s", rule.Delay, maxDelay)
	case rule.Usage != nil && !rule.Usage.Plausible():
		return fmt.Errorf("its usage cannot be: %+v", *rule.Usage)
	}
	for _, e := range []struct {
		text string
		to   **regexp.Regexp
	}{{rule.When.Last, &rule.last}, {rule.When.System, &rule.system}, {rule.When.Any, &rule.any}} {
		if e.text == "" {
			continue
		}
		compiled, err := regexp.Compile(e.text)
		if err != nil {
			return err
		}
		*e.to = compiled
	}
	return rule.checkNames()
}

// checkNames looks for names in the text to expand that nothing gives.
func (rule *Rule) checkNames() error {
	if rule.Expand == nil {
		return nil
	}
	known := map[string]bool{}
	for name := range builtin(llm.Request{Messages: []llm.Message{{}}}) {
		known[name] = true
	}
	for _, e := range []*regexp.Regexp{rule.last, rule.system, rule.any} {
		if e != nil {
			for _, name := range e.SubexpNames() {
				known[name] = true
			}
		}
	}
	for _, found := range placeholder.FindAllStringSubmatch(*rule.Expand, -1) {
		if !known[found[2]] {
			return fmt.Errorf("nothing gives ${%s}: name a group of an expression like that, as in (?P<%s>…)", found[2], found[2])
		}
	}
	return nil
}

// builtin returns the names that every text to expand can use.
func builtin(r llm.Request) map[string]string {
	return map[string]string{
		"last":    r.Messages[len(r.Messages)-1].Content,
		"model":   r.Model,
		"purpose": r.Metadata.Purpose,
		"depth":   strconv.Itoa(r.Metadata.Depth),
		"turn":    strconv.Itoa(r.Metadata.Turn),
		"slot":    strconv.Itoa(r.Metadata.Slot),
		"said":    strconv.Itoa(said(r)),
	}
}

// said counts the model's own replies in a conversation.
func said(r llm.Request) int {
	n := 0
	for _, m := range r.Messages {
		if m.Role == llm.RoleAssistant {
			n++
		}
	}
	return n
}

// fits reports whether a rule answers a request, and what its names stand for.
func (rule *Rule) fits(r llm.Request) (names map[string]string, ok bool) {
	w := rule.When
	if w.Purpose != "" && w.Purpose != r.Metadata.Purpose || w.Model != "" && w.Model != r.Model {
		return nil, false
	}
	if w.Schema != nil && *w.Schema != (r.Schema != nil) {
		return nil, false
	}
	for _, number := range []struct {
		want *int
		is   int
	}{{w.Depth, r.Metadata.Depth}, {w.Turn, r.Metadata.Turn}, {w.Slot, r.Metadata.Slot}, {w.Said, said(r)}} {
		if number.want != nil && *number.want != number.is {
			return nil, false
		}
	}
	names = builtin(r)
	ok = found(rule.last, r.Messages[len(r.Messages)-1:], "", names) &&
		found(rule.system, r.Messages, llm.RoleSystem, names) && found(rule.any, r.Messages, "", names)
	return names, ok
}

// found looks for an expression in the messages of a role, or of all roles, and
// notes what its named groups are.
func found(e *regexp.Regexp, messages []llm.Message, role llm.Role, names map[string]string) bool {
	if e == nil {
		return true
	}
	for _, m := range messages {
		if role != "" && m.Role != role {
			continue
		}
		if groups := e.FindStringSubmatch(m.Content); groups != nil {
			for i, name := range e.SubexpNames() {
				if name != "" {
					names[name] = groups[i]
				}
			}
			return true
		}
	}
	return false
}

// placeholder is a name in a text to expand: ${name}, or ${json:name} for the
// value as a JSON string, which is a string in Python too.
var placeholder = regexp.MustCompile(`\$\{(json:)?(\w+)\}`)

// expand replaces the names in a text.
func expand(text string, names map[string]string) (string, error) {
	var out strings.Builder
	end := 0
	for _, at := range placeholder.FindAllStringSubmatchIndex(text, -1) {
		value := names[text[at[4]:at[5]]]
		if at[2] >= 0 {
			quoted, err := json.Marshal(value)
			if err != nil {
				return "", err
			}
			value = string(quoted)
		}
		out.WriteString(text[end:at[0]])
		out.WriteString(value)
		end = at[1]
		if out.Len() > maxReply {
			return "", fmt.Errorf("the reply has more than %d bytes", maxReply)
		}
	}
	out.WriteString(text[end:])
	return out.String(), nil
}
