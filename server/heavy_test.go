package server

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"time"
)

// readingStub is an endpoint that reads unbounded bodies.
type readingStub struct{ mcpStub }

func (readingStub) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	_, err := io.ReadAll(r.Body)
	fmt.Fprint(w, err)
}

// roomy configures a server for longer bodies than in other tests, with an MCP endpoint.
func roomy(o *Options) {
	o.MaxBody = 16 << 20
	o.endpoint = readingStub{}
}

// allocated returns the number of bytes that this process allocates while f runs.
func allocated(f func()) int {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return int(after.TotalAlloc - before.TotalAlloc) //nolint:gosec // it fits
}

// TestHeavyBodiesAreRefusedByEveryRoute checks that a body whose decoded values would take
// gigabytes costs almost no memory, whether a route decodes it or not.
func TestHeavyBodiesAreRefusedByEveryRoute(t *testing.T) {
	s := start(t, t.TempDir(), counting(t), roomy)
	cases, _ := s.casesOf("")
	heavy := `{"model":"rlm/default","question":"q","value":0,"messages":[` + strings.Repeat("[],", 5<<20) + `[]]}`
	read := 0
	for pattern, c := range cases {
		method, _, isRoute := strings.Cut(pattern, " ")
		if method == "GET" || !isRoute {
			continue
		}
		var got answer
		taken := allocated(func() {
			got = s.do(method, c.path, "", heavy, "Content-Type", "application/json", "Last-Event-ID", "0")
		})
		if strings.Contains(got.body, "too many values") {
			read++
		}
		isRefused := got.status == 413 && got.header.Get("Content-Length") != ""
		if !isRefused && got.status/100 == 2 && c.body != nil || taken > 64<<20 {
			t.Errorf("%s answers %d %.200s, and takes %d MiB", pattern, got.status, got.body, taken>>20)
		}
	}
	if read < 11 {
		t.Errorf("%d routes refuse the body", read)
	}
	mcp := s.do("POST", "/mcp", "", heavy)
	s.want(mcp, 413, `"code":"body_too_large"`)
	s.want(mcp, 413, "the body has too many values")
	s.exec(s.open("", object{}), "", "1", "1")
}

// TestMessagesInGreatNumberAreRefused sends plausible bodies with many messages, within the weight
// limit.
func TestMessagesInGreatNumberAreRefused(t *testing.T) {
	s := start(t, t.TempDir(), counting(t), roomy)
	const n = 300_000
	repeat := func(text string) string { return strings.Repeat(text+",", n) + text }
	const model = `{"model":"rlm/default",`
	for path, bodies := range map[string][]string{
		"/v1/chat/completions": {
			model + `"messages":[` + repeat(`{"role":"user","content":"a"}`) + `]}`,
			model + `"messages":[{"role":"user","content":[` + repeat(`{"type":"text","text":"a"}`) + `]}]}`,
			model + `"messages":[{"role":"user","content":[` + repeat(`0`) + `]}]}`,
			model + `"messages":[{"role":"assistant","tool_calls":[` + repeat(`{}`) + `]}]}`,
			model + `"tools":[` + repeat(`{"type":"function"}`) + `],"messages":[]}`,
			model + `"stop":[` + repeat(`""`) + `],"messages":[]}`,
		},
		"/v1/responses": {
			model + `"input":[` + repeat(`{"role":"user","content":"a"}`) + `]}`,
			model + `"input":[{"role":"user","content":[` + repeat(`{}`) + `]}]}`,
		},
	} {
		for _, body := range bodies {
			var got answer
			taken := allocated(func() { got = s.do("POST", path, "", body, "Content-Type", "application/json") })
			s.want(got, 413, "too many values")
			if taken > 150<<20 {
				t.Errorf("%s %.80s takes %d MiB", path, body, taken>>20)
			}
		}
	}

	many := strings.Repeat(`{"role":"user","content":[{"type":"text","text":"a"}]},`, 2_000)
	s.want(s.do("POST", "/v1/chat/completions", "", model+`"messages":[`+many[:len(many)-1]+`]}`), 200, "run_")
	s.want(s.do("POST", "/v1/chat/completions", "", model+`"messages":[`+many+many[:len(many)-1]+`]}`), 400, "2000")
}

