//go:build unix

package local_test

import (
	"context"
	"errors"
	"fmt"
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

	"github.com/rlmhq/rlm/internal/testing/gosuite"
	"github.com/rlmhq/rlm/internal/testing/harm"
	"github.com/rlmhq/rlm/internal/testing/skip"
	"github.com/rlmhq/rlm/internal/wall/jail"
	"github.com/rlmhq/rlm/tiers"
)

// TestHostileGo checks attacks on the jail, the runtime, the connection and the compiler.
func TestHostileGo(t *testing.T) {
	skip.Short(t, "it compiles dozens of programs")
	skip.UnderRace(t)
	gosuite.RunHostile(t, goTier(t), 4, nil)
}

// TestGoAttacksWithoutLayers is the negative control: it runs each attack as a program without the
// tier's runtime, in a jail without the layers that would stop it, and checks that it does its
// harm.
func TestGoAttacksWithoutLayers(t *testing.T) {
	skip.Short(t, "it compiles dozens of programs")
	skip.UnderRace(t)
	program := attackProgram(t, gosuite.PrepareHost(t))
	for i, a := range gosuite.Attacks {
		t.Run(a.Name, func(t *testing.T) {
			t.Parallel()
			dir := gosuite.MakeCanaryFolder(t)
			own := filepath.Join(dir, "open", "program")
			err := errors.Join(
				os.Link(program, own),
				os.Chmod(own, 0o755),
			) //nolint:gosec // the guest's user runs it
			if err != nil {
				t.Fatal(err)
			}
			folders := []jail.Bind{{Source: filepath.Dir(own)}}
			for _, folder := range []string{"/usr", "/lib", "/lib64", "/bin"} {
				if _, err := os.Stat(folder); err == nil {
					folders = append(folders, jail.Bind{Source: folder})
				}
			}
			p, err := jail.Start(t.Context(), jail.Config{
				Path:     own,
				Args:     []string{"program", strconv.Itoa(i)},
				Env:      os.Environ(),
				Binds:    folders,
				Profile:  jail.Programs,
				Limits:   jail.Limits{Memory: 192 << 20, AddressSpace: 5 << 30},
				Off:      a.Without,
				MinClass: jail.Nested,
			})
			if err != nil {
				t.Fatal(err)
			}
			said := goHarms(t, p, a.Harm)
			// An attack that makes the program hang may also end it if a limit applies first.
			if !slices.Contains(said, a.Harm) &&
				(a.Harm != gosuite.Hangs || !slices.Contains(said, gosuite.Kills)) {
				t.Errorf("without %q it does %q, not %s: %s", a.Without, said, a.Harm, p.Output())
			}
		})
	}
}

// goHarms watches a program for as long as the harm needs and reports the harm that it did.
func goHarms(t *testing.T, p *jail.Process, want gosuite.Harm) (harms []gosuite.Harm) {
	t.Helper()
	sent := make(chan int, 1)
	go func() {
		n, _ := p.Conn().Read(make([]byte, 64)) // ending is harmless
		sent <- n
	}()
	if want == gosuite.Forges { // a busy machine starts it late
		select {
		case n := <-sent:
			sent <- n
		case <-time.After(time.Minute):
		}
	}
	within := 2 * time.Second
	if want == gosuite.Kills || want == gosuite.Escapes {
		within = time.Minute // they end by themselves
	}
	ctx, cancel := context.WithTimeout(t.Context(), within)
	defer cancel()
	exit, err := p.Wait(ctx)
	if killed := p.Kill(); killed != nil {
		t.Error(killed)
	}
	if <-sent > 0 {
		harms = append(harms, gosuite.Forges)
	}
	if err != nil || exit.OOM {
		harms = append(harms, gosuite.Hangs)
	}
	if err == nil && (exit.Code != 0 || exit.OOM) {
		harms = append(harms, gosuite.Kills)
	}
	if strings.Contains(string(p.Output()), "ESCAPED") {
		harms = append(harms, gosuite.Escapes)
	}
	return harms
}

