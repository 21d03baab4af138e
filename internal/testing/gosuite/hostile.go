package gosuite

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rlmhq/rlm/tiers"
)

// Bombs are attacks on the compiler, with declarations and with statements.
var Bombs = map[string][2]string{
	"constant tower": {`const (
	a = "0123456789"
	b = a + a + a + a + a + a + a + a + a + a
	c = b + b + b + b + b + b + b + b + b + b
	d = c + c + c + c + c + c + c + c + c + c
	e = d + d + d + d + d + d + d + d + d + d
	f = e + e + e + e + e + e + e + e + e + e
	g = f + f + f + f + f + f + f + f + f + f
	h = g + g + g + g + g + g + g + g + g + g
	i = h + h + h + h + h + h + h + h + h + h
)
`, "println(len(i))"},
	"array of text": {"", "var x = [1 << 30]string{1 << 29: \"a\"}\nx[0] = x[1]"},
	"types":         {"type T0 struct{ a, b, c, d int }\n" + doubleTypes(40), "var x T40\n_ = x"},
	"comparisons":   {"type T0 struct{ a, b string }\n" + doubleTypes(24), "var x, y T24\nprintln(x == y)"},
	"functions":     {"", strings.Repeat("func() {", 5000) + strings.Repeat("}()\n", 5000)},
}

func doubleTypes(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "type T%d struct{ a, b T%d }\n", i+1, i)
	}
	return b.String()
}

// RunHostile runs each attack in a separate session, then checks that the session is alive and has
// reported its losses correctly. atOnce is the maximum number of concurrent sessions. except lists
// attacks that do not apply, each with the reason.
func RunHostile(t *testing.T, tier tiers.Tier, atOnce int, except map[string]string) {
	fill := PrepareHost(t)
	slots := make(chan struct{}, atOnce)
	try := func(name, source string) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			slots <- struct{}{}
			defer func() { <-slots }()
			attackWall(t, tier, source)
		})
	}

	for _, a := range Attacks {
		if reason := except[a.Name]; reason != "" {
			t.Logf("%s is left out: %s", a.Name, reason)
			continue
		}
		try(a.Name, fill.Replace(a.Source()))
	}

	for name, bomb := range Bombs {
		try("compiler/"+name, bomb[0]+bomb[1])
	}
	t.Run("oddities", func(t *testing.T) {
		s := Open(t, tier, tiers.Config{})
		for name, source := range goOddities {
			if r := RunSnippet(t, s, fill.Replace(source)); r.Status != tiers.StatusRaised || r.Lost != nil {
				t.Errorf("%s: %s %+v", name, r.Status, r.Lost)
			}
		}
		RunOK(t, s, "1")
	})
}

// PrepareHost creates the targets of attacks, and returns a replacer that inserts them into an
// attack.
func PrepareHost(t *testing.T) *strings.Replacer {
	t.Helper()
	cache := t.TempDir()
	if user, err := os.UserCacheDir(); err == nil {
		cache = filepath.Join(user, "rlm", "go", "build")
	}
	dir := MakeCanaryFolder(t)
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	t.Cleanup(server.Close) // after the attacks

	return strings.NewReplacer("CANARY", filepath.Join(dir, "file"), "OPEN", filepath.Join(dir, "open"), "DIR", dir,
		"PORT", server.Listener.Addr().String(), "CACHE", cache, "HOSTPID", strconv.Itoa(os.Getpid()))
}

func attackWall(t *testing.T, tier tiers.Tier, source string) {
	t.Helper()
	s := Open(t, tier, tiers.Config{Limits: tiers.Limits{Wall: 2 * time.Second, Memory: 128 << 20}})
	RunOK(t, s, "kept := 41")
	begun := time.Now()
	r := RunSnippet(t, s, source)
	took := time.Since(begun)
	said := ""
	if r.Exception != nil {
		said = r.Exception.Message
	}

	t.Logf("%s: %s %s in %v: %.200q", t.Name(), r.Status, r.Limit, took.Round(time.Millisecond), said)
	if strings.Contains(r.Stdout+r.Stderr, "ESCAPED") {
		t.Errorf("it got out: %s %s", r.Stdout, r.Stderr)
	}
	if r.Status == tiers.StatusCrashed && r.Lost == nil {
		t.Error("nothing was lost by a crash")
	}

	again, err := s.Run(t.Context(), tiers.Job{Language: tiers.Go, Source: "kept + 1"})
	var broken *tiers.BrokenError
	switch {
	case errors.As(err, &broken) && broken.Lost != nil: // the program of the session cannot run a second time
		if r := RunOK(t, s, "kept := 41\nkept + 1"); r.Stdout != "42\n" {
			t.Errorf("the session is damaged: %q", r.Stdout)
		}
	case err != nil || again.Status != tiers.StatusOK || again.Stdout != "42\n":
		t.Errorf("the session is damaged: %+v %v", again, err)
	}
}

// MakeCanaryFolder creates a folder of the host with a file that all users may read and write, a
// folder that all users may write, and a program owned by root.
func MakeCanaryFolder(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("/var/tmp", "rlm-canary") //nolint:usetesting // not below /tmp, which every jail hides
	if err != nil {
		dir = t.TempDir()
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	file, open := filepath.Join(dir, "file"), filepath.Join(dir, "open")
	//nolint:gosec // all of it shall be within reach
	err = errors.Join(
		os.Chmod(dir, 0o755), os.WriteFile(file, []byte("canary"), 0o600), os.Chmod(file, 0o666),
		os.Mkdir(open, 0o755), os.Chmod(open, 0o777), os.WriteFile(filepath.Join(open, "doomed"), nil, 0o600),
	)

	if id, missing := os.ReadFile("/usr/bin/id"); missing == nil && os.Geteuid() == 0 {
		suid := filepath.Join(dir, "suid")
		err = errors.Join(err, os.WriteFile(suid, id, 0o755),
			os.Chmod(suid, 0o755|os.ModeSetuid)) //nolint:gosec // it can only show who runs it
	}
	if err != nil {
		t.Fatal(err)
	}

	return dir
}
