package runs

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/rlmhq/rlm/repl/ledger"
)

// TestNoWatcherLosesAnEvent lets watchers come at all times, each behind another event.
func TestNoWatcherLosesAnEvent(t *testing.T) {
	const events, watchers = 300, 40
	log, err := openEvents(filepath.Join(t.TempDir(), "events.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	for w := range watchers {
		all.Go(func() {
			next := int64(w % 7)
			err := log.follow(t.Context(), next, func(n int64, line []byte) error {
				var e Event
				if err := json.Unmarshal(line, &e); err != nil {
					return err
				}
				if next++; n != next || e.Text != fmt.Sprint(n) {
					return fmt.Errorf("event %d is %q, want %d", n, e.Text, next)
				}
				return nil
			}, func() error { return nil })
			if err != nil || next != events {
				t.Errorf("watcher %d saw events up to %d: %v", w, next, err)
			}
		})
	}

	for n := range events {
		if err := log.add(ledger.Event{Text: fmt.Sprint(n + 1)}); err != nil {
			t.Fatal(err)
		}
	}
	if err := log.close(); err != nil {
		t.Fatal(err)
	}
	all.Wait()
}

func TestALogGoesOnBehindACrash(t *testing.T) {
	path := filepath.Join(t.TempDir(), "events.jsonl")
	if err := os.WriteFile(path, []byte("{\"kind\":\"call\",\"text\":\"1\"}\n{\"kind\":\"call\",\"text\":\"2\"}\n{\"te"), 0o600); err != nil {
		t.Fatal(err)
	}
	log, err := openEvents(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := log.add(ledger.Event{Text: "3"}); err != nil {
		t.Fatal(err)
	}
	if err := log.close(); err != nil {
		t.Fatal(err)
	}

	past, err := pastEvents(path, true)
	if err != nil {
		t.Fatal(err)
	}
	var got bytes.Buffer
	err = past.follow(t.Context(), 1, func(n int64, line []byte) error {
		var e Event
		defer func() { _, _ = fmt.Fprint(&got, n, "=", e.Text, " ") }()
		return json.Unmarshal(line, &e)
	}, nil)
	if err != nil || got.String() != "2=2 3=3 " {
		t.Errorf("the events are %s: %v", &got, err)
	}
}
