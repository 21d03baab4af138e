package viewer

import (
	"fmt"
	"strconv"
	"strings"
)

// nodeText is a text with the number of its node.
type nodeText struct {
	Text

	Node int `json:"node"`
	// IsCut means that only the beginning of the text is included.
	IsCut bool `json:"cut,omitempty"`
}

// textsOf returns the texts of the nodes whose numbers a browser has sent. The first node, which
// the reader has chosen, must exist, and its texts are complete. Other nodes may no longer exist,
// because a run that has not ended changes.
func textsOf(run *Run, numbers []string) ([]nodeText, error) {
	if len(numbers) == 0 || len(numbers) > maxParts {
		return nil, fmt.Errorf("%w: give 1 to %d nodes", ErrNotFound, maxParts)
	}

	all := []nodeText{}
	for i, number := range numbers {
		node, err := strconv.Atoi(number)
		isThere := err == nil && node >= 0 && node < len(run.Nodes)
		if !isThere && i == 0 {
			return nil, fmt.Errorf("%w: it has no node %.20q", ErrNotFound, number)
		}
		if !isThere {
			continue
		}

		for _, text := range run.Texts[node] {
			t := nodeText{Text: text, Node: node}
			if i > 0 && len(text.Text) > maxPart {
				t.Text.Text, t.IsCut = strings.ToValidUTF8(text.Text[:maxPart], ""), true
			}
			all = append(all, t)
		}
	}
	return all, nil
}