// TestALengthThatIsTooMuchIsRefusedAtOnce checks that a body whose declared length is too large is
// refused before it is sent.
func TestALengthThatIsTooMuchIsRefusedAtOnce(t *testing.T) {
	s := start(t, t.TempDir(), counting(t), nil)
	for _, path := range []string{"/v1/chat/completions", "/v1/runs", "/v1/files", "/none"} {
		t.Run(path, func(t *testing.T) {
			conn, err := net.Dial("tcp", s.web.Listener.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			_, err = fmt.Fprintf(conn, "POST %s HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"+
				"Content-Length: 1000000000000000000\r\n\r\n{", path)
			if err != nil {
				t.Fatal(err)
			}
			_ = conn.SetReadDeadline(time.Now().Add(time.Minute)) // so that a failure has a message
			got, err := http.ReadResponse(bufio.NewReader(conn), nil)
			if err != nil {
				t.Fatal(err)
			}
			text, err := io.ReadAll(got.Body)
			_ = got.Body.Close()
			if err != nil || got.StatusCode != http.StatusRequestEntityTooLarge ||
				!strings.Contains(string(text), "body_too_large") {
				t.Errorf("%s: %s %s, %v", path, got.Status, text, err)
			}
			_ = conn.Close()
		})
	}
}

// TestAClientThatSendsAllBeforeItReadsGetsTheRefusal checks clients that send the whole body before
// they read, as many do.
func TestAClientThatSendsAllBeforeItReadsGetsTheRefusal(t *testing.T) {
	s := start(t, t.TempDir(), counting(t), roomy)
	body := `{"question":[` + strings.Repeat("[],", 5<<20) + `[]]}`
	conn, err := net.Dial("tcp", s.web.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_, err = fmt.Fprintf(conn, "POST /v1/runs HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"+
		"Content-Length: %d\r\n\r\n%s", len(body), body)
	if err != nil {
		t.Fatal(err)
	}
	got, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer got.Body.Close()
	if got.StatusCode != http.StatusRequestEntityTooLarge {
		t.Errorf("the answer is %s", got.Status)
	}
}

// TestAPageOfRunsIsBoundedInBytes checks that a page of a thousand long questions, which would take
// gigabytes, is shortened.
func TestAPageOfRunsIsBoundedInBytes(t *testing.T) {
	s := start(t, t.TempDir(), counting(t), nil)
	const all = 40
	spec := `{"profile":"default","question":"` + strings.Repeat("q", 1<<20) + `"}`
	for i := range all {
		_, err := s.server.db.ExecContext(t.Context(), `INSERT INTO runs
			(id, tenant, key, spec, question, background, status, created) VALUES (?, ?, ?, ?, ?, ?, ?, ?)`,
			fmt.Sprint("run_", i), "local", "local", spec, "q", true, "failed", i)
		if err != nil {
			t.Fatal(err)
		}
	}

	seen, after := 0, ""
	for pages := 1; ; pages++ {
		got := s.do("GET", "/v1/runs?limit=1000&after="+after, "", nil)
		s.want(got, 200, "run_")
		listed, _ := s.field(got, "runs").([]any)
		if seen += len(listed); len(got.body) > 17<<20 {
			t.Errorf("a page has %d bytes", len(got.body))
		}
		if after = s.text(got, "next"); after == "" {
			if seen != all || pages != 3 {
				t.Errorf("%d pages have %d runs", pages, seen)
			}
			return
		}
	}
}

// TestAFormWithALongHeadIsRefused checks a form whose head is long; the library would keep 10 MiB
// of the head.
func TestAFormWithALongHeadIsRefused(t *testing.T) {
	s := start(t, t.TempDir(), counting(t), roomy)
	form := func(head string) string {
		return "--b\r\nContent-Disposition: form-data; name=\"purpose\"\r\n\r\nuser_data\r\n--b\r\n" + head +
			"Content-Disposition: form-data; name=\"file\"; filename=\"a\"\r\n\r\nhay\r\n--b--\r\n"
	}
	for head, want := range map[string]int{
		"": 200, "X: " + strings.Repeat("x", 10_000) + "\r\n": 200, "X: " + strings.Repeat("x", 1<<19) + "\r\n": 400,
	} {
		got := s.do("POST", "/v1/files", "", form(head), "Content-Type", "multipart/form-data; boundary=b")
		if got.status != want {
			t.Errorf("a head of %d bytes: %d %s", len(head), got.status, got.body)
		}
	}
}
