package docker_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rlmhq/rlm/images"
	"github.com/rlmhq/rlm/internal/testing/gosuite"
	"github.com/rlmhq/rlm/internal/testing/skip"
	"github.com/rlmhq/rlm/internal/wall/dockerapi"
	"github.com/rlmhq/rlm/tiers"
	"github.com/rlmhq/rlm/tiers/docker"
	"github.com/rlmhq/rlm/tiers/tiertest"
)

// goTier returns a tier that runs Go. If there is none, it ends the test.
func goTier(tb testing.TB) *docker.Tier {
	tb.Helper()
	skip.Short(tb, "it starts containers")
	tier := newTier(tb, docker.Options{Host: os.Getenv("DOCKER_HOST"), Warm: -1})
	err := tier.Probe(tb.Context())
	if why := tier.Info().Lacks[tiers.Go]; err == nil && why != "" {
		err = errors.New(why)
	}
	tiertest.Require(tb, docker.Name, err)
	return tier
}

func TestGo(t *testing.T) { tiertest.RunGo(t, goTier(t)) }

// TestHostileGo checks attacks on the container, the runtime, the connection and the compiler.
func TestHostileGo(t *testing.T) {
	skip.UnderRace(t)
	gosuite.RunHostile(t, goTier(t), 4, map[string]string{
		"passwd": "the image has one of its own, of two lines",
		"abstract socket": "containers may make sockets of this family; in a network of their " +
			"own they reach nobody",
	})
}

// TestGoSeesTheContainer checks properties that only containers have: their mounts, and the absence
// of the host's programs.
func TestGoSeesTheContainer(t *testing.T) {
	dir := gosuite.MakeCanaryFolder(t)
	s := gosuite.Open(
		t,
		goTier(t),
		tiers.Config{Mounts: []tiers.Mount{{Source: dir, Target: "/data"}}},
	)
	r := gosuite.RunOK(t, s, `import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"
)
text, err := os.ReadFile("/data/file")
fmt.Println(string(text), err, os.WriteFile("/data/file", nil, 0o600) != nil)
programs, _ := filepath.Glob("/usr/*bin/*")
_, shell := exec.LookPath("sh")
fmt.Println(programs, shell != nil, os.Getgid(), os.Getpid() > 1)
_, err = os.ReadDir("/proc/1/fd")
paris, where := time.LoadLocation("Europe/Paris")
fmt.Println(err != nil, paris, where)
odd := []string{}
filepath.Walk("/", func(path string, info os.FileInfo, err error) error {
	if path == "/proc" || path == "/sys" || path == "/dev" || path == "/data" {
		return filepath.SkipDir
	}
	if err == nil && info.Mode()&(os.ModeSetuid|os.ModeSetgid) != 0 {
		odd = append(odd, path)
	}
	return nil
})
fmt.Println(odd)`)
	if want := "canary <nil> true\n[] true 65532 true\ntrue Europe/Paris <nil>\n[]\n"; r.Stdout != want {
		t.Errorf("%q, want %q", r.Stdout, want)
	}
}

// TestBothLanguagesLiveInOneSandbox checks that Go and Python keep separate variables, and that
// their snippets are counted together.
func TestBothLanguagesLiveInOneSandbox(t *testing.T) {
	tier := goTier(t)
	if why := tier.Info().Lacks[tiers.Python]; why != "" {
		tiertest.Require(t, docker.Name, errors.New(why))
	}
	s := gosuite.Open(t, tier, tiers.Config{})
	gosuite.RunOK(t, s, "x := 1")
	run(t, s, "x = 2")
	if r := run(t, s, "print(x)"); r.Stdout != "2\n" {
		t.Errorf("%q %+v", r.Stdout, r.Exception)
	}
	if r := gosuite.RunOK(t, s, "x"); r.Stdout != "1\n" {
		t.Errorf("%q", r.Stdout)
	}
	state, err := s.(tiers.Exporter).Export(t.Context())
	if err != nil || state.Language != tiers.Go || state.Snippet != 4 || len(state.Left) != 1 {
		t.Errorf("%+v %v", state, err)
	}
}

// TestWithoutTheImageGoIsNamed requires an image that was never built, and checks that the error
// says how to build it.
func TestWithoutTheImageGoIsNamed(t *testing.T) {
	goTier(t)
	pinned := newTier(
		t,
		docker.Options{
			Host:    os.Getenv("DOCKER_HOST"),
			GoImage: "sha256:" + strings.Repeat("1", 64),
			Warm:    -1,
		},
	)
	if err := pinned.Probe(t.Context()); err == nil ||
		!strings.Contains(err.Error(), "build it with rlm images build go") {
		t.Errorf("%v", err)
	}
}

