package server

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rlmhq/rlm/server/internal/access"
)

// TestAnotherNameIsAnotherRequest checks that an Idempotency-Key cannot be reused for another name,
// and that a fork cannot take the name of another session.
func TestAnotherNameIsAnotherRequest(t *testing.T) {
	s := start(t, t.TempDir(), counting(t), nil)
	s.want(s.do("POST", "/v1/sessions", "", object{"name": "a"}, "Idempotency-Key", "w"), 200, `"name":"a"`)
	s.want(s.do("POST", "/v1/sessions", "", object{"name": "b"}, "Idempotency-Key", "w"), 422, "take a new one")
	path := s.open("", object{"name": "b"})
	got := s.do("POST", path+"/fork", "", object{"name": "a"})
	s.want(got, 409, "choose another name")
	if got.header.Get("Retry-After") != "" {
		t.Error("the answer says that the same request may succeed later")
	}
}

// send sends the beginning of a request for a session, with a body of size bytes.
func (s *tested) send(size int, part string) net.Conn {
	s.Helper()
	conn, err := net.Dial("tcp", s.web.Listener.Addr().String())
	if err != nil {
		s.Fatal(err)
	}
	s.Cleanup(func() { _ = conn.Close() })
	_, err = fmt.Fprintf(conn, "POST /v1/sessions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"+
		"Content-Length: %d\r\n\r\n%s", size, part)
	if err != nil {
		s.Fatal(err)
	}
	return conn
}

func TestABodyThatBreaksOffIsAnErrorOfTheClient(t *testing.T) {
	s := start(t, t.TempDir(), counting(t), nil)
	conn := s.send(100, `{"name":`)
	if err := conn.(*net.TCPConn).CloseWrite(); err != nil {
		t.Fatal(err)
	}
	got, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer got.Body.Close()
	if got.StatusCode != http.StatusBadRequest {
		t.Errorf("the answer is %s", got.Status)
	}
}

// TestSlowBodiesTogetherAreBounded checks the memory bound with many large bodies that never end.
func TestSlowBodiesTogetherAreBounded(t *testing.T) {
	s := start(t, t.TempDir(), counting(t), nil)
	const size, clients = 1_000_000, 12 // one tenant may have 8 MiB
	refused := make(chan string, clients)
	var all []net.Conn
	var reading sync.WaitGroup
	for range clients {
		conn := s.send(size, strings.Repeat(" ", size-1))
		all = append(all, conn)
		reading.Go(func() {
			if answer, _ := io.ReadAll(conn); len(answer) > 0 {
				refused <- string(answer)
			}
		})
	}
	if answer := <-refused; !strings.Contains(answer, "HTTP/1.1 503") ||
		!strings.Contains(answer, `"code":"busy"`) {
		t.Errorf("the answer is %s", answer)
	}
	for _, conn := range all {
		_ = conn.Close()
	}
	reading.Wait()
	s.open("", object{})
}

func TestValuesThatWouldFillTheMemoryAreRefused(t *testing.T) {
	s := start(t, t.TempDir(), counting(t), func(o *Options) { o.MaxBody = 64 << 20 })
	path := s.open("", object{})
	many := `{"value":[` + strings.Repeat("[],", 10<<20) + `0]}`
	s.want(s.do("PUT", path+"/variables/x", "", many, "Content-Type", "application/json"), 413, "too many values")
}

func TestASnapshotIsDeletedOnce(t *testing.T) {
	s := start(t, t.TempDir(), counting(t), nil)
	path := s.open("", object{})
	for range 10 {
		taken := s.do("POST", path+"/snapshots", "", nil)
		s.want(taken, 200, "snap_")
		one := path + "/snapshots/" + s.text(taken, "id")
		var mu sync.Mutex
		var both sync.WaitGroup
		statuses := map[int]int{}
		for range 4 {
			both.Go(func() {
				got := s.do("DELETE", one, "", nil)
				mu.Lock()
				defer mu.Unlock()
				statuses[got.status]++
			})
		}
		both.Wait()
		if statuses[204] != 1 || statuses[404] != 3 {
			t.Fatalf("the answers are %v", statuses)
		}
	}
}

