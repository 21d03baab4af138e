package server

import (
	"bufio"
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/rlmhq/rlm/repl/llm"
	"github.com/rlmhq/rlm/server/internal/access"
	"github.com/rlmhq/rlm/server/internal/records"
)

// saying returns a model that always answers with text, and records its requests.
func saying(text string, asked *[]llm.Request) llm.Provider {
	return llm.Func(func(r llm.Request) (llm.Response, error) {
		if asked != nil {
			*asked = append(*asked, r)
		}
		if r.Embed {
			return llm.Response{Text: "[[0.5,-1],[2,3]]", Usage: llm.Usage{InputTokens: 4}}, nil
		}
		return llm.Response{Text: text}, nil
	})
}

const respond = "/v1/responses"

// TestAReferenceStandsForAStoredItem sends the IDs of items, as AI SDKs do on the second turn.
func TestAReferenceStandsForAStoredItem(t *testing.T) {
	var asked []llm.Request
	s := start(t, t.TempDir(), saying("plain answer", &asked), nil)
	first := s.do("POST", respond, "", object{"model": "rlm/default", "input": "my question"})
	id := "msg_" + strings.TrimPrefix(s.text(first, "id"), "resp_")
	s.want(first, 200, `"id":"`+id+`"`)
	refer := func(input ...object) answer {
		return s.do("POST", respond, "", object{
			"model": "rlm/default", "input": append(input, object{"role": "user", "content": "and now?"}),
		})
	}
	input := "msg_0_" + s.text(first, "id")
	s.want(refer(object{"type": "item_reference", "id": input}, object{"id": id}), 200, `"status":"completed"`)

	last := asked[len(asked)-1].Messages
	if len(last) != 3 || last[0].Content != "my question" || last[1].Content != "plain answer" ||
		last[1].Role != llm.RoleAssistant {
		t.Errorf("the model reads %+v", last)
	}

	missing := refer(object{"type": "item_reference", "id": "msg_none"})
	s.want(missing, 404, `"message":"Item with id \"msg_none\" not found`)
	s.want(missing, 404, `"type":"invalid_request_error","param":"input[0]","code":"item_not_found"`)
	hidden := s.do("POST", respond, "", object{"model": "rlm/default", "input": "x", "store": false})
	secret := "msg_" + strings.TrimPrefix(s.text(hidden, "id"), "resp_")
	s.want(refer(object{"type": "item_reference", "id": secret}), 404, "not found")
}

// TestReferencesCountTowardsTheMemory sends a small body whose references stand for gigabytes of
// pictures.
func TestReferencesCountTowardsTheMemory(t *testing.T) {
	s := start(t, t.TempDir(), counting(t), nil)
	picture := "data:image/png;base64," + strings.Repeat("AAAA", 150_000)
	first := s.do("POST", respond, "", object{"model": "rlm/default", "input": []object{{
		"role": "user", "content": []object{{"type": "input_image", "image_url": picture}},
	}}})
	s.want(first, 200, `"status":"completed"`)
	input := []object{}
	for range 1_000 {
		input = append(input, object{"type": "item_reference", "id": "msg_0_" + s.text(first, "id")})
	}
	input = append(input, object{"role": "user", "content": "and now?"})
	s.want(s.do("POST", respond, "", object{"model": "rlm/default", "input": input}), 503, `"code":"busy"`)
}

// TestWordsAreAnAnswerBesideFunctions checks that a model may answer in prose although the client
// offers functions, and that a malformed call is no answer.
func TestWordsAreAnAnswerBesideFunctions(t *testing.T) {
	s := start(t, t.TempDir(), saying("It is sunny, no call needed.", nil), nil)
	body := chat("hi")
	body["tools"] = inChat
	s.want(s.do("POST", "/v1/chat/completions", "", body), 200, `"content":"It is sunny, no call needed."`)
	ask := object{"model": "rlm/default", "input": "hi", "tools": add}
	s.want(s.do("POST", respond, "", ask), 200, `"text":"It is sunny, no call needed."`)
	ask["tool_choice"] = "required"
	s.want(s.do("POST", respond, "", ask), 502, "contract_broken")

	s = start(t, t.TempDir(), saying(`{"calls": [{"name": "add", "arguments": {"a": `, nil), nil)
	s.want(s.do("POST", "/v1/chat/completions", "", body), 502, "contract_broken")
}

