package server

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/rlmhq/rlm/repl/llm"
	"github.com/rlmhq/rlm/repl/llm/scripted"
	"github.com/rlmhq/rlm/server/internal/access"
)

// ask returns the body of a message request. Changes alternate names and values of additional
// members.
func ask(content any, changes ...any) object {
	body := object{
		"model": "rlm/default", "max_tokens": 100, "messages": []object{{"role": "user", "content": content}},
	}
	for i := 0; i+1 < len(changes); i += 2 {
		name, _ := changes[i].(string)
		body[name] = changes[i+1]
	}
	return body
}

const messages = "/v1/messages"

// adder is the tool add in Anthropic's format.
var adder = []object{{"name": "add", "description": "Adds.", "input_schema": add[0]["parameters"]}}

func TestAMessageIsAnsweredDirectly(t *testing.T) {
	s := start(t, t.TempDir(), counting(t), nil)
	got := s.do("POST", messages, "", ask("hi", "system", "Be kind.", "metadata", object{"user_id": nil}),
		"anthropic-version", "2023-06-01", "anthropic-beta", "any-2030-01-01")
	s.want(got, 200, `"type":"message","role":"assistant","model":"rlm/default",`+
		`"content":[{"text":"Hello.","type":"text"}],"stop_reason":"end_turn","stop_sequence":null`)
	if n, _ := s.field(got, "usage", "input_tokens").(float64); n == 0 {
		t.Errorf("the answer has no usage: %s", got.body)
	}
	if !strings.HasPrefix(s.text(got, "id"), "msg_") || got.header.Get("Request-Id") == "" {
		t.Errorf("the answer or the request has no ID: %s", got.body)
	}
	s.want(s.do("GET", "/v1/models", "", nil), 200, `"display_name":"rlm/default"`)
}

func TestALongMessageOfAnthropicsClientsBecomesARun(t *testing.T) {
	s := start(t, t.TempDir(), counting(t), nil)
	long := []object{
		{"type": "text", "text": hay, "cache_control": object{"type": "ephemeral"}},
		{"type": "text", "text": "how many?"},
	}
	got := s.do("POST", messages, "", ask(long))
	s.want(got, 200, `{"text":"200","type":"text"}`)
	if s.text(got, "rlm", "run") == "" {
		t.Errorf("no run answers: %s", got.body)
	}

	for _, source := range []object{
		{"type": "base64", "media_type": "text/plain", "data": "bmVlZGxlIG5lZWRsZQ=="},
		{"type": "file", "file_id": s.upload("", "needle needle")},
	} {
		got = s.do("POST", messages, "", ask([]object{
			{"type": "document", "title": "a.txt", "source": source}, {"type": "text", "text": "how many?"},
		}))
		s.want(got, 200, `{"text":"2","type":"text"}`)
	}
	sandbox := []object{{"type": "code_execution_20250825", "name": "code_execution"}}
	// The scripted model asks about a context, which this run does not have.
	s.want(s.do("POST", messages, "", ask("hi", "tools", sandbox)), 422, `"message":"run run_`)
}

