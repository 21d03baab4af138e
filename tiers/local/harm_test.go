package local_test

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/rlmhq/rlm/tiers"
	"github.com/rlmhq/rlm/tiers/tiertest"
)

func TestHostileHarm(t *testing.T) { tiertest.Harm(t, usual(t), 500*time.Millisecond) }

// TestNoProcessOutlivesItsSandbox looks for a daemon after Close.
func TestNoProcessOutlivesItsSandbox(t *testing.T) {
	tier := usual(t)
	b, err := tier.Open(t.Context(), tiers.Config{})
	if err != nil {
		t.Fatal(err)
	}
	run(t, b, "import os, subprocess\nif os.fork() == 0:\n    os.setsid()\n    os.execv('/bin/sleep', ['sleep', '86399'])")
	for end := time.Now().Add(5 * time.Second); count("sleep\x0086399") == 0; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("the daemon does not run")
		}
	}
	if err := b.Close(); err != nil {
		t.Error(err)
	}
	if n := count("sleep\x0086399"); n != 0 {
		t.Errorf("%d daemons outlive the sandbox", n)
	}
}

// count counts the processes of this machine whose arguments contain a text.
func count(text string) int {
	entries, _ := os.ReadDir("/proc") // no process, no match
	n := 0
	for _, e := range entries {
		line, _ := os.ReadFile("/proc/" + e.Name() + "/cmdline") // as above
		if strings.Contains(string(line), text) {
			n++
		}
	}
	return n
}