// TestSchemasOfFunctionsArePassedOn checks schemas that this server cannot read.
func TestSchemasOfFunctionsArePassedOn(t *testing.T) {
	for name, schema := range map[string]object{
		"look-ahead": {"type": "object", "properties": object{"p": object{"pattern": `^(?!\.).+$`}}},
		"draft2019":  {"$schema": "https://json-schema.org/draft/2019-09/schema", "type": "object"},
		"draft04":    {"type": "object", "properties": object{"a": object{"minimum": 0, "exclusiveMinimum": true}}},
		"broken":     {"type": 7, "note": "mark"},
	} {
		var asked []llm.Request
		call := `{"calls":[{"name":"ping","arguments":"{\"x\": 1}"}],"answer":""}`
		s := start(t, t.TempDir(), saying(call, &asked), nil)
		body := chat("hi")
		body["tools"] = []object{{"type": "function", "function": object{"name": "ping", "parameters": schema}}}
		s.want(s.do("POST", "/v1/chat/completions", "", body), 200, `"name":"ping","arguments":"{\"x\":1}"`)
		data, _ := json.Marshal(schema)
		if told := asked[0].Messages[0].Content; name == "broken" && !strings.Contains(told, string(data)) {
			t.Errorf("%s: the model reads %s", name, told)
		}

		want := `{"description":"","name":"ping","parameters":` + string(data) + `}`
		if tools := asked[0].Tools; len(tools) != 1 || string(tools[0]) != want {
			t.Errorf("%s: the model is offered %s, not %s", name, tools, want)
		}
	}
}

// TestCursorIsUnderstood sends the members of responses to chat completions.
func TestCursorIsUnderstood(t *testing.T) {
	s := start(t, t.TempDir(), saying(`{"calls":[],"answer":"fine"}`, nil), nil)
	body := object{
		"model": "rlm/default", "input": []object{{"role": "user", "content": "hi"}}, "max_output_tokens": 9.0,
		"tools": []object{
			{"type": "function", "name": "read", "parameters": object{"type": "object"}},
			{"type": "custom", "name": "ApplyPatch", "format": object{"type": "grammar", "definition": "start: x"}},
		},
	}
	s.want(s.do("POST", "/v1/chat/completions", "", body), 200, `"content":"fine"`)
	body["max_output_tokens"] = 9.5
	s.want(s.do("POST", "/v1/chat/completions", "", body), 400, "max_output_tokens")
}

// TestCustomToolsTakeText checks the three forms of custom tools.
func TestCustomToolsTakeText(t *testing.T) {
	var asked []llm.Request
	s := start(t, t.TempDir(), saying(`{"calls":[{"name":"patch","arguments":"*** Begin"}],"answer":""}`, &asked), nil)
	flat := object{"type": "custom", "name": "patch", "format": object{"type": "grammar", "definition": "start: x"}}
	body := chat("hi")
	body["tools"] = []object{{"type": "custom", "custom": object{"name": "patch"}}}
	s.want(s.do("POST", "/v1/chat/completions", "", body), 200,
		`"type":"custom","custom":{"name":"patch","input":"*** Begin"}`)
	body["tools"] = []object{flat} // as sent by Cursor, which expects functions
	s.want(s.do("POST", "/v1/chat/completions", "", body), 200, `"function":{"name":"patch","arguments":"*** Begin"}`)

	got := s.do("POST", respond, "", object{
		"model": "rlm/default", "input": "hi", "tools": []object{flat}, "stream": true,
	})
	s.want(got, 200, "response.custom_tool_call_input.done")
	s.want(got, 200, `"type":"custom_tool_call","status":"completed"`)
	s.want(got, 200, `"input":"*** Begin"`)
	if told := asked[len(asked)-1].Messages[0].Content; !strings.Contains(told, "start: x") {
		t.Errorf("the model does not read the grammar: %s", told)
	}
}

