package server

import (
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rlmhq/rlm"
	"github.com/rlmhq/rlm/internal/keep/store"
	"github.com/rlmhq/rlm/server/internal/access"
	runstore "github.com/rlmhq/rlm/store"
)

// runToEnd starts a run of two turns, waits until it has ended, and returns its path.
func (s *tested) runToEnd(key string) (id, path string) {
	s.Helper()
	made := s.do("POST", "/v1/runs", key, object{"question": "how many?", "contexts": []object{{"text": hay}}})
	s.want(made, 200, `"id":"run_`)
	path = "/v1/runs/" + s.text(made, "id")
	s.do("GET", path+"/events", key, nil)
	s.want(s.do("GET", path, key, nil), 200, `"answer":"200"`)
	return s.text(made, "id"), path
}

func TestARunGoesOnAfterATurn(t *testing.T) {
	s := start(t, t.TempDir(), counting(t), nil)
	_, path := s.runToEnd("")
	before := s.do("GET", path, "", nil)
	for _, c := range []struct {
		body   object
		status int
		text   string
	}{
		{object{}, 409, "has its answer"},
		{object{"turn": 9}, 400, "last turn of the run is 2"},
		{object{"turn": -1}, 422, "turn"},
		{object{"turn": 1, "question": "why?"}, 400, "set fork"},
		{object{"turn": 0, "fork": true}, 400, "start a new run"},
		{object{"turn": 1, "fork": true, "profile": "none"}, 404, "this server has [default]"},
	} {
		s.want(s.do("POST", path+"/continue", "", c.body), c.status, c.text)
	}
	if got := s.do("GET", path, "", nil); got.body != before.body {
		t.Errorf("a refused request has changed the run:\n%s\n%s", before.body, got.body)
	}

	again := object{"turn": 1, "budget": object{"calls": 20}}
	s.want(s.do("POST", path+"/continue", "", again), 200, `"id":"run_`)
	events := s.do("GET", path+"/events", "", nil).body
	if n := strings.Count(events, `"kind":"run_ended"`); n != 2 {
		t.Errorf("the run has ended %d times: %s", n, events)
	}
	after := s.do("GET", path, "", nil)
	s.want(after, 200, `"answer":"200"`)
	calls := func(got answer) float64 { n, _ := s.field(got, "spent", "calls").(float64); return n }
	if calls(after) != calls(before)+1 {
		t.Errorf("the turn that was taken back has cost %v calls, then %v", calls(before), calls(after))
	}
}

func TestAForkHasTheTurnsOfItsParent(t *testing.T) {
	s := start(t, t.TempDir(), counting(t), nil)
	id, path := s.runToEnd("")
	fork := func() answer {
		return s.do("POST", path+"/continue", "", object{"turn": 1, "fork": true, "question": "and now?"},
			"Idempotency-Key", "a")
	}
	made := fork()
	s.want(made, 200, fmt.Sprintf(`"parent":%q,"parent_turn":1`, id))
	if again := fork(); s.text(again, "id") != s.text(made, "id") {
		t.Errorf("a second request makes another fork: %s", again.body)
	}

	forked := "/v1/runs/" + s.text(made, "id")
	events := s.do("GET", forked+"/events", "", nil).body
	if strings.Count(events, `"kind":"snippet"`) != 2 || strings.Count(events, `"kind":"run_ended"`) != 1 {
		t.Errorf("the events of the fork are %s", events)
	}
	got := s.do("GET", forked, "", nil)
	s.want(got, 200, `"answer":"200"`)
	s.want(got, 200, `"question":"and now?"`)
	if n, _ := s.field(got, "spent", "calls").(float64); n != 1 {
		t.Errorf("the fork has paid for %v calls", n)
	}

	s.want(s.do("DELETE", path, "", nil), 204, "") // the fork keeps its contexts and turns
	s.want(s.do("POST", forked+"/continue", "", object{"turn": 1}), 200, `"id":"run_`)
	s.do("GET", forked+"/events", "", nil)
	s.want(s.do("GET", forked, "", nil), 200, `"answer":"200"`)
}

