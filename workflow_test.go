package rlm_test

import (
	"context"
	"errors"
	"testing"

	"github.com/rlmhq/rlm"
	"github.com/rlmhq/rlm/internal/testing/testcache"
	"github.com/rlmhq/rlm/repl"
	"github.com/rlmhq/rlm/repl/ledger"
	"github.com/rlmhq/rlm/repl/workflow"
	"github.com/rlmhq/rlm/store"
)

const actedFile = `name: acted
nodes:
  - {name: one, uses: mail.send, with: {to: ann}, output: first}
  - {name: two, uses: mail.send, with: {to: bob}, output: second}
`

// TestAnActionIsDoneOnce checks two actions: the first is not repeated when the run continues, and
// the second waits for a person.
func TestAnActionIsDoneOnce(t *testing.T) {
	dir, sent := t.TempDir(), map[string]int{}
	isKnown, isBroken := false, true
	send := workflow.Action{
		Name: "mail.send", Doc: "Sends a mail.", Params: []workflow.Param{{Name: "to", Type: "text"}},
		Do: func(_ context.Context, _, with map[string]any) (any, error) {
			to, _ := with["to"].(string)
			switch {
			case to == "bob" && isBroken:
				return nil, errors.New("no network")
			case to == "bob" && !isKnown:
				return nil, repl.ErrLater
			}
			sent[to]++
			return map[string]any{"to": to, "n": 1}, nil
		},
	}
	file, err := workflow.Parse("acted.yaml", []byte(actedFile), send)
	if err != nil {
		t.Fatal(err)
	}
	process := func() (workflow.Outcome, error) {
		engine, err := rlm.New(rlm.Options{CacheDir: testcache.Dir(), Store: store.Folder(dir)})
		if err != nil {
			t.Fatal(err)
		}
		defer engine.Close()
		runs, err := engine.Runs(t.Context(), rlm.RunFilter{Status: "parked"})
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range runs {
			if _, err := engine.Decide(t.Context(), r.Waiting[0].ID, rlm.Decision{Allow: true}); err != nil {
				t.Fatal(err)
			}
		}
		return workflow.RunOn(t.Context(), engine, workflow.Task{
			Task: repl.Task{Name: "acted"}, File: file,
		})
	}

	if outcome, err := process(); err == nil || outcome.Status != ledger.StatusFailed {
		t.Errorf("%+v, %v", outcome, err)
	}
	isBroken = false
	if outcome, err := process(); err != nil || outcome.Status != ledger.StatusParked {
		t.Errorf("%+v, %v", outcome, err)
	}
	isKnown = true
	for range 2 {
		outcome, err := process()
		if err != nil || outcome.Status != workflow.StatusDone || sent["ann"] != 1 || sent["bob"] != 1 {
			t.Errorf("%+v, %v, sent %v", outcome, err, sent)
		}
	}
}