// TestTheFirstEventLeavesAtOnce checks that the first event and some comments arrive before the
// model replies.
func TestTheFirstEventLeavesAtOnce(t *testing.T) {
	thinking := newHeld(counting(t))
	s := start(t, t.TempDir(), thinking, nil)
	chatting := chat("wait")
	chatting["stream"] = true
	for path, body := range map[string]object{
		respond:                {"model": "rlm/default", "input": "wait", "stream": true},
		"/v1/chat/completions": chatting,
	} {
		data, _ := json.Marshal(body)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		r, err := http.NewRequestWithContext(ctx, http.MethodPost, s.web.URL+path, strings.NewReader(string(data)))
		if err != nil {
			t.Fatal(err)
		}
		got, err := s.web.Client().Do(r)
		if err != nil {
			t.Fatal(err)
		}

		lines := bufio.NewScanner(got.Body)
		find := func(prefix string) string {
			for lines.Scan() {
				if strings.HasPrefix(lines.Text(), prefix) {
					return lines.Text()
				}
			}
			return ""
		}
		first := find("data: ")
		if !strings.Contains(first, "response.created") && !strings.Contains(first, `"role":"assistant"`) {
			t.Errorf("%s begins with %q, %v", path, first, lines.Err())
		}
		if find(": ") == "" {
			t.Errorf("%s has no comment: %v", path, lines.Err())
		}
		cancel()
		_ = got.Body.Close()
	}
	close(thinking.release)
}

func TestPathsAreForgiving(t *testing.T) {
	s := start(t, t.TempDir(), counting(t), nil)
	for _, path := range []string{"/v1/chat/completions/", "/v1//chat/completions", "//v1/chat//completions//"} {
		s.want(s.do("POST", path, "", chat("hi")), 200, "Hello.")
	}
	s.want(s.do("GET", "/v1/models/", "", nil), 200, "rlm/default")
	for _, path := range []string{"/chat/completions", "/chat/completions/", "/v1/v1/chat/completions"} {
		s.want(s.do("POST", path, "", chat("hi")), 404,
			`{"error":{"message":"there is no POST `+path+`: did you mean /v1/chat/completions?`)
	}
	s.want(s.do("GET", "/runs", "", nil), 404, "did you mean /v1/runs?")
}

// TestADirectAnswerIsMadeOnceForAnIdempotencyKey checks both wires, with answers that are streamed
// or not, and stored or not.
func TestADirectAnswerIsMadeOnceForAnIdempotencyKey(t *testing.T) {
	var asked []llm.Request
	s := start(t, t.TempDir(), saying("Once.", &asked), nil)
	hidden := object{"model": "rlm/default", "input": "hi", "store": false}
	for i, c := range []struct {
		path string
		body object
	}{
		{"/v1/chat/completions", chat("hi")},
		{respond, object{"model": "rlm/default", "input": "hi"}},
		{respond, hidden},
		{respond, object{"model": "rlm/default", "input": "hi", "background": true}},
	} {
		word := "w" + jsonNumber(i)
		first := s.do("POST", c.path, "", c.body, "Idempotency-Key", word)
		second := s.do("POST", c.path, "", c.body, "Idempotency-Key", word)
		s.want(first, 200, "")
		if s.text(first, "id") != s.text(second, "id") || s.text(first, "id") == "" {
			t.Errorf("the answers differ:\n%s\n%s", first.body, second.body)
		}
		c.body["stream"] = true
		streamed := s.do("POST", c.path, "", c.body, "Idempotency-Key", word)
		s.want(streamed, 200, s.text(first, "id"))
		s.want(streamed, 200, "Once.")
		if len(asked) != i+1 {
			t.Errorf("the model was asked %d times, not %d", len(asked), i+1)
		}
		delete(c.body, "stream")
		c.body["temperature"] = 0.5
		s.want(s.do("POST", c.path, "", c.body, "Idempotency-Key", word), 422, "take a new one")
	}
	delete(hidden, "temperature")
	kept := s.text(s.do("POST", respond, "", hidden, "Idempotency-Key", "w2"), "id")
	s.want(s.do("GET", respond+"/"+kept, "", nil), 404, "no response")
}

