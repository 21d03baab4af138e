package main

import (
	"fmt"
	"io"
	"net/http"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rlmhq/rlm/internal/testing/skip"
)

// outcomeOf runs rlm and returns its output and exit code.
func outcomeOf(t *testing.T, dir string, args ...string) (string, int) {
	t.Helper()
	cmd := exec.Command("rlm", args...)
	cmd.Dir = dir
	said, err := cmd.CombinedOutput()
	if err != nil && cmd.ProcessState == nil {
		t.Fatal(err)
	}
	return string(said), cmd.ProcessState.ExitCode()
}

// TestADataFolderHasOneServer checks that a second server on the same folder is refused, with an
// error that names the first. Commands for this folder work, or are refused in the same way. After
// the first server is killed, the next one gets the folder immediately, and no stored data is lost.
func TestADataFolderHasOneServer(t *testing.T) {
	needSignals(t)
	skip.UnderRace(t)
	skip.WithoutJail(t)
	dir := t.TempDir()
	writeFile(t, dir, "s.yaml", "version: 1\nrules:\n  - reply: hi\n")
	s := startServing(t, dir, "--model", "scripted/s.yaml")
	data := filepath.Join(dir, "data")
	second := []string{
		"serve", "--allow-sampled", "--listen", "127.0.0.1:0", "--data", data, "--model", "scripted/s.yaml",
	}
	owner := fmt.Sprintf("in use by process %d on ", s.cmd.Process.Pid)

	var session struct{ ID string }
	s.ask("POST", "/v1/sessions", `{"name":"kept"}`, &session)
	snippets := "/v1/sessions/" + session.ID + "/exec"
	s.ask("POST", snippets, `{"source":"log = [0]"}`, &struct{}{})
	for _, args := range [][]string{second, {"store", "check", "--repair", "--data", data}} {
		said, code := outcomeOf(t, dir, args...)
		if code != 2 || !strings.Contains(said, owner) || !strings.Contains(said, "stop that process first") {
			t.Errorf("rlm %v ends with %d and %s, want %q", args, code, said, owner)
		}
	}
	for _, step := range []struct {
		want string
		args []string
	}{
		{"rlm_", []string{"keys", "create", "alice", "--data", data}},
		{"alice", []string{"keys", "list", "--data", data}},
		{"all is whole", []string{"store", "check", "--data", data}},
		{"settings are right", append(second, "--check")},
	} {
		said, code := outcomeOf(t, dir, step.args...)
		if code != 0 || !strings.Contains(said, step.want) {
			t.Errorf("rlm %v ends with %d and %s, want %q", step.args, code, said, step.want)
		}
	}
	s.ask("POST", snippets, `{"source":"log.append(1)"}`, &struct{}{})
	var saved struct{ Snippets int }
	for begun := time.Now(); saved.Snippets < 2; time.Sleep(50 * time.Millisecond) {
		s.ask("GET", "/v1/sessions/"+session.ID, "", &saved)
		if time.Since(begun) > patience {
			t.Fatal("the session is never saved")
		}
	}

	if err := s.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = s.cmd.Wait()
	next := startServing(t, dir, "--model", "scripted/s.yaml")
	var got struct {
		Echo string
		Lost *struct{}
	}
	next.ask("POST", snippets, `{"source":"log"}`, &got)
	if got.Echo != "[0, 1]" || got.Lost != nil {
		t.Errorf("after a kill, the session has %+v", got)
	}
	interrupt(t, next.cmd)
	if code := exitCodeOf(t, next.cmd); code != 0 {
		t.Errorf("the next server ends with code %d", code)
	}
}

// TestPartsOfDeadUploadsAreDeleted kills a server during an upload, and checks that the part is
// deleted later.
func TestPartsOfDeadUploadsAreDeleted(t *testing.T) {
	needSignals(t)
	skip.UnderRace(t)
	skip.WithoutJail(t)
	dir := t.TempDir()
	writeFile(t, dir, "s.yaml", "version: 1\nrules:\n  - reply: hi\n")
	s := startServing(t, dir, "--model", "scripted/s.yaml")

	r, w := io.Pipe()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.address+"/v1/files", r)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Content-Type", "multipart/form-data; boundary=b")
	go func() {
		if got, err := http.DefaultClient.Do(request); err == nil {
			_ = got.Body.Close()
		}
	}()
	part := "--b\r\nContent-Disposition: form-data; name=\"file\"; filename=\"x\"\r\n\r\n" + strings.Repeat("x", 1<<20)
	if _, err := io.WriteString(w, part); err != nil {
		t.Fatal(err)
	}
	filesBelow := func() (all []string) {
		for _, folder := range []string{"incoming", "files"} {
			found, err := filepath.Glob(filepath.Join(dir, "data", folder, "*"))
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, found...)
		}
		return all
	}
	for begun := time.Now(); len(filesBelow()) == 0; time.Sleep(10 * time.Millisecond) {
		if time.Since(begun) > patience {
			t.Fatal("the upload never begins")
		}
	}

	if err := s.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = s.cmd.Wait()
	_ = w.Close()
	startServing(t, dir, "--model", "scripted/s.yaml")
	if left := filesBelow(); len(left) > 0 {
		t.Errorf("parts are left: %v", left)
	}
}