// TestUnfinishedContentsOfAKilledServerAreFinished starts a server on contents that are not
// committed yet, on one that is committed but not in its place, and on one that was being deleted.
func TestUnfinishedContentsOfAKilledServerAreFinished(t *testing.T) {
	dir := t.TempDir()
	s := start(t, dir, counting(t), nil)
	path := s.open("", object{"name": "kept"})
	s.exec(path, "", "n = 1; n", "1")
	s.want(s.do("POST", path+"/snapshots", "", nil), 200, "")
	file := s.upload("", "a file")
	s.stop()

	id := path[len("/v1/sessions/"):]
	incoming, outgoing := filepath.Join(dir, "incoming"), filepath.Join(dir, "outgoing")
	state := filepath.Join(dir, "sessions", id, "state")
	moved := filepath.Join(incoming, "sessions%2F"+id+"%2Fstate")
	upload, leaving := filepath.Join(dir, "files", file), filepath.Join(outgoing, "files%2F"+file)
	parts := []string{
		filepath.Join(incoming, "files%2Ffile-dead"), filepath.Join(incoming, "x"),
		filepath.Join(outgoing, "files%2Fgone"),
	}
	for _, part := range parts {
		if err := os.WriteFile(part, []byte("a part"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(os.Rename(state, moved), os.Rename(upload, leaving)); err != nil {
		t.Fatal(err)
	}

	next := start(t, dir, counting(t), nil)
	for _, gone := range append(parts, moved, leaving) {
		if _, err := os.Stat(gone); err == nil {
			t.Errorf("%s is still there", gone)
		}
	}
	if got := next.exec(path, "", "n", "1"); next.field(got, "lost") != nil {
		t.Errorf("something is lost: %s", got.body)
	}
	next.want(next.do("GET", "/v1/files/"+file+"/content", "", nil), 200, "a file")
	next.want(next.do("GET", path+"/snapshots", "", nil), 200, "snap_")
}

// TestSavedVariablesCountForTheKey checks that saved variables count against the quota of their
// key.
func TestSavedVariablesCountForTheKey(t *testing.T) {
	s := start(t, t.TempDir(), counting(t), func(o *Options) { o.Open, o.OpenSessions = false, 1 })
	key := s.key(access.Key{Name: "small", Limits: access.Limits{Files: 20_000}})
	path := s.open(key, object{})
	other := s.open(key, object{})
	s.exec(path, key, "import os\nx = os.urandom(50_000); len(x)", "50000")
	s.exec(other, key, "1", "1") // the first session is saved and makes room
	s.want(s.do("POST", path+"/exec", key, object{"source": "x *= 2"}), 413, "quota_used_up")
	s.want(s.do("PUT", path+"/variables/y", key, object{"value": 1}), 413, "quota_used_up")
	s.want(s.do("DELETE", path+"/variables/x", key, nil), 204, "")
	s.want(s.do("GET", other+"/variables/y", key, nil), 400, "NameError") // the first is saved again
	s.exec(path, key, "'x' in globals()", "False")
}

// TestATenantLeavesPlacesForOthers fills as many places as possible with sessions that cannot be
// evicted, and checks that another tenant still gets one.
func TestATenantLeavesPlacesForOthers(t *testing.T) {
	s := start(t, t.TempDir(), counting(t), locked)
	greedy, other := s.key(access.Key{Name: "greedy"}), s.key(access.Key{Name: "other"})
	for range 3 {
		path := s.open(greedy, object{"out": true})
		s.exec(path, greedy, "1", "1")
	}
	s.want(s.do("POST", "/v1/sessions", greedy, object{}), 503, "other places are for other tenants")
	path := s.open(other, object{})
	s.exec(path, other, "1", "1")
	path = s.open(other, object{}) // takes the place of the first session
	s.exec(path, other, "1", "1")
}

// TestASnapshotIsInterrupted interrupts a snapshot of a variable whose copying never ends.
func TestASnapshotIsInterrupted(t *testing.T) {
	s := start(t, t.TempDir(), counting(t), nil)
	path := s.open("", object{})
	s.exec(path, "", "class X:\n    def __reduce__(self):\n        while True: pass\nx, y = X(), 1\ny", "1")
	answers := make(chan answer, 1)
	go func() { answers <- s.do("POST", path+"/snapshots", "", nil) }()
	for s.text(s.do("GET", path, "", nil), "status") != "running" {
		time.Sleep(time.Millisecond)
	}
	s.want(s.do("POST", path+"/interrupt", "", nil), 204, "")
	s.want(<-answers, 409, `"code":"interrupted"`)
	s.exec(path, "", "y", "1")
	s.want(s.do("DELETE", path, "", nil), 204, "")
}

// TestSessionsAreUsedByManyAtOnce mixes all requests that change sessions. It checks that none
// breaks the server, and that its counts are right after all sessions are closed.
func TestSessionsAreUsedByManyAtOnce(t *testing.T) {
	s := start(t, t.TempDir(), counting(t), func(o *Options) { o.OpenSessions, o.Rest = 2, 1 })
	names := []string{"a", "b", "c"}
	requests := 40
	if testing.Short() {
		requests = 8 // each may save one session and restore another
	}

	var all sync.WaitGroup
	for client := range 6 {
		random := rand.New(rand.NewPCG(1, uint64(client)))
		all.Go(func() {
			for range requests {
				name := names[random.IntN(len(names))]
				got := s.do("POST", "/v1/sessions", "", object{"name": name})
				if got.status == 200 {
					path := "/v1/sessions/" + s.text(got, "id")
					switch random.IntN(7) {
					case 0:
						got = s.do("DELETE", path, "", nil)
					case 1:
						got = s.do("POST", path+"/fork", "", object{"name": names[random.IntN(len(names))]})
					case 2:
						got = s.do("POST", path+"/snapshots", "", nil)
					case 3:
						got = s.do("POST", path+"/interrupt", "", nil)
					case 4:
						got = s.do("POST", path+"/contexts", "", object{"contexts": []object{{"text": "x"}}})
					default:
						got = s.do("POST", path+"/exec", "", object{"source": "n = 1"})
					}
				}
				if got.status >= 500 && got.status != 503 {
					t.Errorf("an answer is %d %s: %s", got.status, got.body, s.logs)
				}
			}
		})
	}
	all.Wait()

	for _, name := range names {
		got := s.do("POST", "/v1/sessions", "", object{"name": name})
		s.want(got, 200, "")
		s.want(s.do("DELETE", "/v1/sessions/"+s.text(got, "id"), "", nil), 204, "")
	}
	s.want(s.do("GET", "/v1/sessions", "", nil), 200, `"sessions":[]`)
	if total, open := s.server.kept.Load(); total != 0 || open != 0 {
		t.Errorf("%d sessions are counted, %d of them open", total, open)
	}
	folders, err := os.ReadDir(filepath.Join(string(s.server.Dir), "sessions"))
	if err != nil || len(folders) > 0 {
		t.Errorf("there are %d folders, %v", len(folders), err)
	}
}

// TestStrangersFillNoLog sends requests with unknown keys and long paths, and checks that the logs
// contain only some of them, shortened, but each change of a key.
func TestStrangersFillNoLog(t *testing.T) {
	dir := t.TempDir()
	s := start(t, dir, counting(t), locked)
	key := s.key(access.Key{Name: "alice"})
	const requests = 1_000
	path := "/v1/" + strings.Repeat("x", 10_000)
	for range requests {
		if got := s.do("POST", path, "rlm_GUESSED", nil); got.status != 401 {
			t.Fatalf("a stranger gets %d", got.status)
		}
	}
	s.open(key, object{})
	log, err := os.ReadFile(filepath.Join(dir, "audit.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	if lines := strings.Count(string(log), "\n"); lines < 100 || lines > requests/2 {
		t.Errorf("the audit log has %d lines of %d requests", lines, requests)
	}
	if !strings.Contains(string(log), `"key":"alice"`) || !strings.Contains(string(log), `"missed":`) {
		t.Errorf("the audit log does not have all changes, or does not say what it lacks")
	}
	if size := len(log) + len(s.logs.String()); size > requests*1_000 {
		t.Errorf("the logs have %d bytes", size)
	}
}