// attackProgram compiles all attacks into one program, whose argument selects the attack.
func attackProgram(t *testing.T, fill *strings.Replacer) string {
	t.Helper()
	goTier(t) // or the test ends here
	dir := gosuite.MakeCanaryFolder(t)
	files, table := map[string]string{"go.mod": "module attacks\n\ngo 1.22\n"}, ""
	for i, a := range gosuite.Attacks {
		files[fmt.Sprintf("a%d.go", i)] = fmt.Sprintf("package main\n\n%sfunc attack%d() {\n%s\n}\n",
			a.Importing(), i, fill.Replace(a.Body))
		table += fmt.Sprintf("attack%d, ", i)
	}
	files["main.go"] = "package main\n\nimport (\n\"os\"\n\"strconv\"\n)\n\nfunc main() {\n" +
		"if len(os.Args) > 1 {\nn, _ := strconv.Atoi(os.Args[1])\n[]func(){" + table + "}[n]()\n" +
		"}\n}\n"
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

// TestGoBombsWithoutLimits is the negative control of attacks on the compiler: without limits, only
// the test stops the compiler.
func TestGoBombsWithoutLimits(t *testing.T) {
	skip.Short(t, "it compiles dozens of programs")
	skip.UnderRace(t)
	goTier(t)
	said, err := exec.CommandContext(t.Context(), "go", "env", "GOTOOLDIR").Output()
	if err != nil {
		t.Fatal(err)
	}
	for name, bomb := range gosuite.Bombs {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			file := filepath.Join(t.TempDir(), "bomb.go")
			source := "package main\n\n" + bomb[0] + "\n\nfunc main() {\n" + bomb[1] + "\n}\n"
			if err := os.WriteFile(file, []byte(source), 0o600); err != nil {
				t.Fatal(err)
			}
			cmd := exec.CommandContext(t.Context(), "/bin/sh", "-c", "echo '"+strings.TrimSpace(harm.Begun)+
				"'; exec \"$0\" -p main -o \"$1.o\" \"$1\"",
				filepath.Join(strings.TrimSpace(string(said)), "compile"), file)
			if kind, said := harm.Watch(t, cmd, 4*time.Second); !harm.Alike(kind, harm.Hangs) {
				t.Errorf("the compiler ends by itself: %q %s", kind, said)
			}
		})
	}
}

// TestGoLeavesNothingBehind checks that no processes, files, goroutines or descriptors remain after
// sessions.
func TestGoLeavesNothingBehind(t *testing.T) {
	skip.Short(t, "it compiles dozens of programs")
	tier := goTier(t)
	gosuite.RunOK(t, gosuite.Open(t, tier, tiers.Config{}), "1") // creates everything permanent
	temporary := t.TempDir()
	t.Setenv("TMPDIR", temporary)
	before, ignore := descriptors(t), goleak.IgnoreCurrent()
	for _, source := range []string{
		"x := 1", "for {\n}", "x := ", "import \"os\"\nos.Exit(1)",
		"panic(1)", "go func() { panic(1) }()\nselect {}",
	} {
		s, err := tier.Open(
			t.Context(), tiers.Config{Limits: tiers.Limits{Wall: 300 * time.Millisecond}},
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
	goleak.VerifyNone(t, ignore)
	runtime.GC()
	if after := descriptors(t); after > before {
		t.Errorf("%d descriptors, %d before", after, before)
	}
	if left, err := os.ReadDir(temporary); err != nil || len(left) > 0 {
		t.Errorf("files are left: %v %v", left, err)
	}
	if left, err := filepath.Glob(filepath.Join(os.TempDir(), "rlm-go-*")); err != nil ||
		len(left) > 0 {
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
	if want := 2; own > want { // the interpreter and the compiler of the session above
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