func TestBlocksBecomeOneConversation(t *testing.T) {
	var seen llm.Request
	model := llm.Func(func(r llm.Request) (llm.Response, error) {
		seen = r
		return llm.Response{Text: "fine"}, nil
	})
	s := start(t, t.TempDir(), model, nil)
	png := object{"type": "base64", "media_type": "image/png", "data": "aGk="}
	body := ask(nil, "system", []object{{"type": "text", "text": "One."}, {"type": "text", "text": "Two."}})
	body["messages"] = []object{
		{"role": "user", "content": []object{
			{"type": "image", "source": png},
			{"type": "document", "title": "Notes", "source": object{"type": "text", "data": "a b"}},
			{"type": "search_result", "source": "https://x.test", "title": "X", "content": []object{
				{"type": "text", "text": "found"},
			}},
		}},
		{"role": "assistant", "content": []object{
			{"type": "thinking", "thinking": "hm", "signature": "s"},
			{"type": "text", "text": "I look."},
			{"type": "tool_use", "id": "toolu_1", "name": "look", "input": object{"a": 1}},
			{"type": "tool_use", "id": "toolu_2", "name": "look", "input": nil},
		}},
		{"role": "user", "content": []object{
			{"type": "tool_result", "tool_use_id": "toolu_1", "content": "seen"},
			{"type": "tool_result", "tool_use_id": "toolu_2", "is_error": true, "content": []object{
				{"type": "text", "text": "no such thing"}, {"type": "image", "source": png},
			}},
			{"type": "text", "text": "And now?"},
		}},
	}
	s.want(s.do("POST", messages, "", body), 200, `"text":"fine"`)

	want := []struct {
		role   llm.Role
		text   string
		images int
	}{
		{llm.RoleSystem, "One.\n\nTwo.", 0},
		{llm.RoleUser, "Notes\n\na b\n\nX\nhttps://x.test\nfound", 1},
		{llm.RoleAssistant, "I look.", 0},
		{llm.RoleAssistant, `"toolu_1"`, 0},
		{llm.RoleAssistant, `"toolu_2"`, 0},
		{llm.RoleUser, "Result of the call toolu_1:\nseen", 0},
		{llm.RoleUser, "Result of the call toolu_2:\nThe call failed:\n\nno such thing", 1},
		{llm.RoleUser, "And now?", 0},
	}
	if len(seen.Messages) != len(want) {
		t.Fatalf("the model reads %+v", seen.Messages)
	}
	for i, w := range want {
		m := seen.Messages[i]
		if m.Role != w.role || !strings.Contains(m.Content, w.text) || len(m.Images) != w.images {
			t.Errorf("message %d is %+v, want %+v", i, m, w)
		}
	}
}

func TestTheModelCallsToolsOfAnthropicsClients(t *testing.T) {
	s := start(t, t.TempDir(), calling(t, `{"a": "2"}`), nil)
	got := s.do("POST", messages, "", ask("add", "tools", adder, "tool_choice", object{
		"type": "tool", "name": "add", "disable_parallel_tool_use": true,
	}))
	s.want(got, 200, `"input":{"a":2},"name":"add","type":"tool_use"`)
	s.want(got, 200, `"stop_reason":"tool_use"`)

	var said struct{ Content []object }
	if err := json.Unmarshal([]byte(got.body), &said); err != nil {
		t.Fatal(err)
	}
	// The scripted model recognises results by the prefix of the other wires' calls.
	said.Content[0]["id"] = "call_1"
	body := ask("add", "tools", adder)
	body["messages"] = append(body["messages"].([]object),
		object{"role": "assistant", "content": said.Content},
		object{"role": "user", "content": []object{
			{"type": "tool_result", "tool_use_id": "call_1", "content": "3"},
		}})
	got = s.do("POST", messages, "", body)
	s.want(got, 200, `{"text":"It is 3.","type":"text"}`)
	s.want(got, 200, `"stop_reason":"end_turn"`)
	s.want(s.do("POST", messages, "", ask("add", "tools", adder, "tool_choice", object{"type": "none"})),
		200, `"text":"Hello."`)
}

func TestMessagesAreStreamed(t *testing.T) {
	s := start(t, t.TempDir(), calling(t, `{"a": 2}`), nil)
	names := func(got answer) string {
		var all []string
		for line := range strings.Lines(got.body) {
			if name, is := strings.CutPrefix(strings.TrimSpace(line), "event: "); is {
				all = append(all, name)
			}
		}
		return strings.Join(all, " ")
	}
	const block = "content_block_start content_block_delta content_block_stop "

	got := s.do("POST", messages, "", ask("hi", "stream", true))
	if all := names(got); all != "message_start "+block+"message_delta message_stop" {
		t.Errorf("the events are %s:\n%s", all, got.body)
	}
	s.want(got, 200, `"delta":{"text":"Hello.","type":"text_delta"}`)
	s.want(got, 200, `"delta":{"stop_reason":"end_turn","stop_sequence":null}`)
	if strings.Contains(got.body, `"input_tokens":0`) {
		t.Errorf("an event counts no tokens: %s", got.body)
	}

	got = s.do("POST", messages, "", ask("add", "stream", true, "tools", adder))
	if all := names(got); all != "message_start "+block+"message_delta message_stop" {
		t.Errorf("the events are %s:\n%s", all, got.body)
	}
	s.want(got, 200, `"input":{},"name":"add","type":"tool_use"`)
	s.want(got, 200, `"partial_json":"{\"a\":2}","type":"input_json_delta"`)
	s.want(got, 200, `"stop_reason":"tool_use"`)
	s.want(s.do("POST", messages, "", ask(hay, "stream", true)), 200, "message_stop")
}