// TestAFailedAnswerIsNotRepeated checks that, after a failure, the next request with the same
// Idempotency-Key asks the model again.
func TestAFailedAnswerIsNotRepeated(t *testing.T) {
	failed := false
	s := start(t, t.TempDir(), llm.Func(func(llm.Request) (llm.Response, error) {
		if !failed {
			failed = true
			return llm.Response{}, &llm.Error{Message: "broken"}
		}
		return llm.Response{Text: "Now."}, nil
	}), nil)
	s.want(s.do("POST", "/v1/chat/completions", "", chat("hi"), "Idempotency-Key", "w"), 502, "model_failed")
	s.want(s.do("POST", "/v1/chat/completions", "", chat("hi"), "Idempotency-Key", "w"), 200, "Now.")
}

// TestAConversationKeepsItsItems checks that a conversation keeps its items, including those of its
// responses.
func TestAConversationKeepsItsItems(t *testing.T) {
	var asked []llm.Request
	s := start(t, t.TempDir(), saying("plain answer", &asked), nil)
	made := s.do("POST", "/v1/conversations", "", object{
		"items":    []object{{"role": "user", "content": "one"}, {"role": "assistant", "content": "two"}},
		"metadata": object{"a": "b"},
	})
	s.want(made, 200, `"object":"conversation"`)
	path := "/v1/conversations/" + s.text(made, "id")
	got := s.do("POST", respond, "", object{
		"model": "rlm/default", "conversation": s.text(made, "id"), "input": "three",
	})
	s.want(got, 200, `"conversation":{"id":"conv_`)
	if n := len(asked[0].Messages); n != 3 {
		t.Errorf("the model reads %d messages: %+v", n, asked[0].Messages)
	}

	list := s.do("GET", path+"/items?order=asc", "", nil)
	items, _ := s.field(list, "data").([]any)
	var texts []string
	for _, one := range items {
		data, _ := json.Marshal(one)
		var item struct{ Content []struct{ Text string } }
		if err := json.Unmarshal(data, &item); err != nil || len(item.Content) != 1 {
			t.Fatalf("%v: %s", err, data)
		}
		texts = append(texts, item.Content[0].Text)
	}
	if strings.Join(texts, ",") != "one,two,three,plain answer" {
		t.Errorf("the conversation has %q", texts)
	}
	s.want(s.do("GET", path+"/items?limit=1", "", nil), 200, `"has_more":true`)

	last, _ := items[3].(object)
	first, _ := items[0].(object)
	s.want(s.do("GET", path+"/items?after="+last["id"].(string), "", nil), 200, `"text":"three"`)
	s.want(s.do("GET", path+"/items/"+last["id"].(string), "", nil), 200, "plain answer")
	s.want(s.do("DELETE", path+"/items/"+last["id"].(string), "", nil), 409, "delete the response")
	s.want(s.do("DELETE", path+"/items/"+first["id"].(string), "", nil), 200, `"object":"conversation"`)
	s.want(s.do("GET", path+"/items/"+first["id"].(string), "", nil), 404, "no item")
	more := object{"items": []object{{"role": "user", "content": "four"}}}
	s.want(s.do("POST", path+"/items", "", more), 200, `"text":"four"`)
	s.want(s.do("POST", path, "", object{"metadata": object{"c": "d"}}), 200, `"metadata":{"c":"d"}`)
	s.want(s.do("GET", path, "", nil), 200, `"metadata":{"c":"d"}`)
	s.want(s.do("DELETE", path, "", nil), 200, `"deleted":true`)
	s.want(s.do("GET", path+"/items", "", nil), 404, "no conversation")
	s.want(s.do("GET", respond+"/"+s.text(got, "id"), "", nil), 200, "plain answer")
}

