package server

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"

	"github.com/rlmhq/rlm/server/internal/access"
)

const socketPath = "/v1/sessions/connect"

// dial opens a WebSocket. Header alternates names and values.
func (s *tested) dial(key string, header ...string) (conn *websocket.Conn, status int, err error) {
	s.Helper()
	head := http.Header{}
	if key != "" {
		head.Set("Authorization", "Bearer "+key)
	}
	for i := 0; i+1 < len(header); i += 2 {
		head.Set(header[i], header[i+1])
	}
	options := &websocket.DialOptions{HTTPHeader: head}
	conn, response, err := websocket.Dial(s.Context(), s.web.URL+socketPath, options)
	if response == nil {
		s.Fatal(err)
	}
	if response.Body != nil {
		_ = response.Body.Close() // the package has read the body
	}

	if err == nil {
		conn.SetReadLimit(1 << 26)
		s.Cleanup(func() { _ = conn.CloseNow() })
	}
	return conn, response.StatusCode, err
}

// socket is a client of the session protocol.
type socket struct {
	*tested
	conn *websocket.Conn
	last int
}

// connect opens a connection and performs the handshake of the protocol.
func (s *tested) connect(key string) *socket {
	s.Helper()
	conn, _, err := s.dial(key)
	if err != nil {
		s.Fatal(err)
	}
	c := &socket{tested: s, conn: conn}
	c.wants(c.ask("initialize", object{"protocol": 1, "client": object{"name": "test"}}), `"protocol":1`)
	return c
}

// send sends a message.
func (c *socket) send(message string) {
	c.Helper()
	if err := c.conn.Write(c.Context(), websocket.MessageText, []byte(message)); err != nil {
		c.Fatal(err)
	}
}

// read returns the next message.
func (c *socket) read() string {
	c.Helper()
	kind, data, err := c.conn.Read(c.Context())
	if err != nil || kind != websocket.MessageText || strings.Contains(string(data), "\n") {
		c.Fatalf("got %v %.200q, %v", kind, data, err)
	}
	return string(data)
}

// ask sends a request and returns its answer. Meanwhile, it answers host calls with the sum of
// their arguments.
func (c *socket) ask(method string, params object) string {
	c.Helper()
	c.last++
	request := object{"jsonrpc": "2.0", "id": c.last, "method": method, "params": params}
	message, err := json.MarshalIndent(request, "", "\t") // line ends are white space
	if err != nil {
		c.Fatal(err)
	}
	c.send(string(message))
	for {
		got := c.read()
		var call struct {
			Method string
			ID     int
			Params struct{ Args []int }
		}
		if err := json.Unmarshal([]byte(got), &call); err != nil || call.Method != "host/call" {
			return got
		}
		sum := 0
		for _, n := range call.Params.Args {
			sum += n
		}
		c.send(`{"jsonrpc":"2.0","id":` + jsonNumber(call.ID) + `,"result":{"value":` + jsonNumber(sum) + `}}`)
	}
}

// wants fails the test unless got contains text.
func (c *socket) wants(got, text string) {
	c.Helper()
	if !strings.Contains(got, text) {
		c.Errorf("the answer is %s, want %s", got, text)
	}
}

