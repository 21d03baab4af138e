package repl_test

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/rlmhq/rlm/repl"
	"github.com/rlmhq/rlm/tiers"
)

// A tool checks its arguments by a schema, which also binds the positional ones to names.
func ExampleNewTools() {
	tools, err := repl.NewTools(repl.Tool{
		Name: "price", Doc: "The price of an item.",
		Schema: json.RawMessage(`{
			"type": "object", "properties": {"item": {"type": "string"}}, "required": ["item"]
		}`),
		Call: func(_ context.Context, args map[string]tiers.Value) (tiers.Value, error) {
			return json.Marshal(map[string]any{"item": args["item"], "euros": 3})
		},
	})
	if err != nil {
		fmt.Println(err)
		return
	}

	for _, argument := range []string{`"tea"`, `["tea"]`} {
		value, err := tools.Call(context.Background(), tiers.Call{
			Function: "price", Args: []tiers.Value{tiers.Value(argument)},
		})
		fmt.Println(string(value), err)
	}
	// Output:
	// {"euros":3,"item":"tea"} <nil>
	//  price: the arguments do not match the schema: $.item: must be string, is array
}