func TestABrokenStreamOfAMessageEndsWithAnError(t *testing.T) {
	s := start(t, t.TempDir(), restarting{}, nil)
	got := s.do("POST", messages, "", ask("hi", "stream", true))
	s.want(got, 200, "event: error\ndata: {")
	s.want(got, 200, `"type":"api_error","message":"the model's server broke off: ask again"`)
	if strings.Contains(got.body, "message_stop") {
		t.Errorf("the stream ends as if it were whole: %s", got.body)
	}
}

func TestAnswersAreCutOrRefusedInAnthropicsWords(t *testing.T) {
	text := "Part"
	for finish, reason := range map[string]string{llm.FinishLength: "max_tokens", llm.FinishRefusal: "refusal"} {
		model, err := scripted.New(scripted.Rule{Reply: &text, Finish: finish})
		if err != nil {
			t.Fatal(err)
		}
		s := start(t, t.TempDir(), model, nil)
		s.want(s.do("POST", messages, "", ask("hi")), 200, `"stop_reason":"`+reason+`"`)
		s.want(s.do("POST", messages, "", ask("hi", "stream", true)), 200, `"stop_reason":"`+reason+`"`)
	}
}

func TestAMessagesAnswerMeetsASchema(t *testing.T) {
	s := start(t, t.TempDir(), llm.Func(func(r llm.Request) (llm.Response, error) {
		if len(r.Schema) == 0 {
			t.Error("the model gets no schema")
		}
		return llm.Response{Text: `{"a": 1}`}, nil
	}), nil)
	format := object{"type": "json_schema", "schema": object{
		"type": "object", "required": []string{"a"}, "properties": object{"a": object{"type": "integer"}},
	}}
	for _, body := range []object{
		ask("hi", "output_format", format), ask("hi", "output_config", object{"format": format, "effort": "low"}),
	} {
		s.want(s.do("POST", messages, "", body), 200, `"text":"{\"a\":1}"`)
	}
}

func TestTokensOfMessagesAreCounted(t *testing.T) {
	s := start(t, t.TempDir(), llm.Func(func(llm.Request) (llm.Response, error) {
		t.Error("counting asks the model")
		return llm.Response{}, nil
	}), nil)
	count := func(body object) float64 {
		got := s.do("POST", messages+"/count_tokens", "", body)
		s.want(got, 200, `{"input_tokens":`)
		n, _ := s.field(got, "input_tokens").(float64)
		return n
	}
	short, long, tools := count(ask("hi")), count(ask(hay)), count(ask("hi", "tools", adder))
	if short <= 0 || long < 100*short || tools <= short {
		t.Errorf("the counts are %v, %v for a long text, %v with a tool", short, long, tools)
	}
}

