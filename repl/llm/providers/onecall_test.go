package providers_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/rlmhq/rlm/repl/llm"
	"github.com/rlmhq/rlm/repl/llm/providers"
)

// TestOneCallIsAskedForUntilItIsRefused checks that the reply has one call, however many the model
// makes.
func TestOneCallIsAskedForUntilItIsRefused(t *testing.T) {
	const (
		twoCalls = `{"choices":[{"message":{"tool_calls":[
			{"id":"a","function":{"name":"add","arguments":"{\"n\":1}"}},
			{"id":"b","function":{"name":"add","arguments":"{\"n\":2}"}}]},"finish_reason":"tool_calls"}]}`
		twoUses = `{"type":"message","role":"assistant","content":[{"type":"tool_use","id":"a","name":"add",
			"input":{"n":1}},{"type":"tool_use","id":"b","name":"add","input":{"n":2}}],"stop_reason":"tool_use"}`
	)
	for _, c := range []struct {
		model, address, member, reply, refusal string
	}{
		{
			"openai/m", "OPENAI_BASE_URL", `"parallel_tool_calls":false`, twoCalls,
			"parallel_tool_calls is not supported",
		},
		{
			"anthropic/m", "ANTHROPIC_BASE_URL",
			`"tool_choice":{"type":"auto","disable_parallel_tool_use":true}`, twoUses,
			"tool_choice.disable_parallel_tool_use: Extra inputs are not permitted",
		},
	} {
		for _, refuses := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/%v", c.model, refuses), func(t *testing.T) {
				var bodies []string
				server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					body, err := io.ReadAll(r.Body)
					if err != nil {
						t.Error(err)
					}
					bodies = append(bodies, string(body))
					if refuses && strings.Contains(string(body), c.member) {
						w.WriteHeader(http.StatusBadRequest)
						fmt.Fprintf(w, `{"error":{"message":%q}}`, c.refusal)
						return
					}
					fmt.Fprint(w, c.reply)
				}))
				defer server.Close()
				registry, err := providers.New(providers.Options{
					Env: env(c.address, server.URL, "OPENAI_API_KEY", "k", "ANTHROPIC_API_KEY", "k"), HTTP: quick,
				})
				if err != nil {
					t.Fatal(err)
				}
				defer registry.Close()
				model, err := registry.Resolve(c.model)
				if err != nil {
					t.Fatal(err)
				}

				request := llm.Request{
					Model: model.ID, Messages: []llm.Message{{Role: llm.RoleUser, Content: "hi"}}, OneCall: true,
					Tools: []json.RawMessage{json.RawMessage(`{"name":"add","parameters":{"type":"object"}}`)},
				}
				for range 2 {
					got, err := model.Provider.Complete(t.Context(), request, nil)
					if err != nil || strings.Count(got.Text, `"name"`) != 1 || !strings.Contains(got.Text, `\"n\":1`) {
						t.Errorf("got %q, %v", got.Text, err)
					}
				}
				want, kept := 2, ""
				if refuses {
					want, kept = 3, "requests do not ask for a single call: the first one counts"
				}
				if len(bodies) != want || !strings.Contains(bodies[0], c.member) ||
					strings.Contains(bodies[len(bodies)-1], c.member) == refuses ||
					!strings.Contains(bodies[len(bodies)-1], `"tools":[`) {
					t.Errorf("the requests are %q", bodies)
				}
				if got := learnedOf(t, model); got != kept {
					t.Errorf("it learned %q", got)
				}
			})
		}
	}
}
