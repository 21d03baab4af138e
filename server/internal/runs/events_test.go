package runs

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/rlmhq/rlm/internal/keep/damage"
	"github.com/rlmhq/rlm/repl/ledger"
)

// TestNoWatcherLosesAnEvent checks that watchers receive all later events, regardless of when they
// arrive and where they start.
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
	old := `{"kind":"call","text":"1"}` + "\n" + `{"kind":"call","text":"2"}` + "\n" + `{"te`
	if err := os.WriteFile(path, []byte(old), 0o600); err != nil {
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

// writeLog writes a log with the given number of events, and returns its lines.
func writeLog(tb testing.TB, path string, events int) [][]byte {
	tb.Helper()
	log, err := openEvents(path)
	if err != nil {
		tb.Fatal(err)
	}
	for n := range events {
		if err := log.add(ledger.Event{Kind: ledger.EventCall, Text: fmt.Sprintf("event %d", n+1)}); err != nil {
			tb.Fatal(err)
		}
	}
	if err := log.close(); err != nil {
		tb.Fatal(err)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		tb.Fatal(err)
	}
	lines := bytes.SplitAfter(data, []byte{'\n'})
	return lines[:len(lines)-1]
}

// readLog returns the texts of all events in a log, by number.
func readLog(t *testing.T, path string, isKept bool) map[int64]string {
	t.Helper()
	log, err := pastEvents(path, isKept)
	if err != nil {
		t.Fatal(err)
	}
	all := map[int64]string{}
	err = log.follow(t.Context(), 0, func(n int64, line []byte) error {
		var e Event
		err := json.Unmarshal(line, &e)
		all[n] = e.Text
		if e.Damaged != strings.Contains(e.Text, "damaged") || e.Damaged != IsDamaged(line) {
			t.Errorf("event %d is damaged: %t, %s", n, e.Damaged, line)
		}
		return err
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// TestADamagedLogKeepsItsNumbers damages a log in several ways. It checks that intact events keep
// their numbers, that others are reported as damaged, and that the log can continue.
func TestADamagedLogKeepsItsNumbers(t *testing.T) {
	dir := t.TempDir()
	lines := writeLog(t, filepath.Join(dir, "whole"), 10)
	if len(lines) != 11 {
		t.Fatalf("%d lines", len(lines))
	}
	flipped := func(line int, at int) [][]byte {
		changed := slices.Clone(lines)
		changed[line] = bytes.Clone(lines[line])
		changed[line][at] ^= 1
		return changed
	}
	end, swapped := len(lines[5])-1, slices.Clone(lines)
	swapped[3], swapped[4] = swapped[4], swapped[3]
	for name, c := range map[string]struct {
		lines   [][]byte
		missing []int64
		marks   int // number of events that replace damaged ones
	}{
		"an event":               {flipped(5, 30), []int64{5}, 1},
		"a checksum":             {flipped(5, 10), []int64{5}, 1},
		"an end of a line":       {flipped(5, end), []int64{5, 6}, 1},
		"the head":               {flipped(0, 20), nil, 1},
		"the end of the head":    {flipped(0, headLength-1), []int64{1}, 2},
		"the last event":         {flipped(10, 30), []int64{10}, 1},
		"the end, cut":           {lines[:8], []int64{8, 9, 10}, 1},
		"the end of a line, cut": {append(slices.Clone(lines[:8]), lines[8][:20]), []int64{8, 9, 10}, 1},
		"all events, cut":        {lines[:1], []int64{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}, 1},
		"everything, cut":        {nil, []int64{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}, 1},
		"a line is gone":         {slices.Delete(slices.Clone(lines), 3, 4), []int64{3}, 1},
		"two lines are swapped":  {swapped, []int64{3}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(dir, strings.ReplaceAll(name, " ", "-"))
			if err := os.WriteFile(path, bytes.Join(c.lines, nil), 0o600); err != nil {
				t.Fatal(err)
			}
			check := func(when string) {
				t.Helper()
				all, marks := readLog(t, path, true), 0
				for n := int64(1); n <= 10; n++ {
					if want := fmt.Sprintf("event %d", n); all[n] != want && !slices.Contains(c.missing, n) {
						t.Errorf("%s, %s: event %d is %q", name, when, n, all[n])
					}
				}
				for n, text := range all {
					if strings.Contains(text, "damaged") {
						marks++
					} else if slices.Contains(c.missing, n) && text != "new" {
						t.Errorf("%s, %s: event %d is %q", name, when, n, text)
					}
				}
				if when == "damaged" && marks != c.marks {
					t.Errorf("%s: %d events stand for damaged ones: %v", name, marks, all)
				}
			}
			check("damaged")
			q := damage.NewQuarantine(dir)
			found, err := CheckEvents(dir, filepath.Base(path), nil)
			if err != nil || found == nil {
				t.Errorf("%s: the check finds %v, %v", name, found, err)
			}
			if _, err := CheckEvents(dir, filepath.Base(path), q); err != nil {
				t.Error(err)
			}
			check("repaired")

			log, err := openEvents(path)
			if err != nil {
				t.Fatal(err)
			}
			if err := errors.Join(log.add(ledger.Event{Kind: ledger.EventCall, Text: "new"}), log.close()); err != nil {
				t.Fatal(err)
			}
			check("continued")
		})
	}

	if all := readLog(t, filepath.Join(dir, "none"), true); len(all) != 1 || !strings.Contains(all[1], "damaged") {
		t.Errorf("a log that is missing has %v", all)
	}
	if all := readLog(t, filepath.Join(dir, "none"), false); len(all) != 0 {
		t.Errorf("a log that there never was has %v", all)
	}
}

// FuzzScanEvents checks that, whatever a log contains, only events with a correct checksum are
// found, and in order.
func FuzzScanEvents(f *testing.F) {
	lines := writeLog(f, filepath.Join(f.TempDir(), "log"), 3)
	f.Add(bytes.Join(lines, nil))
	f.Add([]byte("{\"kind\":\"call\",\"text\":\"1\"}\n{\"kind\":\"call\"}\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		last := int64(0)
		emit := func(n int64, event []byte) error {
			if n <= last {
				return fmt.Errorf("event %d comes behind %d", n, last)
			}
			last = n
			if !IsDamaged(event) && !bytes.Contains(data, event) {
				return fmt.Errorf("event %d is %s", n, event)
			}
			return nil
		}
		s, size, err := scanEvents(bytes.NewReader(data), emit)
		if err == nil {
			err = s.finish(-1, emit)
		}
		if err != nil || size > int64(len(data)) {
			t.Errorf("%d bytes, %v", size, err)
		}
	})
}
