package tools

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/rlmhq/rlm/internal/testing/skip"
)

func TestAnswersAreRepaired(t *testing.T) {
	deep := strings.Repeat("[", maxLevels+1) + strings.Repeat("]", maxLevels+1)
	for message, want := range map[string]string{
		`{"jsonrpc":"2.0","id":1,"result":{"structuredContent":{"n": 9007199254740993}}}`: `
		 {"id":1,"jsonrpc":"2.0","result":{"structuredContent":"{\"n\": 9007199254740993}"}}`,
		`{"jsonrpc":"2.0","id":1,"result":{"content":[],"structuredContent":"<5>"}}`: `
		 {"id":1,"jsonrpc":"2.0","result":{"content":[],"structuredContent":"\"<5>\""}}`,
		`{"jsonrpc":"2.0","id":1,"result":{"content":[ ]}}`: `
		 {"id":1,"jsonrpc":"2.0","result":{"content":[],"structuredContent":""}}`,
		`{"jsonrpc":"2.0","id":1,"result":{"content":null}}`: `
		 {"id":1,"jsonrpc":"2.0","result":{"content":null}}`,
		`{"jsonrpc":"2.0","id":1,"result":{"structuredContent":` + deep + `}}`: `
		 {"id":1,"jsonrpc":"2.0","result":{"structuredContent":` + deep + `}}`,
		`{"jsonrpc":"2.0","id":1,"result":null}`: `{"id":1,"jsonrpc":"2.0","result":null}`,
		`{"id":"12","result":{}}`:                `{"id":12,"jsonrpc":"2.0","result":{}}`,
		`{"id":"x","result":{}}`:                 `error: it answers with the ID "x", which no request has`,
		`{"id":"01","result":{}}`:                `error: it answers with the ID "01", which no request has`,
		`{"jsonrpc":"2.0","id":1}`: `{"error":{"code":-32603,"message":` +
			`"the server's answer has neither a result nor an error"},"id":1,"jsonrpc":"2.0"}`,
		`{"jsonrpc":"2.0","id":"x","method":"ping"}`: `{"jsonrpc":"2.0","id":"x","method":"ping"}`,
		`{"jsonrpc":"2.0","id":1,"result":{"x": NaN}}`: `
		 {"jsonrpc":"2.0","id":1,"result":{"x": NaN}}`,
		` [{"id":"1","result":5}, {"method":"x"}]`: `[{"id":1,"jsonrpc":"2.0","result":5},{"method":"x"}]`,
		"plain text": "plain text",
	} {
		got, err := repair([]byte(message))
		if err != nil {
			got = []byte("error: " + err.Error())
		}
		if strings.TrimSpace(string(got)) != strings.TrimSpace(want) {
			t.Errorf("%.200s: got %.200s", message, got)
		}
	}
}

func TestEventsAreRepaired(t *testing.T) {
	const stream = "event: message\r\nid: 7\r\ndata: {\"id\":\"1\",\r\ndata: \"result\":{}}\r\n\r\n" +
		": nothing\ndata:\n\ndata: text\ndata: more\n\ndata: {\"id\":\"2\",\"result\":{}}"
	const want = "event: message\r\nid: 7\r\ndata: {\"id\":1,\"jsonrpc\":\"2.0\",\"result\":{}}\n\r\n" +
		": nothing\ndata: \n\ndata: text\ndata: more\n\ndata: {\"id\":2,\"jsonrpc\":\"2.0\",\"result\":{}}\n"
	body := io.NopCloser(strings.NewReader(stream))
	got, err := io.ReadAll(&repairedBody{ReadCloser: body, isEvents: true, lines: bufio.NewReader(body)})
	if err != nil || string(got) != want {
		t.Errorf("got %q, %v", got, err)
	}
}

// oddResults maps the tools of a server that uses no library to their results, each with the value
// that a snippet receives.
var oddResults = map[string][2]string{
	"exact": {
		`{"content":[],"structuredContent":{"id":1234567890123456789,"n":9007199254740993,"x":1.10}}`,
		`{"id":1234567890123456789,"n":9007199254740993,"x":1.10}`,
	},
	"old":     {`{"toolResult":{"n":9007199254740993}}`, `{"n":9007199254740993}`},
	"text":    {`{"content":[],"structuredContent":"5"}`, `"5"`},
	"empty":   {`{"content":[]}`, `""`},
	"nothing": {`null`, "error: odd.nothing: " + errNoContent.Error()},
	"object":  {`{}`, "error: odd.object: " + errNoContent.Error()},
	"null":    {`{"content":null}`, "error: odd.null: " + errNoContent.Error()},
	"failed":  {`{"isError":true}`, "error: odd.failed: the tool failed"},
}

