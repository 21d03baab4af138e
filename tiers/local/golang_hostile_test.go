package local_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/rlmhq/rlm/internal/jail"
	"github.com/rlmhq/rlm/tiers"
	"github.com/rlmhq/rlm/tiers/local"
	"github.com/rlmhq/rlm/tiers/tiertest"
)

// goBombs attack the compiler: by declarations, and by statements.
var goBombs = map[string][2]string{
	"constant tower": {"const (\n\ta = \"0123456789\"\n\tb = a + a + a + a + a + a + a + a + a + a\n\tc = b + b + b + b + b + b + b + b + b + b\n\td = c + c + c + c + c + c + c + c + c + c\n\te = d + d + d + d + d + d + d + d + d + d\n\tf = e + e + e + e + e + e + e + e + e + e\n\tg = f + f + f + f + f + f + f + f + f + f\n\th = g + g + g + g + g + g + g + g + g + g\n\ti = h + h + h + h + h + h + h + h + h + h\n)\n", "println(len(i))"},
	"array of text":  {"", "var x = [1 << 30]string{1 << 29: \"a\"}\nx[0] = x[1]"},
	"types":          {"type T0 struct{ a, b, c, d int }\n" + doublings(40), "var x T40\n_ = x"},
	"comparisons":    {"type T0 struct{ a, b string }\n" + doublings(24), "var x, y T24\nprintln(x == y)"},
	"functions":      {"", strings.Repeat("func() {", 5000) + strings.Repeat("}()\n", 5000)},
}

func doublings(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "type T%d struct{ a, b T%d }\n", i+1, i)
	}
	return b.String()
}

// TestHostileGo runs each attack in a session of its own, then asks the session
// whether it lives and has told the truth of what it lost.
func TestHostileGo(t *testing.T) {
	fill := goHost(t)
	tier := goTier(t)
	bombed := goTier(t)
	bombed.BuildIn(6 * time.Second) // what never ends shall be stopped sooner
	for _, a := range goAttacks {
		t.Run(a.name, func(t *testing.T) {
			t.Parallel()
			attack(t, tier, fill.Replace(a.source()))
		})
	}
	for name, bomb := range goBombs {
		t.Run("compiler/"+name, func(t *testing.T) {
			t.Parallel()
			attack(t, bombed, bomb[0]+bomb[1])
		})
	}
	t.Run("oddities", func(t *testing.T) {
		s := openGo(t, tier, tiers.Config{})
		for name, source := range goOddities {
			if r := runGo(t, s, fill.Replace(source)); r.Status != tiers.StatusRaised || r.Lost != nil {
				t.Errorf("%s: %s %+v", name, r.Status, r.Lost)
			}
		}
		goOK(t, s, "1")
	})
}

// goHost puts out what an attack looks for, and returns what puts it into one.
func goHost(t *testing.T) *strings.Replacer {
	t.Helper()
	cache := t.TempDir()
	if user, err := os.UserCacheDir(); err == nil {
		cache = filepath.Join(user, "rlm", "go", "build")
	}
	dir := canaryFolder(t)
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	t.Cleanup(server.Close) // after the attacks
	return strings.NewReplacer("CANARY", filepath.Join(dir, "file"), "OPEN", filepath.Join(dir, "open"), "DIR", dir,
		"PORT", server.Listener.Addr().String(), "CACHE", cache, "HOSTPID", strconv.Itoa(os.Getpid()))
}

