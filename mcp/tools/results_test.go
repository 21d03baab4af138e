package tools

import (
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// TestAWrappedResultIsOpened checks the results of the official SDK for Python, of FastMCP, and of
// tools whose own object has a single member "result".
func TestAWrappedResultIsOpened(t *testing.T) {
	schemaOf := func(title string, members ...string) map[string]any {
		properties := map[string]any{}
		for _, name := range members {
			properties[name] = map[string]any{"type": "integer"}
		}
		return map[string]any{"type": "object", "title": title, "properties": properties}
	}
	marked := schemaOf("", "result")
	marked["x-fastmcp-wrap-result"] = true

	five := map[string]any{"result": 5.0}
	list := map[string]any{"result": []any{"a", "b"}}
	two := map[string]any{"result": 5.0, "x": 1.0}
	for name, c := range map[string]struct {
		schema     any
		structured any
		text       string
		want       string
	}{
		"a number":             {schemaOf("addOutput", "result"), five, "5", "5"},
		"nothing":              {schemaOf("addOutput", "result"), map[string]any{"result": nil}, "", "null"},
		"a list":               {schemaOf("namesOutput", "result"), list, "a\nb", `["a","b"]`},
		"marked":               {marked, five, "5", "5"},
		"the tool's own":       {schemaOf("TotalOutput", "result"), five, "{\n  \"result\": 5\n}", `{"result":5}`},
		"without a title":      {schemaOf("", "result"), five, "5", `{"result":5}`},
		"with another member":  {schemaOf("addOutput", "result", "unit"), five, "5", `{"result":5}`},
		"with more than it is": {schemaOf("addOutput", "result"), two, "5", `{"result":5,"x":1}`},
		"without a schema":     {nil, five, "5", `{"result":5}`},
	} {
		t.Run(name, func(t *testing.T) {
			result := &mcp.CallToolResult{StructuredContent: c.structured}
			if c.text != "" {
				result.Content = []mcp.Content{&mcp.TextContent{Text: c.text}}
			}
			got, err := openResult(result, wrapsResult(c.schema))
			if err != nil || string(got) != c.want {
				t.Errorf("%s %v, want %s", got, err, c.want)
			}
		})
	}
}
