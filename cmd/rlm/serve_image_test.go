package main

import (
	"crypto/rand"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rlmhq/rlm/internal/testing/skip"
)

// output runs a command and returns its stdout.
func output(t *testing.T, name string, args ...string) string {
	t.Helper()
	cmd := exec.Command(name, args...)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	out, err := cmd.Output()
	if err != nil {
		said := ""
		if exit, ok := err.(*exec.ExitError); ok { //nolint:errorlint // it comes from Output unwrapped
			said = string(exit.Stderr)
		}
		t.Fatalf("%s %q: %v\n%s", name, args, err, said)
	}
	return strings.TrimSpace(string(out))
}

// TestTheContainerImageServes builds the image, starts it as docs/how-to/operations.md does, except
// that it uses the machine's network, and sends a request that needs a key, the model, the data
// folder and a worker.
func TestTheContainerImageServes(t *testing.T) {
	skip.Short(t, "it makes a container image")
	skip.WithoutTier(t, "docker", exec.Command("docker", "info").Run())
	dir, name := t.TempDir(), "rlm-server-test-"+strings.ToLower(rand.Text())
	binary := filepath.Join(dir, "rlm")
	output(t, "go", "build", "-trimpath", "-ldflags", "-s -w", "-o", binary, ".")
	output(t, filepath.Join("..", "..", "deploy", "image.sh"), binary, name)
	t.Cleanup(func() { output(t, "docker", "rmi", name) })
	output(t, "docker", "volume", "create", name)
	t.Cleanup(func() { output(t, "docker", "volume", "rm", name) })

	settings := filepath.Join(dir, "settings") // readable by the container's user
	script, err := os.ReadFile(filepath.Join("..", "..", "examples", "rlm", "served.yaml"))
	if err == nil {
		err = os.Mkdir(settings, 0o755)
	}
	if err == nil {
		err = os.WriteFile(filepath.Join(settings, "served.yaml"), script, 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
	key := output(t, "docker", "run", "--rm", "--network", "none", "-v", name+":/data", name,
		"keys", "create", "alice")
	output(t, "docker", "run", "-d", "--name", name, "--read-only", "--tmpfs", "/tmp", "--cap-drop", "ALL",
		"--security-opt", "no-new-privileges", "-v", name+":/data", "-v", settings+":/etc/rlm:ro",
		"--network", "host", name, "serve", "--listen", "127.0.0.1:0", "--require-key",
		"--allow-nested", "--allow-sampled", "--model", "scripted//etc/rlm/served.yaml")
	t.Cleanup(func() { output(t, "docker", "rm", "-f", name) })

	s := &serving{T: t, key: key}
	for deadline := time.Now().Add(patience); ; time.Sleep(100 * time.Millisecond) {
		logs, err := exec.Command("docker", "logs", name).CombinedOutput()
		if _, address, ok := strings.Cut(string(logs), "rlm: serves "); ok && strings.Contains(address, "\n") {
			s.address, _, _ = strings.Cut(address, "/v1\n")
			break
		}
		if err != nil || time.Now().After(deadline) {
			t.Fatalf("the container does not serve: %s, %v", logs, err)
		}
	}
	var run servedRun
	s.ask("POST", "/v1/runs", `{"question": "How many timeouts?", "contexts": [{"text": "db: timeout"}]}`, &run)
	s.await("/v1/runs/"+run.ID, "answered", &run)
	if string(run.Answer) != "1" {
		t.Errorf("the answer is %s", run.Answer)
	}

	output(t, "docker", "stop", "-t", "60", name)
	if code := output(t, "docker", "inspect", "-f", "{{.State.ExitCode}}", name); code != "0" {
		t.Errorf("the server ends with code %s", code)
	}
}