// TestGoAttacksWithoutLayers is the negative control: a program without the
// tier's runtime, in a jail that lacks the layers that stand in its way.
func TestGoAttacksWithoutLayers(t *testing.T) {
	program := attackProgram(t, goHost(t))
	for i, a := range goAttacks {
		t.Run(a.name, func(t *testing.T) {
			t.Parallel()
			dir := canaryFolder(t)
			own := filepath.Join(dir, "open", "program")
			if err := errors.Join(os.Link(program, own), os.Chmod(own, 0o755)); err != nil { //nolint:gosec // the guest's user runs it
				t.Fatal(err)
			}
			folders := []jail.Bind{{Source: filepath.Dir(own)}}
			for _, folder := range []string{"/usr", "/lib", "/lib64", "/bin"} {
				if _, err := os.Stat(folder); err == nil {
					folders = append(folders, jail.Bind{Source: folder})
				}
			}
			p, err := jail.Start(t.Context(), jail.Config{
				Path: own, Args: []string{"program", strconv.Itoa(i)}, Env: os.Environ(), Binds: folders, Profile: jail.CPython,
				Limits: jail.Limits{Memory: 192 << 20, AddressSpace: 5 << 30}, Off: a.without, MinClass: jail.Nested,
			})
			if err != nil {
				t.Fatal(err)
			}
			said := goHarms(t, p, a.harm)
			// Who makes it hang may end it as well, where a limit bites first.
			if !slices.Contains(said, a.harm) && (a.harm != hangs || !slices.Contains(said, kills)) {
				t.Errorf("without %q it does %q, not %s: %s", a.without, said, a.harm, p.Output())
			}
		})
	}
}

// goHarms watches a program for as long as the harm needs and says what harm it has done.
func goHarms(t *testing.T, p *jail.Process, want goHarm) (harms []goHarm) {
	t.Helper()
	sent := make(chan int, 1)
	go func() {
		n, _ := p.Conn().Read(make([]byte, 64)) // the end is no harm
		sent <- n
	}()
	within := 2 * time.Second
	if want == kills || want == escapes {
		within = time.Minute // they end by themselves
	}
	ctx, cancel := context.WithTimeout(t.Context(), within)
	defer cancel()
	exit, err := p.Wait(ctx)
	if killed := p.Kill(); killed != nil {
		t.Error(killed)
	}
	if <-sent > 0 {
		harms = append(harms, forges)
	}
	if err != nil || exit.OOM {
		harms = append(harms, hangs)
	}
	if err == nil && (exit.Code != 0 || exit.OOM) {
		harms = append(harms, kills)
	}
	if strings.Contains(string(p.Output()), "ESCAPED") {
		harms = append(harms, escapes)
	}
	return harms
}

// attackProgram compiles all attacks to one program, whose argument says which
// of them it shall be.
func attackProgram(t *testing.T, fill *strings.Replacer) string {
	t.Helper()
	goTier(t) // or the test ends here
	dir := canaryFolder(t)
	files, table := map[string]string{"go.mod": "module attacks\n\ngo 1.22\n"}, ""
	for i, a := range goAttacks {
		files[fmt.Sprintf("a%d.go", i)] = fmt.Sprintf("package main\n\n%sfunc attack%d() {\n%s\n}\n", a.importing(), i, fill.Replace(a.body))
		table += fmt.Sprintf("attack%d, ", i)
	}
	files["main.go"] = "package main\n\nimport (\n\"os\"\n\"strconv\"\n)\n\nfunc main() {\nif len(os.Args) > 1 {\nn, _ := strconv.Atoi(os.Args[1])\n[]func(){" + table + "}[n]()\n}\n}\n"
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.CommandContext(t.Context(), "go", "build", "-o", "program", ".")
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=", "GOWORK=off")
	if said, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("cannot compile the attacks: %v\n%s", err, said)
	}
	return filepath.Join(dir, "program")
}

// TestGoBombsWithoutLimits is the negative control of what attacks the compiler:
// nothing stops it but this test.
func TestGoBombsWithoutLimits(t *testing.T) {
	goTier(t)
	said, err := exec.CommandContext(t.Context(), "go", "env", "GOTOOLDIR").Output()
	if err != nil {
		t.Fatal(err)
	}
	for name, bomb := range goBombs {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			file := filepath.Join(t.TempDir(), "bomb.go")
			if err := os.WriteFile(file, []byte("package main\n\n"+bomb[0]+"\n\nfunc main() {\n"+bomb[1]+"\n}\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			cmd := exec.CommandContext(t.Context(), "/bin/sh", "-c", "echo '"+strings.TrimSpace(tiertest.Begun)+"'; exec \"$0\" -p main -o \"$1.o\" \"$1\"",
				filepath.Join(strings.TrimSpace(string(said)), "compile"), file)
			if harm, said := tiertest.Bare(t, cmd, 4*time.Second); !tiertest.Alike(harm, tiertest.Hangs) {
				t.Errorf("the compiler ends by itself: %q %s", harm, said)
			}
		})
	}
}