// TestAProgramThatSomebodyKills kills or removes the container, and checks that the snippet is not
// blamed for it.
func TestAProgramThatSomebodyKills(t *testing.T) {
	s := gosuite.Open(t, goTier(t), tiers.Config{})
	gosuite.RunOK(t, s, "kept := 41")
	for name, deed := range map[string][]string{"killed": {"kill"}, "removed": {"rm", "-f"}} {
		t.Run(name, func(t *testing.T) {
			_, err := s.Run(t.Context(), tiers.Job{
				Language: tiers.Go, Source: "import \"fmt\"\nfmt.Println(1)\nselect {}",
				Stdout: gosuite.OnWrite(func() { disturb(t, deed...) }),
			})
			var broken *tiers.BrokenError
			if !errors.As(err, &broken) || broken.Effects != tiers.EffectsRan || broken.Lost == nil ||
				!strings.Contains(err.Error(), "the container was "+name) {
				t.Errorf("%s: %v", name, err)
			}
			if r := gosuite.RunOK(t, s, "kept + 1"); r.Stdout != "42\n" {
				t.Errorf("%q", r.Stdout)
			}
		})
	}
}

// TestAProgramGetsAContainerThatLives kills the waiting container, which a snippet that did not
// compile left unused, and checks that the next program runs.
func TestAProgramGetsAContainerThatLives(t *testing.T) {
	s := gosuite.Open(t, goTier(t), tiers.Config{})
	for range 2 {
		if r := gosuite.RunSnippet(t, s, "x := "); r.Status != tiers.StatusRaised {
			t.Fatalf("%+v", r)
		}
		disturb(t, "kill")
		if r := gosuite.RunOK(t, s, "1 + 1"); r.Stdout != "2\n" {
			t.Errorf("%q", r.Stdout)
		}
	}
}

// TestDaemonFailsDuringAGoSnippet checks that the session continues after the daemon disappeared or
// hung while a Go snippet ran.
func TestDaemonFailsDuringAGoSnippet(t *testing.T) {
	goTier(t)
	for name, deed := range map[string]struct{ do, undo func(*gate) }{
		"stops": {func(g *gate) { g.cut() }, func(g *gate) { g.listen(t) }},
		"hangs": {func(g *gate) { g.freeze() }, func(g *gate) { g.thaw() }},
	} {
		t.Run(name, func(t *testing.T) {
			g := newGate(t)
			tier := behind(t, g)
			s, err := tier.Open(
				t.Context(),
				tiers.Config{Limits: tiers.Limits{Wall: 3 * time.Second}, Language: tiers.Go},
			)
			if err != nil {
				t.Fatal(err)
			}
			gosuite.RunOK(t, s, "kept := 41")
			done := make(chan struct{})
			_, err = s.Run(t.Context(), tiers.Job{
				Language: tiers.Go, Source: "import \"fmt\"\nfmt.Println(1)\nselect {}",
				Stdout: gosuite.OnWrite(func() {
					go func() { // cutting waits for pending writes
						defer close(done)
						deed.do(g)
					}()
				}),
			})
			<-done
			var broken *tiers.BrokenError
			if !errors.As(err, &broken) || broken.Effects != tiers.EffectsRan ||
				broken.Lost == nil || !slices.Equal(broken.Lost.Snippets, []int{2}) {
				t.Errorf("%v", err)
			}
			deed.undo(g)
			if r := gosuite.RunOK(t, s, "kept + 1"); r.Stdout != "42\n" {
				t.Errorf("%q", r.Stdout)
			}
			if err := errors.Join(s.Close(), tier.Close()); err != nil {
				t.Error(err)
			}
			nothingLeft(t)
		})
	}
}

// nothingLeft fails the test if this process has containers. It is for tests that do not run in
// parallel with others.
func nothingLeft(t *testing.T) {
	t.Helper()
	if left := containers(t, os.Getpid()); len(left) > 0 {
		t.Errorf("containers are left: %v", left)
	}
}

// disturb makes docker act on the containers of programs of this process. A container that is being
// removed concurrently may be gone.
func disturb(t *testing.T, deed ...string) {
	t.Helper()
	client, err := dockerapi.New(os.Getenv("DOCKER_HOST"))
	if err != nil {
		t.Error(err)
		return
	}
	defer client.Close()
	found, err := client.List(
		t.Context(), map[string]string{"rlm.tier": docker.Name, "rlm.go": "program"},
	)
	if err != nil {
		t.Error(err)
	}
	for _, c := range found {
		if !c.Running ||
			!strings.Contains(c.Labels["rlm.owner"], fmt.Sprintf("/%d/", os.Getpid())) {
			continue
		}
		if said, err := exec.CommandContext(
			t.Context(),
			"docker",
			append(slices.Clone(deed), c.ID)...).CombinedOutput(); err != nil {
			t.Logf("%v: %s", err, said)
		}
	}
}