func TestADeletedRunLeavesNothing(t *testing.T) {
	dir := t.TempDir()
	s := start(t, dir, counting(t), locked)
	key := s.key(access.Key{Name: "alice"})
	id, path := s.runToEnd(key)
	response := s.do("POST", "/v1/responses", key, object{"model": "rlm/default", "input": []object{{
		"role":    "user",
		"content": []object{{"type": "input_text", "text": hay}, {"type": "input_text", "text": "how?"}},
	}}})
	s.want(response, 200, `"status":"completed"`)
	usage := s.do("GET", "/v1/usage", key, nil)

	s.want(s.do("DELETE", path, key, nil), 204, "")
	s.want(s.do("DELETE", path, key, nil), 404, "there is no run")
	s.want(s.do("GET", path+"/events", key, nil), 404, "there is no run")
	s.want(s.do("DELETE", "/v1/responses/"+s.text(response, "id"), key, nil), 200, `"deleted":true`)
	s.want(s.do("GET", "/v1/runs", key, nil), 200, `"runs":[]`)
	if _, err := s.server.engine.ShowRun(t.Context(), id); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("the run log of the run stays: %v", err)
	}
	for _, folder := range []string{"runs", filepath.Join("store", "locks"), filepath.Join("store", "blobs")} {
		t.Run(fmt.Sprintf("%.60s", folder), func(t *testing.T) {
			_ = filepath.WalkDir(filepath.Join(dir, folder), func(path string, entry fs.DirEntry, err error) error {
				if err == nil && !entry.IsDir() {
					t.Errorf("%s is left", path)
				}
				return err
			})
		})
	}
	if got := s.do("GET", "/v1/usage", key, nil); got.body != usage.body {
		t.Errorf("the spending was %s, and is %s", usage.body, got.body)
	}
}

func TestADeletedRunEndsFirst(t *testing.T) {
	model := newHeld(counting(t))
	s := start(t, t.TempDir(), model, nil)
	made := s.do("POST", "/v1/runs", "", object{"question": "wait", "contexts": []object{{"text": hay}}})
	<-model.asked
	path := "/v1/runs/" + s.text(made, "id")
	s.want(s.do("POST", path+"/continue", "", object{}), 409, "cancel it first")
	s.want(s.do("DELETE", path, "", nil), 204, "")
	s.want(s.do("GET", path, "", nil), 404, "")
}

func TestOldRunsExpire(t *testing.T) {
	dir := t.TempDir()
	s := start(t, dir, counting(t), nil)
	s.want(s.do("POST", "/v1/responses", "", object{"model": "rlm/default", "input": "hi"}), 200, "Hello.")
	old, _ := s.runToEnd("")
	between := time.Now()
	_, path := s.runToEnd("")
	if err := s.server.manager.Expire(t.Context(), between); err != nil {
		t.Fatal(err)
	}

	s.want(s.do("GET", "/v1/runs/"+old, "", nil), 404, "")
	s.want(s.do("GET", path, "", nil), 200, `"answer":"200"`)
	entries, err := os.ReadDir(filepath.Join(dir, "runs"))
	if err != nil || len(entries) != 1 {
		t.Errorf("the folder of runs has %v, %v", entries, err)
	}
	var left int
	err = s.server.db.QueryRowContext(t.Context(), `SELECT count(*) FROM responses`).Scan(&left)
	if err != nil || left != 0 {
		t.Errorf("%d direct answers stay, %v", left, err)
	}
}

// TestADecisionOfAnotherProcessWakesTheRun checks that a running server notices a decision of
// another process, such as rlm runs approve.
func TestADecisionOfAnotherProcessWakesTheRun(t *testing.T) {
	dir := t.TempDir()
	s, sent := startMailing(t, dir, "FINAL(await mail('ann'))")
	made := s.do("POST", "/v1/runs", "", object{"question": "mail her"})
	path := "/v1/runs/" + s.text(made, "id")
	s.do("GET", path+"/events", "", nil) // until the run waits
	if err := s.server.manager.Wake(t.Context()); err != nil {
		t.Fatal(err)
	}
	parked := s.do("GET", path, "", nil)
	s.want(parked, http.StatusOK, `"status":"parked"`)
	s.want(s.do("POST", path+"/continue", "", object{}), 409, "wait for a decision")

	other, err := rlm.New(rlm.Options{Store: runstore.Folder(Folder(dir).Store())})
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	run, err := other.ShowRun(t.Context(), s.text(made, "id"))
	if err != nil || len(run.Waiting) != 1 {
		t.Fatalf("%+v, %v", run, err)
	}
	if _, err := other.Decide(t.Context(), run.Waiting[0].ID, rlm.Decision{Allow: true}); err != nil {
		t.Fatal(err)
	}
	if err := s.server.manager.Wake(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.do("GET", path+"/events", "", nil)
	s.want(s.do("GET", path, "", nil), 200, `"answer":"sent"`)
	if sent.Load() != 1 {
		t.Errorf("%d mails were sent", sent.Load())
	}
}