func TestMessagesAreRefusedInAnthropicsForm(t *testing.T) {
	s := start(t, t.TempDir(), counting(t), nil)
	block := func(b object) object { return ask([]object{b}) }
	const bad = "invalid_request_error"
	nested := strings.Repeat(`{"type":"document","source":{"type":"content","content":[`, 3_000) +
		strings.Repeat("]}}", 3_000)
	many := `{"model":"rlm/default","messages":[{"role":"user","content":[` +
		`{"type":"tool_result","tool_use_id":"a","content":[` + strings.Repeat("{},", 250_000) + `{}]}]}]}`
	for _, c := range []struct {
		body   any
		status int
		kind   string
		text   string
	}{
		{"{", 400, bad, "not JSON"},
		{many, 413, "request_too_large", "too many values"},
		{ask(strings.Repeat("x", 2<<20)), 413, "request_too_large", "more than 1048576 bytes"},
		{ask("hi", "model", "claude-x"), 404, "not_found_error", "ask for rlm/default"},
		{ask("hi", "messages", []object{}), 400, bad, "the last message is not the user's"},
		{ask("hi", "messages", []object{{"role": "tool", "content": "x"}}), 400, bad, "unknown role"},
		{ask("hi", "max_tokens", 0), 400, bad, "positive number"},
		{ask("hi", "metadata", object{"rlm_budget_usd": "much"}), 400, bad, "no amount"},
		{ask("hi", "metadata", object{"rlm_budget_calls": 5}), 400, bad, "metadata"},
		{ask("hi", "system", []object{{"type": "image"}}), 400, bad, "give text"},
		{ask("hi", "tools", []object{{"type": "web_search_20250305", "name": "w"}}), 400, bad, "--mcp"},
		{ask("hi", "tools", adder, "tool_choice", object{"type": "x"}), 400, bad, "unknown choice"},
		{
			ask("hi", "tools", adder, "tool_choice", object{"type": "tool", "name": "x"}), 400,
			bad, "no function",
		},
		{ask("hi", "mcp_servers", []object{{"url": "https://x.test"}}), 400, bad, "omit mcp_servers"},
		{block(object{"type": "video"}), 400, bad, "the type \\\"video\\\""},
		{block(object{"type": "image"}), 400, bad, "needs a source"},
		{
			block(object{"type": "image", "source": object{"type": "url", "url": "https://x.test/a.png"}}), 400,
			bad, "fetches no pictures",
		},
		{
			block(object{"type": "document", "source": object{"type": "url", "url": "https://x.test/a.pdf"}}), 400,
			bad, "upload the file",
		},
		{block(object{"type": "tool_result", "content": "x"}), 400, bad, "no tool_use_id"},
		{block(object{"type": "tool_use", "name": "x"}), 400, bad, "needs an id"},
		{ask([]json.RawMessage{json.RawMessage(nested)}), 400, bad, "a block of a document"},
	} {
		got := s.do("POST", messages, "", c.body)
		s.want(got, c.status, `{"type":"error","error":{"type":"`+c.kind+`","message":"`)
		s.want(got, c.status, c.text)
	}
	s.want(s.do("GET", messages+"/other", "", nil), 404, `"type":"not_found_error"`)
}

// TestAKeyIsTakenFromTheHeaderOfAnthropicsClients checks that a key in X-Api-Key is accepted even
// with another Authorization, which these clients may also send.
func TestAKeyIsTakenFromTheHeaderOfAnthropicsClients(t *testing.T) {
	s := start(t, t.TempDir(), counting(t), locked)
	key := s.key(access.Key{Name: "a"})
	weak := s.key(access.Key{Name: "weak", Scopes: []access.Scope{access.Read}})
	send := func(key string, header ...string) answer { return s.do("POST", messages, key, ask("hi"), header...) }
	s.want(send("", "X-Api-Key", key), 200, "Hello.")
	s.want(send(key), 200, "Hello.")
	s.want(send("other", "X-Api-Key", key), 200, "Hello.")
	s.want(send(key, "X-Api-Key", "other"), 200, "Hello.")
	s.want(send(weak, "X-Api-Key", key), 403, `"type":"permission_error"`)
	s.want(send("", "X-Api-Key", "rlm_GUESSED"), 401, `"type":"authentication_error"`)
	s.want(send("", "X-Api-Key", "other"), 401, `"type":"authentication_error"`)
	s.want(send(""), 401, `"type":"authentication_error"`)
	s.want(s.do("POST", "/v1/chat/completions", "", chat("hi"), "X-Api-Key", key), 200, "Hello.")
}

// restarting is a model whose server breaks off after one piece and starts over.
type restarting struct{}

func (restarting) Complete(_ context.Context, _ llm.Request, stream func(string)) (llm.Response, error) {
	if stream != nil {
		stream("Hel")
		stream("")
		stream("Bye.")
	}
	return llm.Response{Text: "Bye.", Finish: llm.FinishStop}, nil
}

// TestABegunAnswerIsRefused checks on each wire that a request with a partial answer is refused,
// because few models would continue it.
func TestABegunAnswerIsRefused(t *testing.T) {
	s := start(t, t.TempDir(), counting(t), nil)
	talk := []object{{"role": "user", "content": "Give JSON."}, {"role": "assistant", "content": "{"}}
	for path, body := range map[string]object{
		"/v1/chat/completions": {"model": "rlm/default", "messages": talk},
		respond:                {"model": "rlm/default", "input": talk},
		messages:               {"model": "rlm/default", "max_tokens": 9, "messages": talk},
	} {
		s.want(s.do("POST", path, "", body), 400, "this server continues no answer that the client has begun")
	}
}
