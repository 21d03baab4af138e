package anthropic

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/rlmhq/rlm/internal/text/problem"
	"github.com/rlmhq/rlm/server/internal/wire"
)

// FuzzRequests checks that any body becomes messages of known roles and types, or an error for the
// client.
func FuzzRequests(f *testing.F) {
	for _, seed := range []string{
		`{"model":"rlm/default","max_tokens":5,"messages":[{"role":"user","content":"hi"}]}`,
		`{"system":[{"type":"text","text":"a"}],"messages":[{"role":"assistant","content":[` +
			`{"type":"tool_use","id":"a","name":"b","input":{"c":[1]}},{"type":"thinking"}]},` +
			`{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","is_error":true,` +
			`"content":[{"type":"image","source":{"type":"base64"}}]}]}]}`,
		`{"messages":[{"role":"user","content":[{"type":"document","title":null,` +
			`"source":{"type":"content","content":[{"type":"text","text":"a"},{"type":"document"}]}},` +
			`{"type":"search_result","source":1,"content":"x"}]}]}`,
		`{"tools":[{"name":"a","input_schema":{}},{"type":"code_execution_20250825"}],"tool_choice":{"type":"any"}}`,
		`{"metadata":{"user_id":null},"output_config":{"format":{"type":"json_schema","schema":{}}},"system":null}`,
		`{"messages":[{"role":"user","content":{"type":"text"}}]}`, `[]`, `null`, ``,
		strings.Repeat(`{"content":[`, 9_000),
	} {
		f.Add(seed)
	}

	f.Fuzz(func(t *testing.T, body string) {
		var q request
		err := wire.ReadDeepJSON(httptest.NewRequest(http.MethodPost, Path, strings.NewReader(body)), &q, valuesDepth)
		if err == nil {
			got, failed := q.chat()
			if err = failed; err == nil {
				for i := range got.Messages {
					switch m := &got.Messages[i]; m.Role {
					case "system", "user", "assistant":
					case "tool":
						if m.ToolCallID == "" {
							t.Errorf("%q has a result without a call", body)
						}
					default:
						t.Errorf("%q has the role %q", body, m.Role)
					}
				}
			}
		}

		var known *problem.Error
		if err != nil && (!errors.As(err, &known) || known.Status >= 500) {
			t.Errorf("%q fails with %v, which is not for a client", body, err)
		}
	})
}
