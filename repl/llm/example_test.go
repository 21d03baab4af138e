package llm_test

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/rlmhq/rlm/repl/llm"
)

// A function can be a provider. Func fills in the fields of the response that the function leaves
// empty.
func ExampleFunc() {
	echo := llm.Func(func(r llm.Request) (llm.Response, error) {
		last := r.Messages[len(r.Messages)-1].Content
		if len(last) > 1000 {
			return llm.Response{}, &llm.Error{Kind: llm.ErrContextLength, Model: r.Model}
		}
		return llm.Response{Text: "You said: " + last}, nil
	})

	for _, text := range []string{"hello", strings.Repeat("hello ", 1000)} {
		response, err := echo.Complete(context.Background(), llm.Request{
			Model:    "echo-1",
			Messages: []llm.Message{{Role: llm.RoleUser, Content: text}},
		}, nil)
		if errors.Is(err, llm.ErrContextLength) {
			fmt.Println("too long:", err)
			continue
		}
		fmt.Println(response.Text, response.Model, response.Finish, response.Usage.OutputTokens)
	}
	// Output:
	// You said: hello echo-1 stop 4
	// too long: cannot ask model "echo-1": prompt too long
}

// Each part of a usage has its own price.
func ExampleFacts_Cost() {
	cached := 0.1
	facts := llm.Facts{Price: &llm.Price{Input: 1, Output: 5, Cached: &cached}}

	usd, known := facts.Cost(llm.Usage{
		InputTokens: 1_000_000, CachedTokens: 500_000, OutputTokens: 10_000,
	})
	fmt.Printf("%.2f %v\n", usd, known)

	_, known = llm.Facts{}.Cost(llm.Usage{InputTokens: 1})
	fmt.Println(known)
	// Output:
	// 0.60 true
	// false
}