func TestASocketHoldsSessions(t *testing.T) {
	s := start(t, t.TempDir(), counting(t), nil)
	c := s.connect("")
	named := object{
		"name": "kept", "durability": "idle",
		"functions": []object{{"name": "add"}}, "contexts": []object{{"name": "log", "text": hay}},
	}
	c.wants(c.ask("session/open", named), `"session":"1"`)
	run := func(session, source string) string {
		return c.ask("session/run", object{"session": session, "source": source})
	}
	c.wants(run("1", "n = add(40, 2) + log.count('needle'); n"), `"echo":"242"`)
	c.wants(c.ask("session/open", object{}), `"session":"2"`)
	c.wants(run("2", "'n' in globals()"), `"echo":"False"`)
	c.wants(c.ask("session/fork", object{"session": "1"}), `"session":"3"`)
	c.wants(run("3", "n += 1; n, add(n, 1)"), `(243, 244)`)
	more := []object{{"name": "more", "value": 7}}
	c.wants(c.ask("session/add", object{"session": "1", "contexts": more}), `"result":{}`)
	file := []object{{"path": "/etc/passwd"}}
	c.wants(c.ask("session/open", object{"contexts": file}), "cannot read files of the server")
	c.wants(c.ask("session/open", object{"limits": object{"wall_ms": 1e9}}), "this server allows")
	c.wants(c.ask("session/open", object{"durability": "idle"}), "a session with a name")
	c.wants(c.ask("session/open", object{"name": "odd", "durability": "odd"}), "give kept or idle")
	c.wants(c.ask("session/snapshot", object{"session": "2", "path": "/tmp/x"}), "cannot write files of the server")

	path := s.open("", object{"name": "kept"})
	s.want(s.do("POST", path+"/exec", "", object{"source": "n"}), 409, "in_use")
	s.want(s.do("GET", path, "", nil), 200, `"durability":"idle"`)
	other := s.connect("")
	other.wants(other.ask("session/open", named), `"kind":"in_use"`)
	c.wants(c.ask("session/close", object{"session": "1"}), `"result":{}`)
	s.exec(path, "", "n, more, 'add' in globals()", "(242, 7, False)")
	again := object{"name": "kept", "functions": []object{{"name": "add"}}}
	other.wants(other.ask("session/open", again), `"session":"1"`)
	other.wants(other.ask("session/variables", object{"session": "1"}), `"name":"n"`)
	other.wants(other.ask("session/run", object{"session": "1", "source": "add(n, 1)"}), `"echo":"243"`)

	s.want(s.do("DELETE", path, "", nil), 204, "")
	other.wants(other.ask("session/run", object{"session": "1", "source": "n"}), `"kind":"unknown_session"`)
	if err := c.conn.Close(websocket.StatusNormalClosure, ""); err != nil {
		t.Error(err)
	}
	_ = other.conn.CloseNow()
	for range 10_000 { // until the server has noticed
		if all, open := s.server.kept.Load(); all == 0 && open == 0 {
			return
		}
		time.Sleep(time.Millisecond)
	}
	t.Error("sessions outlive their connection")
}

