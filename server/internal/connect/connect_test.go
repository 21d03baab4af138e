package connect

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rlmhq/rlm"
	"github.com/rlmhq/rlm/internal/plan/results"
	"github.com/rlmhq/rlm/internal/snippet/jsonrpc"
	"github.com/rlmhq/rlm/internal/testing/testcache"
	"github.com/rlmhq/rlm/standard"
	"github.com/rlmhq/rlm/tiers"
)

func TestMain(m *testing.M) {
	if err := testcache.Use(); err != nil {
		log.Fatal(err)
	}
	os.Exit(m.Run())
}

var sharedEngine = sync.OnceValues(func() (*rlm.Engine, error) {
	return rlm.New(rlm.Options{Tiers: standard.Tiers(standard.Options{})})
})

var testOptions = Options{
	Version: "test", MayRaise: true, Log: slog.New(slog.DiscardHandler),
	Limits: tiers.Limits{Wall: 20 * time.Second, Output: 20_000},
}

// serve serves a client until the test ends, and returns the client's end of the connection.
func serve(t *testing.T, o Options) net.Conn {
	t.Helper()
	engine, err := sharedEngine()
	if err != nil {
		t.Fatal(err)
	}
	client, server := net.Pipe()
	ended := make(chan error, 1)
	go func() { ended <- Serve(context.Background(), engine, server, server, o) }()
	t.Cleanup(func() {
		_ = client.Close()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return client
}

// TestTranscripts replays the conversations in testdata.
func TestTranscripts(t *testing.T) {
	names, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(names) == 0 {
		t.Fatal("there are no transcripts")
	}
	for _, name := range names {
		t.Run(filepath.Base(name), func(t *testing.T) {
			t.Parallel()
			text, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			client := serve(t, testOptions)
			if err := client.SetDeadline(time.Now().Add(2 * time.Minute)); err != nil {
				t.Fatal(err)
			}
			play(t, client, string(text))
		})
	}
}

// play sends the client's lines of a transcript, and expects the server's messages between them in
// any order.
func play(t *testing.T, client io.ReadWriter, transcript string) {
	t.Helper()
	in := bufio.NewReader(client)
	var wanted []string
	expect := func(before int) {
		t.Helper()
		for len(wanted) > 0 {
			got, err := in.ReadString('\n')
			if err != nil {
				t.Fatalf("before line %d: %v", before, err)
			}
			i := slices.IndexFunc(wanted, func(want string) bool {
				return matches(t, decode(t, want), decode(t, got))
			})
			if i < 0 {
				t.Fatalf("before line %d: got %s, want one of %s", before, got, wanted)
			}
			wanted = slices.Delete(wanted, i, i+1)
		}
	}

	n := 0
	for line := range strings.Lines(transcript + "\n>") {
		n++
		mark, message, _ := strings.Cut(strings.TrimSpace(line), " ")
		switch mark {
		case "<":
			wanted = append(wanted, message)
		case ">":
			expect(n)
			if message == "" {
				return
			}
			if _, err := io.WriteString(client, message+"\n"); err != nil {
				t.Fatalf("line %d: %v", n, err)
			}
		}
	}
}

func decode(t *testing.T, text string) (value any) {
	t.Helper()
	if err := json.Unmarshal([]byte(text), &value); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return value
}

// matches reports whether got contains everything in want.
func matches(t *testing.T, want, got any) bool {
	t.Helper()
	if want == "*" {
		return got != nil
	}
	object, ok := want.(map[string]any)
	if !ok {
		return reflect.DeepEqual(want, got)
	}
	have, ok := got.(map[string]any)
	if !ok {
		return false
	}
	for name, value := range object {
		if inner, ok := have[name]; !ok || !matches(t, value, inner) {
			return false
		}
	}
	return true
}

// newClient serves a client that is written in Go, and returns it.
func newClient(t *testing.T, o Options) *jsonrpc.Conn {
	t.Helper()
	stream := serve(t, o)
	client := jsonrpc.New(stream, stream, nothing{}, o.Log)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = client.Serve(context.Background()) // the stream ends with the test
	}()
	t.Cleanup(func() { _ = stream.Close(); <-ended })
	call(t, client, "initialize", initializeParams{Protocol: 1}, nil)
	return client
}

func call(t *testing.T, c *jsonrpc.Conn, method string, params, result any) {
	t.Helper()
	if result == nil {
		result = &map[string]any{}
	}
	if err := c.Call(t.Context(), method, params, result); err != nil {
		t.Fatalf("%s: %v", method, err)
	}
}

// nothing is a handler that answers no requests.
type nothing struct{}

func (nothing) Begin(context.Context, string, jsonrpc.Raw) (jsonrpc.Answer, error) {
	return nil, fmt.Errorf("unexpected")
}

func (nothing) Notice(string, jsonrpc.Raw) error { return nil }

func TestStateAndFilesCross(t *testing.T) {
	o := testOptions
	o.Files = true
	c := newClient(t, o)
	folder := t.TempDir()
	context := filepath.Join(folder, "context.txt")
	if err := os.WriteFile(context, []byte("hello"), 0o600); err != nil {
		t.Fatal(err)
	}

	open := func() ofOne {
		var opened openResult
		call(t, c, "session/open", openParams{Contexts: []contextParams{{Path: context}}, Out: true}, &opened)
		return ofOne{opened.Session}
	}
	run := func(in ofOne, source string) map[string]any {
		var result map[string]any
		call(t, c, "session/run", runParams{ofOne: in, Source: source}, &result)
		return result
	}
	first := open()
	run(first, "x = [context]\nopen('/out/a.txt', 'w').write('made')")

	var files filesResult
	call(t, c, "session/files", filesParams{ofOne: first}, &files)
	if len(files.Files) != 1 || files.Files[0].File != "a.txt" || string(files.Files[0].Base64) != "made" {
		t.Errorf("%+v", files)
	}
	out := filepath.Join(folder, "out")
	if err := os.Mkdir(out, 0o700); err != nil {
		t.Fatal(err)
	}
	call(t, c, "session/files", filesParams{ofOne: first, Dir: out}, &filesResult{})
	if text, err := os.ReadFile(filepath.Join(out, "a.txt")); err != nil || string(text) != "made" {
		t.Errorf("%q, %v", text, err)
	}

	var inline snapshotResult
	call(t, c, "session/snapshot", snapshotParams{ofOne: first}, &inline)
	saved := filepath.Join(folder, "saved")
	call(t, c, "session/snapshot", snapshotParams{ofOne: first, Path: saved}, &snapshotResult{})
	if err := c.Call(t.Context(), "session/snapshot", snapshotParams{ofOne: first, Path: saved}, nil); err == nil {
		t.Error("a snapshot has replaced a file")
	}
	for _, from := range []restoreParams{{Snapshot: inline.Snapshot}, {Path: saved}} {
		from.ofOne = open()
		var restored restoreResult
		call(t, c, "session/restore", from, &restored)
		if got := run(from.ofOne, "x"); restored.Variables == 0 || got["echo"] != "['hello']" {
			t.Errorf("%+v, %v", restored, got)
		}
	}
}

// TestADeletionThatDoesNotEndIsAnError also checks that the next result reports the loss.
func TestADeletionThatDoesNotEndIsAnError(t *testing.T) {
	engine, err := sharedEngine()
	if err != nil {
		t.Fatal(err)
	}
	limits := testOptions.Limits
	limits.Wall = 2 * time.Second // more than an ordinary snippet takes on a busy machine
	session, err := engine.Open(t.Context(), rlm.SessionConfig{Limits: limits})
	if err != nil {
		t.Fatal(err)
	}
	defer session.Close()
	s, e := &server{engine: engine}, &entry{session: session}
	run := func(source string) *results.Result {
		t.Helper()
		result, err := s.run(t.Context(), e, runParams{Source: source})
		if err != nil {
			t.Fatal(err)
		}
		return result
	}

	made := run("class Deaf:\n    def __del__(self):\n        while True:\n            try:\n" +
		"                while True: pass\n            except BaseException: pass\nx = Deaf()")
	_, err = s.remove(t.Context(), e, deleteParams{Names: []string{"x"}})
	if made.Status != tiers.StatusOK || err == nil || !strings.Contains(err.Error(), "ended with limit") {
		t.Errorf("%+v, and then %v", made, err)
	}
	e.lost = results.JoinLosses(e.lost, &tiers.Loss{Snippets: []int{1}, Reason: "It broke."})
	if got := run("1").Lost; got == nil || !strings.Contains(got.Reason, "It broke.") {
		t.Errorf("the next result says %+v", got)
	}
	if got := run("1").Lost; got != nil {
		t.Errorf("a result says again %+v", got)
	}
}

func TestAnOutputIsCutBetweenCharacters(t *testing.T) {
	var got strings.Builder
	o := &output{server: &server{}}
	o.server.conn = jsonrpc.New(strings.NewReader(""), &got, nothing{}, testOptions.Log)
	for _, part := range []string{"a\xc3", "\xa9\xf0\x9f", "\x98", "\x80\xff", "b\xe2"} {
		if _, err := o.Write([]byte(part)); err != nil {
			t.Fatal(err)
		}
	}
	o.flush()

	var texts []string
	for line := range strings.Lines(got.String()) {
		params, ok := decode(t, line).(map[string]any)["params"].(map[string]any)
		if !ok {
			t.Fatal(line)
		}
		texts = append(texts, fmt.Sprint(params["text"]))
	}
	want := []string{"a", "é", "😀\ufffd", "b", "\ufffd"}
	if !reflect.DeepEqual(texts, want) {
		t.Errorf("%q, want %q", texts, want)
	}
}

// BenchmarkRun measures the time of a snippet in a live session, including the protocol.
func BenchmarkRun(b *testing.B) {
	engine, err := sharedEngine()
	if err != nil {
		b.Fatal(err)
	}
	client, server := net.Pipe()
	defer client.Close()
	go func() { _ = Serve(b.Context(), engine, server, server, testOptions) }()
	c := jsonrpc.New(client, client, nothing{}, testOptions.Log)
	go func() { _ = c.Serve(b.Context()) }()

	var opened openResult
	for _, step := range []struct {
		method         string
		params, result any
	}{
		{"initialize", initializeParams{Protocol: 1}, &map[string]any{}},
		{"session/open", openParams{}, &opened},
	} {
		if err := c.Call(b.Context(), step.method, step.params, step.result); err != nil {
			b.Fatal(err)
		}
	}
	p := runParams{ofOne: ofOne{opened.Session}, Source: "print(1+1)", Language: tiers.Python}
	for b.Loop() {
		if err := c.Call(b.Context(), "session/run", p, nil); err != nil {
			b.Fatal(err)
		}
	}
}

// TestListsAreDecodedUpToABound checks that a list of a hundred million bytes is refused after its
// first elements.
func TestListsAreDecodedUpToABound(t *testing.T) {
	for text, want := range map[string]string{
		`{"contexts":[` + strings.Repeat("{},", maxList) + `{}]}`:      "a list has more than 10000 elements",
		`{"contexts":[{},{"name":"a","paths":["b"],"text":null}]}`:     "",
		`{"contexts":null,"functions":[]}`:                             "",
		`{"contexts":{}}`:                                              "wrong type",
		`{"contexts":[{"x":1}]}`:                                       "not a parameter",
		`{"contexts":[0]}`:                                             "wrong type",
		`{"functions":[` + strings.Repeat(`{"name":"f"},`, 3) + `{}]}`: "",
	} {
		t.Run(fmt.Sprintf("%.60s", text), func(t *testing.T) {
			var p openParams
			err := jsonrpc.Decode(jsonrpc.Raw(text), &p)
			if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
				t.Errorf("%.80s: %v, want %q", text, err, want)
			}
		})
	}

	var many strings.Builder
	for i := range maxList + 1 {
		fmt.Fprintf(&many, `"a%d":0,`, i)
	}
	for text, want := range map[string]string{
		`{"a":1,"b":{"$int":"7"}}`: "", `null`: "", `{"a":1,"a":2}`: "duplicate", `[]`: "wrong type",
		`{` + many.String() + `"z":0}`: "more than 10000 variables",
	} {
		t.Run(fmt.Sprintf("%.60s", text), func(t *testing.T) {
			var p runParams
			err := jsonrpc.Decode(jsonrpc.Raw(`{"session":"1","source":"1","variables":`+text+`}`), &p)
			if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
				t.Errorf("%.80s: %v, want %q", text, err, want)
			}
			if want == "" && text != "null" && string(p.Variables["b"]) != `{"$int":"7"}` {
				t.Errorf("%s gives %v", text, p.Variables)
			}
		})
	}
}
