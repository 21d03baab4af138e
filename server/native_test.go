package server

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/danielgtaylor/huma/v2"

	"github.com/rlmhq/rlm"
	"github.com/rlmhq/rlm/repl"
	"github.com/rlmhq/rlm/repl/ledger"
	"github.com/rlmhq/rlm/repl/llm/scripted"
	"github.com/rlmhq/rlm/server/internal/access"
	"github.com/rlmhq/rlm/tiers"
)

var update = flag.Bool("update", false, "write docs/generated/openapi.json")

func TestTheDocumentOfTheAPIIsCommitted(t *testing.T) {
	s := start(t, t.TempDir(), counting(t), nil)
	got, err := json.MarshalIndent(s.server.Document, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	got = append(got, '\n')
	path := filepath.Join("..", "docs", "generated", "openapi.json")
	if *update {
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}

	want, err := os.ReadFile(path)
	if err != nil || !bytes.Equal(got, want) {
		t.Errorf("docs/generated/openapi.json is stale: "+
			"go test ./server -run TestTheDocument -update (%v)", err)
	}
}

func TestARunIsWatchedToItsEnd(t *testing.T) {
	s := start(t, t.TempDir(), counting(t), nil)
	made := s.do("POST", "/v1/runs", "", object{
		"question": "how many?", "contexts": []object{{"name": "hay", "text": hay}}, "budget": object{"calls": 9},
	})
	s.want(made, 200, `"status":"queued"`)
	path := "/v1/runs/" + s.text(made, "id")
	whole := s.do("GET", path+"/events", "", nil).body
	events := strings.SplitAfter(whole, "\n\n")
	if !strings.Contains(events[0], "id: 1\n") || !strings.Contains(whole, `"kind":"run_ended"`) {
		t.Fatalf("the events are %s", whole)
	}
	for last := range len(events) - 2 {
		rest := s.do("GET", path+"/events", "", nil, "Last-Event-ID", jsonNumber(last)).body
		if want := strings.Join(events[last:], ""); rest != want {
			t.Fatalf("behind event %d come\n%s\nwant\n%s", last, rest, want)
		}
	}

	s.want(s.do("GET", path, "", nil), 200, `"answer":"200"`)
	s.want(s.do("POST", path+"/cancel", "", nil), 200, `"status":"answered"`)
	s.want(s.do("GET", "/v1/runs?text=HOW&limit=1", "", nil), 200, s.text(made, "id"))
	s.want(s.do("GET", "/v1/runs?status=failed", "", nil), 200, `"runs":[]`)
	s.want(s.do("GET", "/v1/usage", "", nil), 200, `"usd":"`)
	s.want(s.do("POST", "/v1/runs", "", object{"question": ""}), 422, "question")
	s.want(s.do("POST", "/v1/runs", "", object{"question": "x", "profile": "none"}), 404, "this server has [default]")
	s.want(s.do("POST", path+"/approvals", "", object{"approval": "x", "allow": true}), 404, "no waiting call")
}

// TestTenantsHaveTheirOwnResources checks that each request of the native API fails for another
// tenant's objects, and that each change fails with a key that may only read.
func TestTenantsHaveTheirOwnResources(t *testing.T) {
	s := start(t, t.TempDir(), counting(t), locked)
	alice, bob := s.key(access.Key{Name: "alice"}), s.key(access.Key{Name: "bob", Scopes: []access.Scope{access.Admin}})
	id := s.text(s.do("POST", "/v1/runs", alice, object{
		"question": "how many?", "contexts": []object{{"text": hay}},
	}), "id")
	s.do("GET", "/v1/runs/"+id+"/events", alice, nil) // until it ends

	open := s.do("POST", "/v1/sessions", alice, object{"name": "hers"})
	s.want(open, 200, `"name":"hers"`)
	session := s.text(open, "id")
	taken := s.do("POST", "/v1/sessions/"+session+"/snapshots", alice, nil)
	s.want(taken, 200, "snap_")

	bodies := map[string]any{
		"decide": object{"approval": "x", "allow": true}, "exec": object{"source": "1"},
		"continue-run": object{"turn": 1, "fork": true},
		"set-variable": object{"value": 1}, "add-contexts": object{"contexts": []object{{"text": "x"}}},
	}
	reader := s.key(access.Key{Name: "reader", Tenant: "alice", Scopes: []access.Scope{access.Read}})
	checked := 0
	for path, item := range s.server.Document.Paths {
		for method, operation := range map[string]*huma.Operation{
			"GET": item.Get, "POST": item.Post, "PUT": item.Put, "DELETE": item.Delete,
		} {
			if operation == nil || !strings.Contains(path, "{id}") {
				continue
			}
			of := id
			if strings.HasPrefix(path, "/v1/sessions") {
				of = session
			}
			full := strings.NewReplacer(
				"{id}", of, "{name}", "n", "{snapshot}", s.text(taken, "id"), "/content", "/content?name=x",
			).Replace(path)
			body := bodies[operation.OperationID]
			got := s.do(method, full, bob, body)
			if got.status != 404 || strings.Contains(got.body, "snapshot") {
				t.Errorf("%s %s gives another tenant %d %s", method, path, got.status, got.body)
			}
			s.want(s.do(method, full, "", body), 401, "")
			if method != "GET" {
				s.want(s.do(method, full, reader, body), 403, "missing_scope")
			}
			checked++
		}
	}
	if checked < 20 {
		t.Errorf("only %d operations are checked", checked)
	}
	s.want(s.do("GET", "/v1/sessions?after="+session, bob, nil), 404, "there is no session")
	if got := s.do("GET", "/v1/sessions", bob, nil); strings.Contains(got.body, session) {
		t.Errorf("the list shows another tenant's session: %s", got.body)
	}
	mine := s.do("POST", "/v1/sessions", bob, object{"name": "hers"})
	if s.want(mine, 200, ""); s.text(mine, "id") == session {
		t.Error("the name leads to another tenant's session")
	}
	if got := s.do("GET", "/v1/runs", bob, nil); strings.Contains(got.body, id) {
		t.Errorf("the list shows another tenant's run: %s", got.body)
	}
	decided := s.do("POST", "/v1/runs/"+id+"/approvals", alice, object{"approval": "x", "allow": true})
	s.want(decided, 403, "scope approve")
}

// startMailing starts a server whose model replies with code that sends mails. Each mail waits for
// a decision.
func startMailing(t *testing.T, dir, code string) (s *tested, sent *atomic.Int64) {
	t.Helper()
	first, ask := 0, "```repl\n"+code+"\n```"
	model, err := scripted.New(scripted.Rule{When: scripted.When{Said: &first}, Reply: &ask})
	if err != nil {
		t.Fatal(err)
	}
	sent = &atomic.Int64{}
	return start(t, dir, model, func(o *Options) {
		task := &o.Profiles[0].Task
		task.Config.Bypass = -1
		task.Config.Approve = func(context.Context, tiers.Call, ledger.Spending) error {
			return fmt.Errorf("a mail: %w", repl.ErrLater)
		}
		task.Functions = []rlm.Function{rlm.Func("mail", "Sends a mail.",
			func(context.Context, tiers.Call) (tiers.Value, error) {
				sent.Add(1)
				return tiers.Value(`"sent"`), nil
			})}
	}), sent
}

// TestARunGoesOnWhenTheLastOfItsCallsIsDecided decides two waiting calls concurrently.
func TestARunGoesOnWhenTheLastOfItsCallsIsDecided(t *testing.T) {
	s, sent := startMailing(t, t.TempDir(), "import asyncio\n"+
		"sent = await asyncio.gather(mail('ann'), mail('bob'), return_exceptions=True)\nFINAL(str(sent))")
	path := "/v1/runs/" + s.text(s.do("POST", "/v1/runs", "", object{
		"question": "mail them", "budget": object{"tool_calls": 2},
	}), "id")
	s.do("GET", path+"/events", "", nil) // until it waits
	parked := s.do("GET", path, "", nil)
	s.want(parked, 200, `"status":"parked"`)
	var run struct {
		Waiting []struct{ ID string }
	}
	if err := json.Unmarshal([]byte(parked.body), &run); err != nil || len(run.Waiting) != 2 || sent.Load() != 0 {
		t.Fatalf("%s, %v, %d sent", parked.body, err, sent.Load())
	}

	var both sync.WaitGroup
	for i, w := range run.Waiting {
		both.Go(func() {
			got := s.do("POST", path+"/approvals", "", object{"approval": w.ID, "allow": i == 0, "reason": "away"})
			s.want(got, 200, "")
		})
	}
	both.Wait()
	s.do("GET", path+"/events", "", nil)
	ended := s.do("GET", path, "", nil)
	s.want(ended, 200, `"status":"answered"`)
	if !strings.Contains(ended.body, "away") || sent.Load() != 1 {
		t.Errorf("%s, %d sent", ended.body, sent.Load())
	}
	s.want(ended, 200, `"tool_calls":1`)
	s.want(s.do("GET", "/v1/usage", "", nil), 200, `"tool_calls":1`)
}