// answerOddly answers a request as the server of oddResults.
func answerOddly(request []byte) string {
	var m struct {
		ID     json.RawMessage `json:"id"`
		Method string          `json:"method"`
		Params struct {
			Name string `json:"name"`
		} `json:"params"`
	}
	if json.Unmarshal(request, &m) != nil || m.ID == nil {
		return ""
	}

	var result string
	switch m.Method {
	case "initialize":
		result = `{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},` +
			`"serverInfo":{"name":"odd","version":"1"}}`
	case "tools/list":
		var tools []string
		for name := range oddResults {
			tools = append(tools, fmt.Sprintf(`{"name":%q,"inputSchema":{"type":"object"}}`, name))
		}
		result = `{"tools":[` + strings.Join(tools, ",") + `]}`
	case "tools/call":
		result = oddResults[m.Params.Name][0]
	default:
		return fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"no"}}`, m.ID)
	}
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":%s}`, m.ID, result)
}

func TestOddResultsOverHTTP(t *testing.T) {
	for _, isEvents := range []bool{false, true} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			request, _ := io.ReadAll(r.Body)
			answer := answerOddly(request)
			switch {
			case answer == "":
				w.WriteHeader(http.StatusAccepted)
			case isEvents:
				w.Header().Set("Content-Type", "text/event-stream")
				_, _ = fmt.Fprintf(w, "event: message\ndata: %s\n\n", answer)
			default:
				w.Header().Set("Content-Type", "application/json")
				_, _ = io.WriteString(w, answer)
			}
		}))
		t.Cleanup(server.Close)

		_, tools := start(t, write(t, map[string]any{"mcpServers": map[string]any{
			"odd": map[string]any{"url": server.URL},
		}}))
		for name, c := range oddResults {
			if got := call(t, tools, "odd__"+name, `{}`); got != c[1] {
				t.Errorf("%s: got %s, want %s", name, got, c[1])
			}
		}
	}
}

// serveOddly serves oddResults over stdin and stdout. The kind is empty, or one of:
//
//	-silent   it ignores unknown methods
//	-late     it answers the first request, which is of an unknown method, after the next one
//	-incapable it declares no capabilities
//	-bare     its answers do not have the member "jsonrpc", and have texts as IDs
//	-logging  it logs each answer before it
//	-mixed    it writes its answers to calls after other text
//	-slow     it begins late, with the newest protocol alone
func serveOddly(kind string) {
	if kind == "-slow" {
		time.Sleep(probeTime + time.Second)
	}
	var late string
	for in := bufio.NewScanner(os.Stdin); in.Scan(); {
		answer := answerOddly(in.Bytes())
		isUnknown := strings.Contains(answer, `"error"`)
		switch {
		case kind == "-silent" && isUnknown:
			continue
		case kind == "-late" && isUnknown:
			late = answer + "\n"
			continue
		case kind == "-slow" && strings.Contains(in.Text(), "server/discover"):
			answer = regexp.MustCompile(`"error":.*`).ReplaceAllString(answer, `"result":{"resultType":"complete",`+
				`"supportedVersions":["2026-07-28"],"capabilities":{"tools":{}},"ttlMs":0,"cacheScope":"private"}}`)
		case kind == "-slow" && strings.Contains(in.Text(), `"initialize"`):
			answer = regexp.MustCompile(`"result":.*`).ReplaceAllString(answer,
				`"error":{"code":-32600,"message":"the handshake is not accepted"}}`)
		case kind == "-bare":
			answer = strings.Replace(answer, `"jsonrpc":"2.0","id":`, `"id":"`, 1)
			answer = strings.NewReplacer(`,"result"`, `","result"`, `,"error"`, `","error"`).Replace(answer)
		case kind == "-logging":
			answer = "sending " + answer + "\n" + answer
		case kind == "-mixed" && strings.Contains(in.Text(), "tools/call"):
			answer = "WARN {slow} " + answer
		case kind == "-incapable":
			answer = strings.Replace(answer, `"capabilities":{"tools":{}}`, `"capabilities":null`, 1)
		}
		answer, late = late+answer, ""
		if answer != "" {
			fmt.Println(answer)
		}
	}
}