// TestGoLeavesNothingBehind checks that no containers, files, goroutines or descriptors remain
// after sessions that end in every possible way.
func TestGoLeavesNothingBehind(t *testing.T) {
	tier := goTier(t)
	temporary := t.TempDir()
	t.Setenv("TMPDIR", temporary)
	for _, source := range []string{
		"x := 1", "for {\n}", "x := ", "panic(1)",
		"go func() { panic(1) }()\nselect {}",
	} {
		s, err := tier.Open(
			t.Context(),
			tiers.Config{Limits: tiers.Limits{Wall: 300 * time.Millisecond}, Language: tiers.Go},
		)
		if err != nil {
			t.Fatal(err)
		}
		gosuite.RunSnippet(t, s, source)
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		if _, err := s.Run(ctx, tiers.Job{Language: tiers.Go, Source: source + "\n"}); err != nil &&
			ctx.Err() == nil {
			t.Error(err)
		}
		cancel()
		if err := errors.Join(s.Close(), s.Close()); err != nil {
			t.Error(err)
		}
	}
	if left := orphans(); len(left) > 0 {
		t.Errorf("containers are left: %s", left)
	}
	if left, err := os.ReadDir(temporary); err != nil || len(left) > 0 {
		t.Errorf("files are left: %v %v", left, err)
	}
}

// TestTheImageGoHasNoShell checks the list of the image's programs.
func TestTheImageGoHasNoShell(t *testing.T) {
	s := gosuite.Open(t, goTier(t), tiers.Config{})
	r := gosuite.RunOK(t, s, `import (
	"fmt"
	"io/fs"
	"os"
)
runs := []string{}
fs.WalkDir(os.DirFS("/"), ".", func(path string, entry fs.DirEntry, err error) error {
	if path == "proc" || path == "sys" || path == "dev" || path == "etc" || path == ".dockerenv" { // the daemon's
		if entry.IsDir() {
			return fs.SkipDir
		}
		return nil
	}
	if info, err := entry.Info(); err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0 {
		runs = append(runs, path)
	}
	return nil
})
fmt.Println(runs)`)
	if r.Stdout != "[program/main usr/lib/rlm/compile usr/lib/rlm/guest usr/lib/rlm/link]\n" {
		t.Errorf("%q", r.Stdout)
	}
	recipe, err := images.Find(images.Go)
	if err != nil || filepath.Base(recipe.Program) != "guest" {
		t.Error(recipe.Program, err)
	}
}

// BenchmarkGo measures a session's first snippet, a further one, which exits so that the session
// does not keep it, and a host call.
func BenchmarkGo(b *testing.B) {
	tier := goTier(b)
	b.Run("first", func(b *testing.B) {
		var times []time.Duration
		for b.Loop() {
			begun := time.Now()
			s, err := tier.Open(b.Context(), tiers.Config{Language: tiers.Go})
			if err != nil {
				b.Fatal(err)
			}
			gosuite.RunOK(b, s, "import \"fmt\"\nfmt.Println(1 + 1)")
			times = append(times, time.Since(begun))
			if err := s.Close(); err != nil {
				b.Fatal(err)
			}
		}
		median(b, "ms/start", times)
	})
	b.Run("further", func(b *testing.B) {
		s := gosuite.Open(b, tier, tiers.Config{})
		gosuite.RunOK(b, s, "import (\n\t\"fmt\"\n\t\"syscall\"\n)")
		var times []time.Duration
		for b.Loop() {
			begun := time.Now()
			r := gosuite.RunSnippet(b, s, "fmt.Println(1 + 1)\nsyscall.Exit(0)")
			if r.Status != tiers.StatusExited || r.Stdout != "2\n" {
				b.Fatalf("%+v", r)
			}
			times = append(times, time.Since(begun))
		}
		median(b, "ms/snippet", times)
	})
	b.Run("call", func(b *testing.B) {
		h := tiers.HostFunc(
			func(context.Context, tiers.Call) (tiers.Value,
				error,
			) {
				return json.Marshal("answer")
			},
		)
		const calls = 200
		var times []time.Duration
		for b.Loop() {
			s := gosuite.Open(b, tier, tiers.Config{
				Host: h, Functions: []tiers.Function{{Name: "ask"}},
				Limits: tiers.Limits{HostCalls: 1 << 30},
			})
			r := gosuite.RunOK(b, s,
				fmt.Sprintf("import (\n\"fmt\"\n\"time\"\n)\nbegun := time.Now()\nfor range %d { ask(1) "+
					"}\nfmt.Print(time.Since(begun).Nanoseconds())", calls))
			var took time.Duration
			if _, err := fmt.Sscan(r.Stdout, &took); err != nil {
				b.Fatal(err)
			}
			times = append(times, took/calls)
		}
		slices.Sort(times)
		median(b, "ms/call", times)
	})
}
