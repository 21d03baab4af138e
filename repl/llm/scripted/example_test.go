package scripted_test

import (
	"context"
	"fmt"

	"github.com/rlmhq/rlm/repl/llm"
	"github.com/rlmhq/rlm/repl/llm/scripted"
)

// The first rule that matches answers.
func ExampleNew() {
	greeting, rest := "Hello, ${name}!", "Pardon?"
	model, err := scripted.New(
		scripted.Rule{When: scripted.When{Last: `My name is (?P<name>\w+)`}, Expand: &greeting},
		scripted.Rule{Reply: &rest},
	)
	if err != nil {
		fmt.Println(err)
		return
	}

	for _, text := range []string{"My name is Ada.", "What?"} {
		response, err := model.Complete(context.Background(), llm.Request{
			Messages: []llm.Message{{Role: llm.RoleUser, Content: text}},
		}, nil)
		fmt.Println(response.Text, err)
	}
	// Output:
	// Hello, Ada! <nil>
	// Pardon? <nil>
}