func TestAQuotaCountsItemsOfConversations(t *testing.T) {
	s := start(t, t.TempDir(), saying("plain answer", nil), func(o *Options) { o.Open = false })
	key := s.key(access.Key{Name: "alice", Limits: access.Limits{Files: 3_000}})
	item := object{"items": []object{{"role": "user", "content": strings.Repeat("x", 1_000)}}}

	made := s.do("POST", "/v1/conversations", key, item)
	s.want(made, 200, `"object":"conversation"`)
	path := "/v1/conversations/" + s.text(made, "id")
	added := s.do("POST", path+"/items", key, item)
	s.want(added, 200, "xxx")
	s.want(s.do("POST", path+"/items", key, item), 413, "files, sessions and conversations")
	s.want(s.do("POST", "/v1/conversations", key, item), 413, "quota_used_up")

	s.want(s.do("DELETE", path+"/items/"+s.text(added, "first_id"), key, nil), 200, `"object":"conversation"`)
	s.want(s.do("POST", "/v1/conversations", key, item), 200, `"object":"conversation"`)
	s.want(s.do("POST", path+"/items", key, item), 413, "quota_used_up")
	s.want(s.do("DELETE", path, key, nil), 200, `"deleted":true`)
	s.want(s.do("POST", "/v1/conversations", key, item), 200, `"object":"conversation"`)
	if used, err := records.Used(t.Context(), s.server.db, "alice"); err != nil || used < 2_000 || used > 3_000 {
		t.Errorf("%d bytes are used: %v", used, err)
	}
}

func TestACompactionStandsForTheConversation(t *testing.T) {
	var asked []llm.Request
	s := start(t, t.TempDir(), saying("They agreed on seven.", &asked), nil)
	input := []object{{"role": "user", "content": "seven?"}, {"role": "assistant", "content": "yes"}}
	got := s.do("POST", "/v1/responses/compact", "", object{"model": "rlm/default", "input": input})
	s.want(got, 200, `"object":"response.compaction"`)
	s.want(got, 200, `"text":"seven?"`)

	output, _ := s.field(got, "output").([]any)
	next := object{"model": "rlm/default", "input": append(output, object{"role": "user", "content": "so?"})}
	s.want(s.do("POST", respond, "", next), 200, `"status":"completed"`)
	last := asked[len(asked)-1].Messages
	if len(last) != 3 || !strings.Contains(last[1].Content, "They agreed on seven.") {
		t.Errorf("the model reads %+v", last)
	}
	s.want(s.do("POST", respond, "", object{"model": "rlm/default", "input": []object{
		{"type": "compaction", "encrypted_content": "other"}, {"role": "user", "content": "so?"},
	}}), 400, "not one of this server")

	count := s.do("POST", "/v1/responses/input_tokens", "", object{"input": "one two three"})
	s.want(count, 200, `"object":"response.input_tokens"`)
	if n, _ := s.field(count, "input_tokens").(float64); n < 3 {
		t.Errorf("three words have %v tokens", n)
	}
}

func TestEmbeddingsArePassedOn(t *testing.T) {
	var asked []llm.Request
	s := start(t, t.TempDir(), saying("", &asked), nil)
	body := object{"model": "embed-3", "input": []string{"a", "b"}, "dimensions": 2}
	s.want(s.do("POST", "/v1/embeddings", "", body), 200, `{"object":"embedding","index":1,"embedding":[2,3]}`)
	if r := asked[0]; r.Model != "test/embed-3" || len(r.Messages) != 2 || string(r.ExtraBody) != `{"dimensions":2}` {
		t.Errorf("the provider is asked %+v", r)
	}

	body["encoding_format"] = "base64"
	s.want(s.do("POST", "/v1/embeddings", "", body), 200, `"embedding":"AAAAPwAAgL8="`)
	body["input"] = []int{1, 2}
	s.want(s.do("POST", "/v1/embeddings", "", body), 400, "no lists of tokens")
	body["input"], body["model"] = "a", "other/embed"
	s.want(s.do("POST", "/v1/embeddings", "", body), 404, "model_not_found")
}
