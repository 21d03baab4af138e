package server

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rlmhq/rlm"
	"github.com/rlmhq/rlm/internal/testing/smalldisk"
	"github.com/rlmhq/rlm/repl/llm"
	"github.com/rlmhq/rlm/server/internal/access"
	"github.com/rlmhq/rlm/server/internal/failures"
)

// fill fills a folder's disk, except for some bytes, until free is called.
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

// TestAFullDiskLosesNothing fills the disk of the data folder. It checks that requests that must
// write get an error with the reason, and that others succeed. Stored data must remain, and other
// data must be stored once there is space again, even if the server ends first.
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
	s.do("GET", "/v1/runs/"+done+"/events", "", nil) // until the run ends
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
	close(model.release) // the run's next turn cannot be stored
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
	for !s.isOver(waiting) { // the end of the run can be stored now
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

// paid counts the calls of a model. If before is set, it is called before each call.
type paid struct {
	llm.Provider
	calls  atomic.Int64
	before func()
}

func (p *paid) Complete(ctx context.Context, r llm.Request, stream func(string)) (llm.Response, error) {
	p.calls.Add(1)
	if p.before != nil {
		p.before()
	}
	return p.Provider.Complete(ctx, r, stream)
}

// TestAnAnswerWhoseChargeCannotBeRecordedIsNotAsked checks that, on a full disk, no direct answer
// is paid for and then discarded. If the disk fills up while the model answers, the client
// receives the answer, and its maximum cost stays charged until there is space.
func TestAnAnswerWhoseChargeCannotBeRecordedIsNotAsked(t *testing.T) {
	dir := t.TempDir()
	smalldisk.Mount(t, dir, "size=24m")
	model := &paid{Provider: counting(t)}
	s := start(t, dir, model, locked)
	key := s.key(access.Key{Name: "k", Limits: access.Limits{USD: 10_000_000, Period: access.Total}})
	usd := func() float64 {
		all, err := s.server.manager.Meter.Usage(t.Context(), "k", "")
		if err != nil || len(all) != 1 {
			t.Fatalf("the usage is %+v: %v", all, err)
		}
		return all[0].USD
	}
	response := object{"model": "rlm/default", "input": "hi"}
	s.want(s.do("POST", "/v1/chat/completions", key, chat("hi")), 200, "Hello.")
	s.want(s.do("POST", "/v1/responses", key, response), 200, "Hello.")
	one := usd()

	stream := chat("hi")
	stream["stream"] = true
	free := fill(t, dir, 0)
	for range 200 { // some charges still find space in the database file
		before := model.calls.Load()
		for path, body := range map[string]any{
			"/v1/chat/completions": stream, "/v1/responses": response,
		} {
			status := s.do("POST", path, key, body).status
			if asked := model.calls.Load() > before; status != 200 && asked || status != 507 && status != 200 {
				t.Fatalf("%s on a full disk gives %d; asked: %t", path, status, asked)
			}
			before = model.calls.Load()
		}
	}
	s.want(s.do("POST", "/v1/chat/completions", key, chat("hi")), 507, "disk_full")
	free()
	for { // until the charges that could not be written are corrected
		if err := s.server.manager.Wake(t.Context()); err == nil {
			break
		}
	}
	if n := float64(model.calls.Load()); math.Abs(usd()-one/2*n) > 1e-6 {
		t.Errorf("$%g are charged for %g answers, of which two cost $%g", usd(), n, one)
	}

	before := usd()
	model.before = func() { free = fill(t, dir, 0) }
	answered := 0
	for range 3 {
		if got := s.do("POST", "/v1/responses", key, response); got.status == 200 {
			answered++
			s.want(got, 200, "Hello.")
		}
		free()
	}
	if answered != 3 || usd() < before+3*one/2-1e-6 {
		t.Errorf("%d answers; $%g are charged, and before $%g", answered, usd(), before)
	}
	if err := s.server.manager.Wake(t.Context()); err != nil || math.Abs(usd()-before-3*one/2) > 1e-6 {
		t.Errorf("$%g are charged, and before $%g: %v", usd(), before, err)
	}
}

// isOver reports whether a run has ended.
func (s *tested) isOver(id string) bool {
	s.Helper()
	status := s.text(s.do("GET", "/v1/runs/"+id, "", nil), "status")
	return status != "running" && status != "queued"
}

// TestAFolderThatCannotBeWrittenIsRefused checks that a server on a read-only disk reports that at
// its start.
func TestAFolderThatCannotBeWrittenIsRefused(t *testing.T) {
	dir := t.TempDir()
	smalldisk.Mount(t, dir, "size=24m")
	var options Options
	var engine *rlm.Engine
	t.Run("before", func(t *testing.T) {
		s := start(t, dir, counting(t), nil)
		s.runToEnd("")
		options, engine = s.server.Options, s.server.engine
	})
	smalldisk.MakeReadOnly(t, dir)
	s, err := New(t.Context(), engine, options)
	if err == nil || !strings.Contains(err.Error(), dir) || !failures.IsDisk(err) {
		t.Errorf("a server starts on a folder that it cannot write: %v", err)
	}
	if err == nil {
		_ = s.Close()
	}
}

// TestAServerIsNotReadyWhileItsDiskIsFull fills the disk almost, then completely, and checks that
// the server reports both immediately.
func TestAServerIsNotReadyWhileItsDiskIsFull(t *testing.T) {
	dir := t.TempDir()
	smalldisk.Mount(t, dir, "size=24m")
	s := start(t, dir, counting(t), nil)
	ready := func(status int, text string) {
		t.Helper()
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
	s.server.disk.tried = time.Time{} // so that it writes and logs again
	ready(503, "disk_full")
	free()
	s.server.disk.tried = time.Time{}
	ready(200, "ready")
	if !strings.Contains(s.logs.String(), "the data folder cannot take more") {
		t.Errorf("the log does not say why: %s", s.logs)
	}
}

// TestADiskThatCannotBeWrittenIsFound checks a disk that was mounted read-only.
func TestADiskThatCannotBeWrittenIsFound(t *testing.T) {
	dir := t.TempDir()
	smalldisk.Mount(t, dir, "size=24m")
	d := disk{dir: dir}
	if err := d.check(func(string, ...any) {}); err != nil {
		t.Error(err)
	}
	smalldisk.MakeReadOnly(t, dir)
	if err := d.check(func(string, ...any) {}); err != nil {
		t.Error("it writes twice at the same time")
	}
	d.tried = time.Time{}
	if err := d.check(func(string, ...any) {}); err == nil {
		t.Error("a disk that cannot be written is fine")
	}
}
