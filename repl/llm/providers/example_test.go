package providers_test

import (
	"context"
	"fmt"

	"github.com/rlmhq/rlm/repl/llm"
	"github.com/rlmhq/rlm/repl/llm/providers"
)

// The part of a name before the slash selects the provider. Here it is a script, so no key is
// needed. A command would set Env to os.Getenv.
func Example() {
	models, err := providers.New(providers.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer models.Close()

	model, err := models.Resolve("scripted/testdata/greeting.yaml")
	if err != nil {
		fmt.Println(err)
		return
	}
	response, err := model.Provider.Complete(context.Background(), llm.Request{
		Model:    model.ID,
		Messages: []llm.Message{{Role: llm.RoleUser, Content: "My name is Ada."}},
	}, nil)
	if err != nil {
		fmt.Println(err)
		return
	}

	usd, known := model.Facts.Cost(response.Usage)
	fmt.Println(response.Text, response.Finish, usd, known)
	// Output: Hello, Ada! stop 0 true
}