func attack(t *testing.T, tier *local.Tier, source string) {
	t.Helper()
	s := openGo(t, tier, tiers.Config{Limits: tiers.Limits{Wall: 2 * time.Second, Memory: 128 << 20}})
	goOK(t, s, "kept := 41")
	begun := time.Now()
	r := runGo(t, s, source)
	took := time.Since(begun)
	said := ""
	if r.Exception != nil {
		said = r.Exception.Message
	}
	t.Logf("%s: %s %s in %v: %.200q", t.Name(), r.Status, r.Limit, took.Round(time.Millisecond), said)
	if strings.Contains(r.Stdout+r.Stderr, "ESCAPED") {
		t.Errorf("it got out: %s %s", r.Stdout, r.Stderr)
	}
	if took > 30*time.Second {
		t.Errorf("it took %v", took)
	}
	if r.Status == tiers.StatusCrashed && r.Lost == nil {
		t.Error("nothing was lost by a crash")
	}
	again, err := s.Run(t.Context(), tiers.Job{Language: tiers.Go, Source: "kept + 1"})
	var broken *tiers.BrokenError
	switch {
	case errors.As(err, &broken) && broken.Lost != nil: // its program does not run a second time
		if r := goOK(t, s, "kept := 41\nkept + 1"); r.Stdout != "42\n" {
			t.Errorf("the session is damaged: %q", r.Stdout)
		}
	case err != nil || again.Status != tiers.StatusOK || again.Stdout != "42\n":
		t.Errorf("the session is damaged: %+v %v", again, err)
	}
}

// TestGoLeavesNothingBehind looks for processes, files, goroutines and
// descriptors.
func TestGoLeavesNothingBehind(t *testing.T) {
	tier := goTier(t)
	goOK(t, openGo(t, tier, tiers.Config{}), "1") // what stays for ever is there now
	temporary := t.TempDir()
	t.Setenv("TMPDIR", temporary)
	before, ignore := descriptors(t), goleak.IgnoreCurrent()
	for _, source := range []string{"x := 1", "for {\n}", "x := ", "import \"os\"\nos.Exit(1)", "panic(1)", "go func() { panic(1) }()\nselect {}"} {
		s, err := tier.Open(t.Context(), tiers.Config{Limits: tiers.Limits{Wall: 300 * time.Millisecond}})
		if err != nil {
			t.Fatal(err)
		}
		runGo(t, s, source)
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		if _, err := s.Run(ctx, tiers.Job{Language: tiers.Go, Source: source + "\n"}); err != nil && ctx.Err() == nil {
			t.Error(err)
		}
		cancel()
		if err := errors.Join(s.Close(), s.Close()); err != nil {
			t.Error(err)
		}
	}
	goleak.VerifyNone(t, ignore)
	runtime.GC()
	if after := descriptors(t); after > before {
		t.Errorf("%d descriptors, %d before", after, before)
	}
	if left, err := os.ReadDir(temporary); err != nil || len(left) > 0 {
		t.Errorf("files are left: %v %v", left, err)
	}
	if left, err := filepath.Glob(filepath.Join(os.TempDir(), "rlm-go-*")); err != nil || len(left) > 0 {
		t.Errorf("files are left: %v %v", left, err)
	}
	tasks, err := filepath.Glob("/proc/self/task/*/children")
	if err != nil {
		t.Fatal(err)
	}
	own := 0
	for _, name := range tasks {
		if text, err := os.ReadFile(name); err == nil {
			own += len(strings.Fields(string(text)))
		}
	}
	if want := 2; own > want { // of the session above: its interpreter and its compiler
		t.Errorf("%d children, %d expected", own, want)
	}
}

func descriptors(t *testing.T) int {
	t.Helper()
	list, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Skip(err)
	}
	return len(list)
}

// canaryFolder makes a folder of the host with a file that all may read and
// write, a folder where all may write, and a program of root's.
func canaryFolder(t *testing.T) string {
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
		err = errors.Join(err, os.WriteFile(suid, id, 0o755), os.Chmod(suid, 0o755|os.ModeSetuid)) //nolint:gosec // it can show who runs it, nothing else
	}
	if err != nil {
		t.Fatal(err)
	}
	return dir
}
