package main

import (
	"bufio"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rlmhq/rlm/internal/testing/skip"
)

// servedScript is a model whose snippet sends a mail, and servedTool is the tool for that.
const (
	servedScript = `version: 1
rules:
  - when: {}
    reply: |
      ` + "```repl" + `
      FINAL(send_mail("ann"))
      ` + "```" + `
`
	servedTool = `import json, sys
print(json.dumps({"tools": [{"name": "send_mail", "description": "Sends a mail.", "parameters": {
    "type": "object", "properties": {"to": {"type": "string"}}}}]}), flush=True)
for line in sys.stdin:
    call = json.loads(line)
    if "id" in call:
        print(json.dumps({"id": call["id"], "result": "sent to " + call["arguments"]["to"]}), flush=True)
`
)

// serving is a process of rlm serve.
type serving struct {
	*testing.T
	cmd     *exec.Cmd
	address string
	key     string // empty without a key
}

// startServing starts rlm serve with an empty data folder and additional arguments.
func startServing(t *testing.T, dir string, args ...string) *serving {
	t.Helper()
	all := []string{"serve", "--allow-sampled", "--listen", "127.0.0.1:0", "--data", filepath.Join(dir, "data")}
	s := &serving{T: t, cmd: exec.Command("rlm", append(all, args...)...)}
	s.cmd.Dir = dir
	notes, err := s.cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := s.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.cmd.Process.Kill() }) // fails if the server has ended

	lines := bufio.NewScanner(notes)
	for lines.Scan() {
		if _, address, ok := strings.Cut(lines.Text(), "serves "); ok {
			s.address = strings.TrimSuffix(address, "/v1")
			go func() {
				for lines.Scan() { // so that the server can keep writing
				}
			}()
			return s
		}
		t.Log(lines.Text())
	}
	t.Fatalf("the server has ended: %v", s.cmd.Wait())
	return nil
}

// ask sends a request and decodes its answer.
func (s *serving) ask(method, path, body string, into any) {
	s.Helper()
	request, err := http.NewRequestWithContext(s.Context(), method, s.address+path, strings.NewReader(body))
	if err != nil {
		s.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/json")
	if s.key != "" {
		request.Header.Set("Authorization", "Bearer "+s.key)
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		s.Fatal(err)
	}
	defer answer.Body.Close()
	if err := json.NewDecoder(answer.Body).Decode(into); err != nil || answer.StatusCode != http.StatusOK {
		s.Fatalf("%s %s: %s, %v", method, path, answer.Status, err)
	}
}

// servedRun is a run in the server's description.
type servedRun struct {
	ID, Status string
	Reason     string
	Answer     json.RawMessage
	Waiting    []struct{ ID string }
}

// TestAServedRunIsTracedAndWokenByTheCommand lets a served run wait for a decision, which rlm runs
// approve makes in the server's store. It checks that the run's spans arrive at a collector.
func TestAServedRunIsTracedAndWokenByTheCommand(t *testing.T) {
	needSignals(t)
	skip.UnderRace(t) // under the detector, workers need more memory than allowed
	skip.WithoutJail(t)
	_, err := exec.LookPath("python3") // the tool is written in Python
	skip.WithoutTier(t, "local", err)
	dir := t.TempDir()
	for name, text := range map[string]string{"s.yaml": servedScript, "mail.py": servedTool} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	sink := &spanSink{}
	collector := httptest.NewServer(sink)
	defer collector.Close()
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", collector.URL)
	s := startServing(t, dir, "--model", "scripted/s.yaml", "--bypass", "0", "--otel", "otlp",
		"--tool-command", "python3 mail.py", "--approve", "ask *")

	var run servedRun
	s.ask("POST", "/v1/runs", `{"question": "tell ann"}`, &run)
	path := "/v1/runs/" + run.ID
	s.await(path, "parked", &run)
	approve := exec.Command("rlm", "runs", "approve", run.Waiting[0].ID, "--store", filepath.Join(dir, "data", "store"))
	said, err := approve.CombinedOutput()
	if err != nil || !strings.Contains(string(said), "goes on by itself") {
		t.Fatalf("%s, %v", said, err)
	}
	s.await(path, "answered", &run)
	if string(run.Answer) != `"sent to ann"` {
		t.Errorf("the answer is %q", run.Answer)
	}

	interrupt(t, s.cmd)
	if code := exitCodeOf(t, s.cmd); code != 0 {
		t.Errorf("the server ends with code %d", code)
	}
	sink.mu.Lock()
	defer sink.mu.Unlock()
	for _, name := range []string{"/v1/traces::rlm_run", "/v1/traces::rlm_iteration_1"} {
		if !slices.Contains(sink.names, name) {
			t.Errorf("there is no span %s among %v", name, sink.names)
		}
	}
}

// readmeRequest matches the path and the body of the request in the README.
var readmeRequest = regexp.MustCompile(
	`curl --retry 9 --retry-connrefused http://127\.0\.0\.1:7070(\S+) \\\n  ` +
		`-H 'Content-Type: application/json' \\\n  -d '([^']+)'`)

// TestTheReadmesServerAnswers sends the README's request to the README's server.
func TestTheReadmesServerAnswers(t *testing.T) {
	needSignals(t)
	skip.UnderRace(t) // under the detector, workers need more memory than allowed
	skip.WithoutJail(t)
	text, err := os.ReadFile(filepath.Join("..", "..", "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, ok := strings.Cut(string(text), "\nrlm serve ")
	line, _, _ := strings.Cut(rest, " &\n")
	found := readmeRequest.FindStringSubmatch(rest)
	if !ok || found == nil {
		t.Fatal("the README has no server and no request")
	}

	script := filepath.Join("..", "..", "examples", "rlm", "served.yaml")
	script, err = filepath.Abs(script)
	if err != nil {
		t.Fatal(err)
	}
	line = strings.Replace(line, "examples/rlm/served.yaml", script, 1)
	s := startServing(t, t.TempDir(), strings.Fields(line)...)
	var run servedRun
	s.ask("POST", found[1], found[2], &run)
	s.await("/v1/runs/"+run.ID, "answered", &run)
	if string(run.Answer) != "1" {
		t.Errorf("the answer is %s", run.Answer)
	}
	interrupt(t, s.cmd)
	if code := exitCodeOf(t, s.cmd); code != 0 {
		t.Errorf("the server ends with code %d", code)
	}
}

// await reads a run until it has the given status.
func (s *serving) await(path, status string, run *servedRun) {
	s.Helper()
	for deadline := time.Now().Add(patience); run.Status != status; {
		*run = servedRun{}
		s.ask("GET", path, "", run)
		time.Sleep(20 * time.Millisecond)
		if time.Now().After(deadline) {
			s.Fatalf("the run is %s, want %s", run.Status, status)
		}
	}
}
