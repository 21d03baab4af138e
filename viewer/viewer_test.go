package viewer_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rlmhq/rlm/repl/ledger"
	"github.com/rlmhq/rlm/viewer"
)

// outline formats a run as text: its nodes, indented, with their statuses and texts.
func outline(run *viewer.Run) string {
	var b strings.Builder
	depth := make([]int, len(run.Nodes))
	children := map[int][]int{}
	for i := range run.Nodes {
		children[run.Nodes[i].Parent] = append(children[run.Nodes[i].Parent], i)
	}

	var show func(i int)
	show = func(i int) {
		n := &run.Nodes[i]
		fmt.Fprintf(&b, "%s%s %q", strings.Repeat(" ", depth[i]), n.Kind, n.Title)
		if n.Status != "" {
			fmt.Fprintf(&b, " (%s)", n.Status)
		}
		for _, t := range run.Texts[i] {
			fmt.Fprintf(&b, " %s=%.30q", t.Name, t.Text)
		}
		b.WriteString("\n")
		for _, c := range children[i] {
			depth[c] = depth[i] + 1
			show(c)
		}
	}
	for _, i := range children[-1] {
		show(i)
	}
	return b.String()
}

func check(t *testing.T, got, want string) {
	t.Helper()
	if got = strings.TrimSpace(got); got != strings.TrimSpace(want) {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func golden(t *testing.T, name string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func TestARecordIsATree(t *testing.T) {
	run, err := viewer.ReadPath("testdata/record")
	if err != nil {
		t.Fatal(err)
	}
	check(t, outline(run), golden(t, "record.txt"))
	for i, n := range run.Nodes {
		if n.Start < 0 || n.Elapsed < 0 || n.Parent >= i {
			t.Errorf("node %d: %+v", i, n)
		}
	}
}

func TestATrajectoryIsATree(t *testing.T) {
	run, err := viewer.ReadPath("testdata/record/trajectory.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	if got := outline(run); !strings.Contains(got, ` call "is it?" prompt="is it?" reply="yes"`) ||
		!strings.HasPrefix(got, `loop "rlm by scripted/s.yaml" (answered)`) {
		t.Error(got)
	}
}

func TestARunLogIsATree(t *testing.T) {
	run, err := viewer.ReadPath("testdata/journal.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	check(t, outline(run), golden(t, "journal.txt"))
}

// TestEventsAreATree checks that a program with the events of a run in memory can build the same
// tree.
func TestEventsAreATree(t *testing.T) {
	var b viewer.Builder
	at := time.Now()
	for _, e := range []ledger.Event{
		{Kind: ledger.EventRunStarted, Node: "0", Text: "q"},
		{Kind: ledger.EventTurnStarted, Node: "0", Turn: 1},
		{Kind: ledger.EventCallStarted, Node: "0", Turn: 1, Model: "m"},
		{Kind: ledger.EventCallStarted, Node: "0", Turn: 1, Model: "m"},
		{
			Kind: ledger.EventCall, Node: "0", Turn: 1, Model: "m", Elapsed: time.Second, Text: "late",
			Used: &ledger.Spending{Calls: 1, USD: 0.5},
		},
		{Kind: ledger.EventWarning, Node: "0", Turn: 1, Error: "careful"},
		{
			Kind: ledger.EventTool, Node: "0", Turn: 1, Text: "mail(1)", Error: "no",
			Used: &ledger.Spending{ToolCalls: 1},
		},
		{Kind: "new in 2030", Node: "0.7.9", Text: "\x00\xff"},
	} {
		at = at.Add(time.Second)
		e.Time = at
		b.Event(&e)
	}
	run := b.Run()
	check(t, outline(run), `
loop "q" (running) question="q"
 turn "Turn 1" (running)
  snippet "" (running)
   call "" (running)
   call "late" reply="late"
   warning "careful" error="careful"
   tool "mail(1)" (failed) call="mail(1)" error="no"
 loop "" (running)
  new in 2030 "\x00�" text="\x00�"`)
	if n := run.Nodes[6]; n.ToolCalls != 1 || n.Calls != 0 {
		t.Errorf("%+v", n)
	}
	if n := run.Nodes[4]; n.Elapsed != 1000 || n.USD != 0.5 || run.Status != "running" {
		t.Errorf("%+v", n)
	}
}

// TestARunThatGoesOnIsOneTree checks the record of a process that ended in the middle of a turn,
// and of a second process that repeats the turn.
func TestARunThatGoesOnIsOneTree(t *testing.T) {
	var b viewer.Builder
	begin := []ledger.Event{
		{Kind: ledger.EventRunStarted, Node: "0", Text: "q"},
		{Kind: ledger.EventTurnStarted, Node: "0", Turn: 1},
		{Kind: ledger.EventLoopStarted, Node: "0.1", Text: "sub"},
	}
	end := []ledger.Event{
		{Kind: ledger.EventLoopEnded, Node: "0.1", Status: "answered"},
		{Kind: ledger.EventRunEnded, Node: "0", Status: "answered"},
	}
	for _, e := range slices.Concat(begin, begin, end) {
		e.Time = time.Now()
		b.Event(&e)
	}
	check(t, outline(b.Run()), `
loop "q" (answered) question="q"
 turn "Turn 1" (interrupted)
  snippet "" (interrupted)
   loop "sub" (interrupted) question="sub"
 turn "Turn 1"
  snippet ""
   loop "sub" (answered) question="sub"`)
}

func TestAHostileRunHasBounds(t *testing.T) {
	var b viewer.Builder
	b.Event(&ledger.Event{Kind: ledger.EventRunStarted, Node: "0", Text: strings.Repeat("é", 1<<20)})
	for i := range 300_000 {
		b.Event(&ledger.Event{Kind: ledger.EventCallStarted, Node: fmt.Sprintf("0.%d", i%50), Model: "m"})
	}
	run := b.Run()
	if len(run.Nodes) != 250_000 || len(run.Notes) != 2 || len(run.Texts[0][0].Text) > 1<<20 {
		t.Errorf("%d nodes, %q", len(run.Nodes), run.Notes)
	}
}

func serve(tb testing.TB, source viewer.Source) *httptest.Server {
	tb.Helper()
	server := httptest.NewUnstartedServer(nil)
	own := server.Listener.Addr().String()
	server.Config.Handler = viewer.Guard("secret", own, viewer.New(source, slog.New(slog.DiscardHandler)))
	server.Start()
	tb.Cleanup(func() { server.CloseClientConnections(); server.Close() })
	return server
}

func get(t *testing.T, address string, change func(*http.Request)) (int, string, http.Header) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	if change != nil {
		change(r)
	}
	reply, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer reply.Body.Close()
	body, err := io.ReadAll(reply.Body)
	if err != nil {
		t.Fatal(err)
	}
	return reply.StatusCode, string(body), reply.Header
}

func TestOnlyTheOwnPageGetsThrough(t *testing.T) {
	files, err := viewer.FindTraces("testdata")
	if err != nil {
		t.Fatal(err)
	}
	server := serve(t, files)
	_, port, _ := strings.Cut(server.Listener.Addr().String(), ":")
	for _, c := range []struct {
		path   string
		change func(*http.Request)
		want   int
	}{
		{"/secret/", nil, 200},
		{"/secret/", func(r *http.Request) { r.Host = "localhost:" + port }, 200},
		{"/secret/", func(r *http.Request) { r.Host = "evil.example:" + port }, 403},
		{"/secret/", func(r *http.Request) { r.Header.Set("Origin", "http://evil.example") }, 403},
		{"/secret/", func(r *http.Request) { r.Header.Set("Origin", "null") }, 403},
		{"/secret/api/runs", func(r *http.Request) { r.Header.Set("Sec-Fetch-Site", "cross-site") }, 403},
		{"/secret/api/runs", func(r *http.Request) { r.Header.Set("Origin", server.URL) }, 200},
		{"/secret/", func(r *http.Request) {
			r.Header.Set("Sec-Fetch-Site", "cross-site")
			r.Header.Set("Sec-Fetch-Mode", "navigate")
			r.Header.Set("Sec-Fetch-Dest", "document")
		}, 200},
		{"/secret/", func(r *http.Request) { r.Method = http.MethodPost }, 405},
		{"/secre/", nil, 404},
		{"/", nil, 404},
		{"/secret/api/run?id=nothing", nil, 404},
		{"/secret/api/run?id=../../go.mod", nil, 404},
		{"/secret/api/texts?id=testdata/record&node=1000000", nil, 404},
		{"/secret/api/search?id=testdata/record&text=", nil, 400},
		{"/secret/page/main.js", nil, 404},
	} {
		t.Run(c.path, func(t *testing.T) {
			code, body, head := get(t, server.URL+c.path, c.change)
			if code != c.want {
				t.Errorf("%s: %d, want %d: %s", c.path, code, c.want, body)
			}
			const policy = "default-src 'none'; script-src 'self'"
			if code == 200 && !strings.HasPrefix(head.Get("Content-Security-Policy"), policy) {
				t.Errorf("%s: %v", c.path, head)
			}
		})
	}
}

func TestTheServerHasListTextsAndHits(t *testing.T) {
	files, err := viewer.FindTraces("testdata")
	if err != nil {
		t.Fatal(err)
	}
	api := serve(t, files).URL + "/secret/api/"
	var items []viewer.Item
	fetch(t, api+"runs", &items)
	if len(items) != 2 {
		t.Fatalf("%+v", items)
	}

	id := url.QueryEscape(filepath.Join("testdata", "record"))
	var run viewer.Run
	fetch(t, api+"run?id="+id, &run)
	at := slices.IndexFunc(run.Nodes, func(n viewer.Node) bool { return n.Kind == viewer.KindCall })
	var texts []viewer.Text
	fetch(t, fmt.Sprintf("%stexts?id=%s&node=%d", api, id, at), &texts)
	if len(texts) != 2 || texts[0].Text != "is it?" {
		t.Errorf("%+v", texts)
	}
	var found struct{ Nodes []int }
	fetch(t, api+"search?id="+id+"&text=IS+IT", &found)
	if !slices.Contains(found.Nodes, at) || len(found.Nodes) > 4 {
		t.Errorf("%+v", found)
	}
}

func fetch(t *testing.T, address string, value any) {
	t.Helper()
	code, body, _ := get(t, address, nil)
	if err := json.Unmarshal([]byte(body), value); err != nil || code != 200 {
		t.Fatalf("%s: %d %s: %v", address, code, body, err)
	}
}

// TestARunGrows checks that additions to a record reach a watching browser.
func TestARunGrows(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "tr")
	if err := os.CopyFS(dir, os.DirFS("testdata/record")); err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(dir, "events.jsonl")
	all, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	lines := bytes.SplitAfter(all, []byte("\n"))
	write := func(n int) {
		if err := os.WriteFile(name, bytes.Join(lines[:n], nil), 0o600); err != nil {
			t.Error(err)
		}
	}
	write(3)
	lock(t, name)
	files, err := viewer.FindTraces(dir)
	if err != nil {
		t.Fatal(err)
	}
	api := serve(t, files).URL + "/secret/api/"
	id := url.QueryEscape(dir)
	var run viewer.Run
	fetch(t, api+"run?id="+id, &run)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	address := fmt.Sprintf("%schanges?id=%s&version=%d", api, id, run.Version)
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, address, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	reply, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer reply.Body.Close()

	write(8)
	nodes := map[int]viewer.Node{}
	for i, n := range run.Nodes {
		nodes[i] = n
	}
	scanner := bufio.NewScanner(reply.Body)
	scanner.Buffer(nil, 1<<20)
	for scanner.Scan() {
		data, isData := strings.CutPrefix(scanner.Text(), "data: ")
		if !isData {
			continue
		}
		var c struct {
			Status string
			Nodes  map[int]viewer.Node
		}
		if err := json.Unmarshal([]byte(data), &c); err != nil {
			t.Fatal(err)
		}
		for i, n := range c.Nodes {
			nodes[i] = n
		}
		if c.Status == "running" {
			write(len(lines))
		}
		run.Status = c.Status
	}
	whole, err := viewer.ReadPath(dir)
	if err != nil {
		t.Fatal(err)
	}
	if run.Status != "answered" || len(nodes) != len(whole.Nodes) {
		t.Errorf("%s, %d nodes, want %d; %v", run.Status, len(nodes), len(whole.Nodes), scanner.Err())
	}
	for i, n := range whole.Nodes {
		if nodes[i] != n {
			t.Errorf("node %d is %+v, want %+v", i, nodes[i], n)
		}
	}
}

func TestAFileHasNothingFromElsewhere(t *testing.T) {
	var b viewer.Builder
	b.Event(&ledger.Event{Kind: ledger.EventRunStarted, Node: "0", Text: hostile})
	var out strings.Builder
	if err := viewer.Export(&out, b.Run()); err != nil {
		t.Fatal(err)
	}
	page := out.String()
	if n := strings.Count(page, "</script>"); n != 2 {
		t.Errorf("%d scripts end, want 2: data and program", n)
	}
	for _, bad := range []string{"<img", "http://", "https://", "innerHTML", "eval("} {
		if strings.Contains(page, bad) {
			t.Errorf("the page has %q", bad)
		}
	}
	if !strings.Contains(page, "default-src 'none'; script-src 'sha256-") {
		t.Error("the page has no policy")
	}
}

const hostile = `</script><script>document.title="owned"</script><img src=x onerror='document.title="owned"'>` +
	"\u202e\u2028\x1b]0;x\a${'a'}<!--<script>"

func FuzzRead(f *testing.F) {
	for _, name := range []string{"record/events.jsonl", "record/trajectory.jsonl", "journal.jsonl"} {
		data, err := os.ReadFile("testdata/" + name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		dir := t.TempDir()
		for _, name := range []string{"trajectory.jsonl", "events.jsonl", "sub_0001/trajectory.jsonl"} {
			name = filepath.Join(dir, name)
			if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(name, data, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		for _, read := range []func() (*viewer.Run, error){
			func() (*viewer.Run, error) { return viewer.ReadPath(dir) },
			func() (*viewer.Run, error) { return viewer.ReadTrajectory(bytes.NewReader(data)) },
			func() (*viewer.Run, error) { return viewer.ReadRunLog(bytes.NewReader(data)) },
		} {
			run, err := read()
			if err != nil {
				continue
			}
			for i, n := range run.Nodes {
				if n.Parent >= i || len(run.Texts[i]) != n.Texts {
					t.Fatalf("node %d: %+v", i, n)
				}
			}
			if err := viewer.Export(io.Discard, run); err != nil {
				t.Fatal(err)
			}
		}
	})
}