func TestOddResultsOfPrograms(t *testing.T) {
	_, tools := start(t, file(t, "odd"))
	for name, c := range oddResults {
		if got := call(t, tools, "odd__"+name, `{}`); got != c[1] {
			t.Errorf("%s: got %s, want %s", name, got, c[1])
		}
	}
}

// TestOddBeginnings checks servers that ignore an unknown method, answer it late, declare no
// capabilities, or begin late and then refuse the older handshake.
func TestOddBeginnings(t *testing.T) {
	skip.UnderRace(t)
	kinds := []string{"odd-silent", "odd-late", "odd-slow", "odd-incapable", "odd-bare", "odd-logging"}
	begin := time.Now()
	servers, tools := start(t, file(t, kinds...))
	if took := time.Since(begin); took > beginTime/2 {
		t.Errorf("the servers began after %v", took)
	}
	for _, one := range servers.all {
		if got := call(t, tools, one.name+"__exact", `{}`); got != oddResults["exact"][1] {
			t.Errorf("%s: got %s", one.given, got)
		}
	}
}

// TestAnAnswerAfterOtherTextIsAnError checks that the call fails soon instead of waiting for
// minutes.
func TestAnAnswerAfterOtherTextIsAnError(t *testing.T) {
	skip.UnderRace(t)
	servers, tools := start(t, file(t, "odd-mixed"))
	const want = "it writes other text before an answer, on the same line: WARN {slow} {"
	begin := time.Now()
	if got := call(t, tools, servers.all[0].name+"__exact", `{}`); !strings.Contains(got, want) {
		t.Errorf("got %s", got)
	}
	if took := time.Since(begin); took > time.Minute {
		t.Errorf("it took %v", took)
	}
}

func TestAResultThatBreaksItsSchemaIsAWarning(t *testing.T) {
	var warnings []string
	odd := &server{name: "odd", warn: func(text string) { warnings = append(warnings, text) }}
	output := map[string]any{"type": "object", "properties": map[string]any{"n": map[string]any{"type": "integer"}}}
	check := newResultCheck(&tool{server: odd, name: "get", origin: &mcp.Tool{OutputSchema: output}})

	for _, n := range []any{json.Number("9007199254740993"), "x", "y"} {
		check(&mcp.CallToolResult{StructuredContent: map[string]any{"n": n}})
	}
	const want = "the result of odd.get does not match the tool's own output schema: $.n: "
	if len(warnings) != 1 || !strings.HasPrefix(warnings[0], want) {
		t.Errorf("got %q", warnings)
	}
}

// FuzzResults checks that a repaired result is still JSON.
func FuzzResults(f *testing.F) {
	for _, result := range []string{
		`{"toolResult":{"content":[{"type":"text","text":"x"}]}}`, `{"toolResult":7}`, `{"toolResult":null}`,
		`{"content":[],"toolResult":1}`, `{"content":[{"type":"text","text":"\"toolResult\""}]}`, `["toolResult"]`,
		`{"structuredContent":{"n":1e999}}`, `{"content":[]}`,
	} {
		f.Add(result)
	}
	f.Fuzz(func(t *testing.T, result string) {
		repaired := repairResult(json.RawMessage(result))
		if !json.Valid([]byte(result)) {
			if string(repaired) != result {
				t.Errorf("%s became %s", result, repaired)
			}
			return
		}

		var parts, given map[string]json.RawMessage
		if !json.Valid(repaired) {
			t.Fatalf("%s became %s", result, repaired)
		}
		_ = json.Unmarshal(repaired, &parts)
		_ = json.Unmarshal([]byte(result), &given)
		if text, isText := unquote(parts["structuredContent"]); given["toolResult"] == nil && isText &&
			text != "" && !json.Valid([]byte(text)) {
			t.Errorf("the structured content of %s became %s", result, text)
		}
	})
}
