package server

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rlmhq/rlm/internal/serve/problem"
	"github.com/rlmhq/rlm/internal/testing/smalldisk"
)

// fill fills the disk of a folder, but for some bytes, until free is called.
func fill(t *testing.T, dir string, but int) (free func()) {
	t.Helper()
	path := filepath.Join(dir, "filler")
	file, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	size := int64(0)
	for block := make([]byte, 4096); err == nil; size += int64(len(block)) {
		_, err = file.Write(block)
	}
	if !errors.Is(err, unix.ENOSPC) {
		t.Fatal(err)
	}
	if err := file.Truncate(size - int64(but)); err != nil {
		t.Fatal(err)
	}
	return func() {
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
	}
}

// TestAFullDiskLosesNothing fills the disk of the data folder. Requests that have to write get an
// error that says so, others go on. What was kept stays, and what could not be kept is kept once
// there is space again, also by the server's end.
func TestAFullDiskLosesNothing(t *testing.T) {
	dir := t.TempDir()
	smalldisk.Mount(t, dir, "size=24m")
	model := newHeld(counting(t))
	s := start(t, dir, model, func(o *Options) { o.Rest, o.MaxFile = time.Millisecond, 1<<20 })
	run := func(question string) string {
		return s.text(s.do("POST", "/v1/runs", "", object{
			"question": question, "contexts": []object{{"text": hay}},
		}), "id")
	}
	done := run("how many?")
	s.do("GET", "/v1/runs/"+done+"/events", "", nil) // until it ends
	file := s.upload("", hay)
	kept := s.open("", object{"name": "kept"})
	s.exec(kept, "", "n = 7; n", "7")
	s.awaitSaved(kept)

	large := s.open("", object{"name": "large"})
	waiting := run("wait")
	<-model.asked
	free := fill(t, dir, 1<<20)
	s.exec(large, "", "import os\nx = os.urandom(4 << 20); len(x)", "4194304") // too large to be saved
	for !strings.Contains(s.logs.String(), "a session cannot be saved") {
		time.Sleep(time.Millisecond)
	}
	free()
	free = fill(t, dir, 0)
	close(model.release) // its next turn cannot be kept
	s.do("GET", "/v1/runs/"+waiting+"/events", "", nil)

	big := strings.Repeat("x", 500_000)
	for _, c := range []struct {
		method, path string
		body         any
	}{
		{"POST", "/v1/runs", object{"question": "how many?", "contexts": []object{{"text": big}}}},
		{"POST", "/v1/sessions", object{"contexts": []object{{"text": big}}}},
		{"POST", kept + "/contexts", object{"contexts": []object{{"text": big}}}},
		{"POST", kept + "/snapshots", nil},
		{"POST", "/v1/responses", object{"model": "rlm/default", "background": true, "input": []object{{
			"role": "user", "content": []object{{"type": "input_text", "text": big}},
		}}}},
	} {
		got := s.do(c.method, c.path, "", c.body)
		if got.status != 507 || !strings.Contains(got.body, "disk_full") {
			t.Errorf("%s %s on a full disk gives %d %.300s", c.method, c.path, got.status, got.body)
		}
	}
	s.want(s.do("GET", "/healthz", "", nil), 200, "ok")
	s.want(s.do("GET", "/v1/runs/"+done, "", nil), 200, `"answer":"200"`)
	s.want(s.do("GET", "/v1/files/"+file+"/content", "", nil), 200, hay)
	s.want(s.do("GET", kept+"/variables", "", nil), 200, `{"name":"n","kind":"int"}`)

	free()
	s.exec(kept, "", "n += 1; n", "8")
	for !s.isOver(waiting) { // its end can be kept now
		time.Sleep(10 * time.Millisecond)
		if err := s.server.manager.Wake(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	s.drain()
	s.stop()

	next := start(t, dir, counting(t), nil)
	next.exec(kept, "", "n", "8")
	got := next.exec(large, "", "len(x)", "4194304")
	if next.field(got, "lost") != nil {
		t.Errorf("something is lost: %s", got.body)
	}
	next.want(next.do("GET", "/v1/runs/"+done, "", nil), 200, `"answer":"200"`)
	if !next.isOver(waiting) {
		t.Error("the run that could not go on never ends")
	}
	next.want(next.do("POST", "/v1/runs/"+waiting+"/continue", "", object{}), 200, waiting)
	next.do("GET", "/v1/runs/"+waiting+"/events", "", nil)
	next.want(next.do("GET", "/v1/runs/"+waiting, "", nil), 200, `"answer":"200"`)

	log, err := os.ReadFile(filepath.Join(dir, "audit.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	whole := 0
	for line := range strings.Lines(string(log)) {
		if json.Valid([]byte(line)) {
			whole++
		}
	}
	if whole < 10 || !strings.Contains(string(log), waiting+"/continue") {
		t.Errorf("the audit log has %d whole lines: %s", whole, log)
	}
}

// awaitSaved waits until a session was saved.
func (s *tested) awaitSaved(path string) {
	s.Helper()
	for {
		var unsaved bool
		err := s.server.db.QueryRowContext(s.Context(), `SELECT unsaved FROM sessions WHERE id = ?`,
			strings.TrimPrefix(path, "/v1/sessions/")).Scan(&unsaved)
		if err != nil {
			s.Fatal(err)
		}
		if !unsaved {
			return
		}
		time.Sleep(time.Millisecond)
	}
}

// isOver reports whether a run has ended.
func (s *tested) isOver(id string) bool {
	s.Helper()
	status := s.text(s.do("GET", "/v1/runs/"+id, "", nil), "status")
	return status != "running" && status != "queued"
}

// TestAFolderThatCannotBeWrittenIsRefused: a server on a disk that is mounted for reading says so at
// its start.
func TestAFolderThatCannotBeWrittenIsRefused(t *testing.T) {
	dir := t.TempDir()
	smalldisk.Mount(t, dir, "size=24m")
	var options Options
	t.Run("before", func(t *testing.T) {
		s := start(t, dir, counting(t), nil)
		s.runToEnd("")
		options = s.server.Options
	})
	smalldisk.MakeReadOnly(t, dir)
	s, err := New(t.Context(), options)
	if err == nil || !strings.Contains(err.Error(), dir) || !problem.IsDisk(err) {
		t.Errorf("a server starts on a folder that it cannot write: %v", err)
	}
	if err == nil {
		_ = s.Close()
	}
}

// TestAServerIsNotReadyWhileItsDiskIsFull fills the disk nearly, wholly, and makes it read-only.
func TestAServerIsNotReadyWhileItsDiskIsFull(t *testing.T) {
	dir := t.TempDir()
	smalldisk.Mount(t, dir, "size=24m")
	s := start(t, dir, counting(t), nil)
	ready := func(status int, text string) {
		t.Helper()
		s.server.disk.looked = time.Time{}
		got := s.do("GET", "/readyz", "", nil)
		s.want(got, status, text)
		if strings.Contains(got.body, dir) {
			t.Errorf("anybody learns of the folder: %s", got.body)
		}
	}
	ready(200, "ready")
	free := fill(t, dir, 1<<20)
	ready(503, "disk_full")
	s.want(s.do("GET", "/healthz", "", nil), 200, "ok")
	free()
	ready(200, "ready")
	free = fill(t, dir, 0)
	ready(503, "disk_full")
	free()
	ready(200, "ready")
	if !strings.Contains(s.logs.String(), "the data folder cannot take more") {
		t.Errorf("the log does not say why: %s", s.logs)
	}
}

// TestADiskThatCannotBeWrittenIsFound looks at a disk that is mounted for reading.
func TestADiskThatCannotBeWrittenIsFound(t *testing.T) {
	dir := t.TempDir()
	smalldisk.Mount(t, dir, "size=24m")
	d := disk{dir: dir}
	if err := d.check(func(string, ...any) {}); err != nil {
		t.Error(err)
	}
	smalldisk.MakeReadOnly(t, dir)
	if err := d.check(func(string, ...any) {}); err != nil {
		t.Error("it looks twice at the same time")
	}
	d.looked = time.Time{}
	if err := d.check(func(string, ...any) {}); err == nil {
		t.Error("a disk that cannot be written is fine")
	}
}
