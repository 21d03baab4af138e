package distill

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/rlmhq/rlm/internal/text/texts"
	"github.com/rlmhq/rlm/schema"
)

// Bounds of an edit from a model, in characters.
const (
	longestComponent = 200
	longestText      = 2_000
)

// editsContract accepts any answer that might contain edits.
var editsContract = sync.OnceValues(func() (*schema.Contract, error) {
	return schema.Compile(json.RawMessage(`{"type": ["array", "object"]}`))
})

// readEdits reads the edits in a model's answer. It repairs unambiguous deviations: a list inside
// an object, one edit without a list, words for numbers, other spellings. The problems name the
// omitted edits. The error explains why no edit could be read.
func readEdits(
	answer json.RawMessage, clusters []FailureCluster,
) (edits []ComponentEdit, problems []string, err error) {
	items, err := listItems(answer)
	if err != nil {
		return nil, nil, err
	}
	left := ""
	for i, item := range items[:min(len(items), mostEdits)] {
		edit, err := readEdit(item, clusters)
		if err != nil {
			left = fmt.Sprintf("edit %d %v", i+1, err)
			problems = append(problems, left+", so it is left out")
			continue
		}
		edits = append(edits, edit)
	}

	switch {
	case len(items) > 0 && len(edits) == 0:
		return nil, nil, errors.New(left)
	case len(items) > mostEdits:
		problems = append(problems, fmt.Sprintf(
			"the model proposed %d edits, of which the first %d are kept", len(items), mostEdits,
		))
	}
	return edits, problems, nil
}

// listItems returns the items of the list in an answer.
func listItems(answer json.RawMessage) ([]json.RawMessage, error) {
	contract, err := editsContract()
	if err != nil {
		return nil, err
	}
	value, violations, err := contract.CheckReply(texts.Show(answer))
	if err == nil && len(violations) > 0 {
		err = errors.New(violations[0].String())
	}
	if err != nil {
		return nil, err
	}

	if object := asObject(value); object != nil {
		for _, name := range []string{"edits", "component_edits", "proposals", "items", "result"} {
			if inner := object[name]; len(inner) > 0 && inner[0] == '[' {
				value = inner
				break
			}
		}
	}
	var items []json.RawMessage
	if json.Unmarshal(value, &items) != nil {
		items = []json.RawMessage{value}
	}
	return items, nil
}

// readEdit reads one edit.
func readEdit(item json.RawMessage, clusters []FailureCluster) (ComponentEdit, error) {
	members := asObject(item)
	if members == nil {
		return ComponentEdit{}, errors.New("is not an object")
	}
	text := func(most int, names ...string) string {
		return texts.Truncate(firstMember(members, names...), most)
	}
	e := ComponentEdit{
		Component:  text(longestComponent, "component", "target", "tool"),
		Kind:       pickWord(text(100, "kind", "type"), kinds, "other"),
		Change:     text(longestText, "change", "edit", "description", "proposal"),
		Rationale:  text(longestText, "rationale", "reason", "why"),
		Prediction: text(longestText, "prediction", "expected", "expected_effect"),
		Effort:     pickWord(text(100, "effort"), efforts, "medium"),
		Impact:     readShare(text(100, "impact")),
		Clusters:   readClusters(members, clusters),
	}

	switch {
	case e.Component == "":
		return e, errors.New(`has no "component"`)
	case e.Change == "":
		return e, errors.New(`has no "change"`)
	case len(e.Clusters) == 0:
		return e, errors.New("names no cluster of the evidence")
	}
	return e, nil
}

// otherWords maps further words to kinds and efforts.
var otherWords = map[string]string{
	"low": "small", "minor": "small", "high": "large", "major": "large", "prompt": "system_prompt",
	"tool": "tool_code", "config": "configuration", "subagent": "sub_agent",
}

// pickWord returns the word in a list to which text corresponds, or a default.
func pickWord(text string, words []string, other string) string {
	text = strings.NewReplacer(" ", "_", "-", "_").Replace(strings.ToLower(strings.TrimSpace(text)))
	if meant := otherWords[text]; meant != "" {
		text = meant
	}
	if slices.Contains(words, text) {
		return text
	}
	return other
}

// readShare reads a share from 0 to 1: a number, a number above 1 in percent, or a string with such
// a number.
func readShare(text string) float64 {
	digits, percent := strings.CutSuffix(strings.TrimSpace(text), "%")
	share, err := strconv.ParseFloat(strings.TrimSpace(digits), 64)
	if err != nil || share != share {
		return 0
	}
	if percent || share > 1 {
		share /= 100
	}
	return min(max(share, 0), 1)
}

// readClusters returns the names of the clusters that an edit names: verbatim, in different
// case, without the final full stop, or by number from 1.
func readClusters(members map[string]json.RawMessage, clusters []FailureCluster) []string {
	var given []json.RawMessage
	value := members["clusters"]
	if len(value) == 0 {
		value = members["cluster"]
	}
	if json.Unmarshal(value, &given) != nil && len(value) > 0 {
		given = []json.RawMessage{value}
	}

	var names []string
	plain := func(name string) string {
		return strings.ToLower(strings.Trim(strings.TrimSpace(name), ".…"))
	}
	for _, entry := range given {
		name := texts.Show(entry)
		number, err := strconv.Atoi(strings.TrimPrefix(plain(name), "cluster "))
		for i := range clusters {
			if plain(clusters[i].Name) == plain(name) || err == nil && number == i+1 {
				names = append(names, clusters[i].Name)
				break
			}
		}
	}
	return names
}
