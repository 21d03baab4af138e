package connect

import (
	"cmp"
	"encoding/json"
	"slices"

	"github.com/rlmhq/rlm"
	"github.com/rlmhq/rlm/inputs"
	"github.com/rlmhq/rlm/internal/snippet/jsonrpc"
)

// maxContexts is the maximum number of contexts in one request.
const maxContexts = 1000

// contextParams is a context: exactly one of Path, Paths, Text and Value is set.
type contextParams struct {
	Name  string       `json:"name,omitempty" jsonschema:"a further variable for snippets"`
	Path  string       `json:"path,omitempty" jsonschema:"a file, folder, archive or address"`
	Paths list[string] `json:"paths,omitempty"`
	Text  *string      `json:"text,omitempty"`
	Value jsonrpc.Raw  `json:"value,omitempty" jsonschema:"plain JSON"`
}

// makeContexts makes the contexts of a request.
func (s *server) makeContexts(list []contextParams) ([]rlm.Context, error) {
	if len(list) > maxContexts {
		return nil, invalid("%d contexts are more than %d", len(list), maxContexts)
	}

	var all []rlm.Context
	for i, c := range list {
		paths := c.Paths
		if c.Path != "" {
			paths = append(slices.Clone(paths), c.Path)
		}

		forms := 0
		for _, has := range []bool{c.Path != "", len(c.Paths) > 0, c.Text != nil, c.Value != nil} {
			if has {
				forms++
			}
		}

		var made rlm.Context
		name := cmp.Or(c.Name, "value")
		switch {
		case forms != 1:
			return nil, invalid("context %d: give one of path, paths, text and value", i)
		case len(paths) > 0 && !s.options.Files:
			return nil, invalid("context %d: this connection cannot read files of the server: send the text", i)
		case len(paths) > 0:
			made = inputs.Files(s.options.Inputs, paths...)
		case c.Text != nil:
			made = rlm.Text(cmp.Or(c.Name, "text"), *c.Text)
		default:
			made = rlm.Value(name, json.RawMessage(c.Value))
		}
		all = append(all, made.As(c.Name))
	}
	return all, nil
}

// keptContexts returns contexts for a named session, which stores them.
func keptContexts(list []contextParams) (all []KeptContext, err error) {
	if len(list) > maxContexts {
		return nil, invalid("%d contexts are more than %d", len(list), maxContexts)
	}
	for i, c := range list {
		switch {
		case c.Path != "" || len(c.Paths) > 0 || (c.Text == nil) == (c.Value == nil):
			return nil, invalid("context %d: give one of text and value to a session with a name", i)
		case c.Text != nil:
			all = append(all, KeptContext{Name: c.Name, Text: *c.Text})
		default:
			all = append(all, KeptContext{Name: c.Name, Text: string(c.Value), IsValue: true})
		}
	}
	return all, nil
}