// TestTheAuditLogHasTheRequestsOfASocket also checks that the log does not contain the code of
// snippets.
func TestTheAuditLogHasTheRequestsOfASocket(t *testing.T) {
	dir := t.TempDir()
	s := start(t, dir, counting(t), locked)
	c := s.connect(s.key(access.Key{Name: "alice"}))
	c.wants(c.ask("session/open", object{"contexts": []object{{"text": "a"}}, "name": "kept"}), `"session":"1"`)
	c.wants(c.ask("session/run", object{"source": "'a secret'", "session": "1"}), "a secret")
	c.wants(c.ask("session/run", object{"source": "1", "session": "7"}), "there is no session")
	c.wants(c.ask("session/set", object{"names": 1}), "error")

	data, err := os.ReadFile(filepath.Join(dir, "audit.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	begins := `"key":"alice","key_id":"key_\w+","tenant":"alice","action":"WS `
	for _, want := range []string{
		`initialize","outcome":"ok"`,
		`session/open","object":"kept","outcome":"ok"`,
		`session/run","object":"1","outcome":"ok"`,
		`session/run","object":"7","outcome":"unknown_session"`,
		`session/set","outcome":"invalid"`,
	} {
		if !regexp.MustCompile(begins + want).Match(data) {
			t.Errorf("the audit log lacks %s: %s", want, data)
		}
	}
	if strings.Contains(string(data), "a secret") {
		t.Error("the audit log has what a snippet wrote")
	}
}

func TestSocketsAreRefusedWithAReason(t *testing.T) {
	s := start(t, t.TempDir(), counting(t), locked)
	alice := s.key(access.Key{Name: "alice"})
	reader := s.key(access.Key{Name: "reader", Scopes: []access.Scope{access.Read}})
	for _, c := range []struct {
		key    string
		header []string
		status int
	}{
		{"", nil, 401},
		{"rlm_UNKNOWN", nil, 401},
		{reader, nil, 403},
		{alice, []string{"Origin", "https://evil.example.org"}, 403},
		{alice, []string{"Origin", s.web.URL}, 101},
		{alice, nil, 101},
	} {
		conn, status, err := s.dial(c.key, c.header...)
		if status != c.status || (err == nil) != (c.status == 101) {
			t.Errorf("%.8q %v gets %d, %v", c.key, c.header, status, err)
		}
		if err == nil {
			_ = conn.CloseNow()
		}
	}
	s.want(s.do("GET", socketPath, alice, nil), 426, "")
	s.want(s.do("GET", socketPath+"?profile=none", alice, nil), 404, "this server has [default]")

	binary := s.connect(alice)
	if err := binary.conn.Write(t.Context(), websocket.MessageBinary, []byte("{}")); err != nil {
		t.Fatal(err)
	}
	if _, _, err := binary.conn.Read(t.Context()); websocket.CloseStatus(err) != websocket.StatusUnsupportedData {
		t.Error(err)
	}
	large := s.connect(alice)
	_ = large.conn.Write(t.Context(), websocket.MessageText, []byte(strings.Repeat(" ", 2<<20))) // the server ends it
	if _, _, err := large.conn.Read(t.Context()); err == nil {
		t.Error("a message above --max-body is read")
	}
	garbage := s.connect(alice)
	garbage.send("x\n{}")
	garbage.wants(garbage.read(), `"code":-32700`)

	revoked := s.connect(alice)
	if err := s.server.keys.Revoke(t.Context(), "alice"); err != nil {
		t.Fatal(err)
	}
	revoked.wants(revoked.ask("session/open", object{}), "was revoked")
}

func TestTenantsShareNoNamesOfSockets(t *testing.T) {
	s := start(t, t.TempDir(), counting(t), locked)
	alice := s.connect(s.key(access.Key{Name: "alice", Limits: access.Limits{Sessions: 2}}))
	bob := s.connect(s.key(access.Key{Name: "bob"}))
	for i, c := range []*socket{alice, bob} {
		c.wants(c.ask("session/open", object{"name": "same"}), `"session":"1"`)
		c.wants(c.ask("session/run", object{"session": "1", "source": "n = " + jsonNumber(i) + "; n"}), jsonNumber(i))
	}
	alice.wants(alice.ask("session/run", object{"session": "1", "source": "n"}), `"echo":"0"`)
	alice.wants(alice.ask("session/open", object{}), `"session":"2"`)
	alice.wants(alice.ask("session/open", object{}), `"kind":"busy"`)
	alice.wants(alice.ask("session/close", object{"session": "2"}), `"result":{}`)
	alice.wants(alice.ask("session/open", object{}), `"session":"3"`)
}

// TestADrainEndsSockets checks that a drain saves a held session and notifies its client.
func TestADrainEndsSockets(t *testing.T) {
	dir := t.TempDir()
	s := start(t, dir, counting(t), nil)
	c := s.connect("")
	c.wants(c.ask("session/open", object{"name": "kept", "functions": []object{{"name": "add"}}}), `"session":"1"`)
	c.wants(c.ask("session/run", object{"session": "1", "source": "n = add(1, 2); n"}), `"echo":"3"`)
	ended := make(chan error, 1)
	go func() {
		_, _, err := c.conn.Read(t.Context())
		ended <- err
	}()
	s.drain()
	if err := <-ended; websocket.CloseStatus(err) != websocket.StatusGoingAway {
		t.Error(err)
	}
	s.stop()

	next := start(t, dir, counting(t), nil)
	next.exec(next.open("", object{"name": "kept"}), "", "n", "3")
}
