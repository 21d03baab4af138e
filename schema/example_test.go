package schema_test

import (
	"encoding/json"
	"fmt"

	"github.com/rlmhq/rlm/schema"
)

// A check coerces values with a single possible meaning, and names the path of every mistake.
func ExampleContract_Check() {
	contract, err := schema.Compile(json.RawMessage(`{
		"type": "object",
		"properties": {
			"title": {"type": "string"},
			"severity": {"enum": ["low", "high"]},
			"line": {"type": "integer", "minimum": 1}
		},
		"required": ["title", "severity"]
	}`))
	if err != nil {
		fmt.Println(err)
		return
	}

	for _, value := range []string{
		`{"title": "overflow", "severity": "HIGH", "line": "12"}`,
		`{"severity": "urgent", "line": 0}`,
	} {
		coerced, violations, err := contract.Check(json.RawMessage(value))
		if err != nil {
			fmt.Println(err)
			return
		}
		if len(violations) == 0 {
			fmt.Println(string(coerced))
		}
		for _, v := range violations {
			fmt.Println(v)
		}
	}
	// Output:
	// {"title":"overflow","severity":"high","line":12}
	// $.line: must be at least 1, is 0
	// $.severity: must be one of "low", "high", is "urgent"
	// $.title: is missing
}

// A model's reply may contain more than the value.
func ExampleContract_CheckReply() {
	contract, err := schema.Parse([]byte(`"list[int]"`))
	if err != nil {
		fmt.Println(err)
		return
	}

	value, violations, err := contract.CheckReply("These lines fail:\n```json\n[3, \"14\"]\n```\n")
	fmt.Println(string(value), violations, err)
	// Output: [3,14] [] <nil>
}

// A description of a contract is part of a prompt.
func ExampleContract_Describe() {
	_, output, err := schema.FromSignature(
		"question -> answer: str, score: float, sources: list[str]")
	if err != nil {
		fmt.Println(err)
		return
	}

	fmt.Println(output.Describe())
	// Output:
	// an object {
	//   "answer": str
	//   "score": number
	//   "sources": list of str
	// }
}
