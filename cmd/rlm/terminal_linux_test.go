package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/rlmhq/rlm/cmd/rlm/internal/wiring"
	"github.com/rlmhq/rlm/internal/testing/llmtest"
	"github.com/rlmhq/rlm/internal/testing/skip"
	"github.com/rlmhq/rlm/repl/llm/scripted"
	"github.com/rlmhq/rlm/tiers/docker"
)

// openTerminal returns the two ends of a pseudo-terminal.
func openTerminal(t *testing.T) (screen, terminal *os.File) {
	t.Helper()
	screen, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = screen.Close() })
	fd := int(screen.Fd()) //nolint:gosec // a descriptor fits
	if err := unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	number, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}

	terminal, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = terminal.Close() })
	return screen, terminal
}

// showOnTerminal runs a command with a terminal as output, and returns what the terminal received.
func showOnTerminal(t *testing.T, args ...string) string {
	t.Helper()
	screen, terminal := openTerminal(t)
	run(t.Context(), args, strings.NewReader(""), terminal, terminal)
	return readScreen(t, screen, terminal)
}

// readScreen returns what a terminal has received until now.
func readScreen(t *testing.T, screen, terminal *os.File) string {
	t.Helper()
	if _, err := terminal.WriteString("the end\n"); err != nil {
		t.Fatal(err)
	}

	var shown bytes.Buffer
	part := make([]byte, 4096)
	for !bytes.Contains(shown.Bytes(), []byte("the end")) {
		n, err := screen.Read(part)
		if err != nil {
			t.Fatal(err)
		}
		shown.Write(part[:n])
	}
	return shown.String()
}

// commanding is a snippet that controls a terminal. It writes to the clipboard, clears the screen,
// moves to the beginning of the line, and splits a character.
const commanding = `import sys
print("\x1b]52;c;cm0gLXJmIH4=\x07 \x1b[2J ü \x9b1m")
print("one\rrlm: forged", file=sys.stderr)
for b in "é".encode(): sys.stdout.buffer.write(bytes([b])); sys.stdout.flush()
FINAL("\x1b[31mred")`

func TestATerminalGetsNoControlSequence(t *testing.T) {
	shown := showOnTerminal(t, "exec", "--quiet", "-c", commanding)
	if strings.ContainsAny(strings.ReplaceAll(shown, "\r\n", "\n"), "\x1b\x07\u009b\r") {
		t.Errorf("the terminal gets %q", shown)
	}
	for _, want := range []string{
		`\x1b]52;c;cm0gLXJmIH4=\x07 \x1b[2J ü \x9b1m`, `one\x0drlm: forged`, "é", `\x1b[31mred`,
	} {
		if !strings.Contains(shown, want) {
			t.Errorf("the terminal gets %q without %q", shown, want)
		}
	}

	shown = showOnTerminal(t, "exec", "--quiet", "-c", `raise ValueError("\x1b[2J")`)
	if strings.Contains(shown, "\x1b") || !strings.Contains(shown, `ValueError: \x1b[2J`) {
		t.Errorf("the terminal gets the traceback %q", shown)
	}
}

func TestRawOutputReachesATerminal(t *testing.T) {
	shown := showOnTerminal(t, "exec", "--quiet", "--raw", "-c", commanding)
	for _, want := range []string{"\x1b]52;c;", "\x1b[2J", "\x1b[31mred", "one\rrlm: forged"} {
		if !strings.Contains(shown, want) {
			t.Errorf("the terminal gets %q without %q", shown, want)
		}
	}
}

// figure is a snippet whose value has a picture, as Matplotlib's figures do.
const figure = `import base64
class Figure:
    def _repr_png_(self):
        return base64.b64decode("iVBORw0KGgoAAAANSUhEUgAAAAIAAAACCAIAAAD91JpzAAAAEUlEQVR4nGP4z8AARGDi" +
            "PwMAHfAD/aAzCYkAAAAASUVORK5CYII=")
Figure()`

// TestAFigureOfAContainerShowsInATerminal draws in terminals that declare their capabilities in
// environment variables.
func TestAFigureOfAContainerShowsInATerminal(t *testing.T) {
	tier := docker.New(docker.Options{Host: wiring.DockerHost()})
	skip.WithoutTier(t, docker.Name, tier.Probe(t.Context()))
	for _, c := range []struct {
		name, variable, value, want string
		flags                       []string
	}{
		{"kitty", "TERM", "xterm-kitty", "\x1b_Gf=100,a=T,m=0;iVBOR", nil},
		{"iTerm", "TERM_PROGRAM", "iTerm.app", "\x1b]1337;File=inline=1;size=", nil},
		{"sixel", "TERM", "xterm", "\x1bP0;0;8q\"1;1;2;2", []string{"--pictures", "sixel"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			for _, name := range []string{"TMUX", "STY", "KITTY_WINDOW_ID", "TERM_PROGRAM", "LC_TERMINAL"} {
				t.Setenv(name, "")
			}
			t.Setenv("TERM", "xterm")
			t.Setenv(c.variable, c.value)
			args := append([]string{"exec", "--quiet", "--tier", "docker", "-c", figure}, c.flags...)
			if shown := showOnTerminal(t, args...); !strings.Contains(shown, c.want) {
				t.Errorf("the terminal gets %q without %q", shown, c.want)
			}
		})
	}
}

// TestATerminalGetsTheRepliesAsTheyArrive checks the live view of replies when the first stream
// breaks and stdout is redirected.
func TestATerminalGetsTheRepliesAsTheyArrive(t *testing.T) {
	needCache(t)
	t.Setenv("TERM", "xterm") // a dumb terminal has no live view
	final := "The text begins.\n```repl\nFINAL('done')\n```\n"
	script, err := scripted.New(scripted.Rule{Reply: &final})
	if err != nil {
		t.Fatal(err)
	}
	server := start(script)
	defer server.Close()
	for _, name := range serverVariables {
		t.Setenv(name, server.Env(name))
	}

	for _, c := range []struct {
		flags    []string
		streamed bool
	}{{nil, true}, {[]string{"--json"}, true}, {[]string{"--stream=false"}, false}, {[]string{"--quiet"}, false}} {
		server.Fail(llmtest.StreamError(4, "overloaded_error", "busy")) // has no effect on a reply that is not streamed
		screen, terminal := openTerminal(t)
		var stdout bytes.Buffer
		args := append([]string{"run", "x", "--model", "openai/any"}, c.flags...)
		run(t.Context(), args, strings.NewReader(""), &stdout, terminal)

		shown := readScreen(t, screen, terminal)
		text := strings.Count(shown, "rlm: reply | FINAL('done')")
		broken := strings.Contains(shown, "rlm: reply | (the reply broke off here; it starts again)")
		if broken != c.streamed || (text > 0) != c.streamed {
			t.Errorf("%v: the terminal gets %q", c.flags, shown)
		}
		if out := stdout.String(); out != "done\n" && !strings.HasPrefix(out, `{"status":"answered"`) {
			t.Errorf("%v: stdout is %q", c.flags, out)
		}
	}
}

// mailProgram is a tool program with one tool, which answers each call.
const mailProgram = `echo '{"tools": [{"name": "mail", "description": "", "parameters": {"type": "object",
"properties": {"to": {"type": "string"}}}}]}' | tr '\n' ' '; echo
n=0; while read line; do n=$((n+1)); echo "{\"id\": $n, \"result\": \"sent\"}"; done`

func TestAPersonIsAskedOnTheTerminal(t *testing.T) {
	program := filepath.Join(t.TempDir(), "mail.sh")
	if err := os.WriteFile(program, []byte(mailProgram), 0o600); err != nil {
		t.Fatal(err)
	}
	for typed, want := range map[string]string{
		"yes\n": "or later: sent", "no\n": "the user has denied it", "\n": "the answer comes later",
	} {
		t.Run(typed, func(t *testing.T) {
			screen, terminal := openTerminal(t)
			if _, err := screen.WriteString(typed); err != nil {
				t.Fatal(err)
			}
			run(t.Context(), []string{
				"exec", "--tool-command", "sh " + program, "--approve", "ask mail", "-c", "print(mail('\x1b[2J'))",
			}, terminal, terminal, terminal)
			shown := readScreen(t, screen, terminal)
			if !strings.Contains(shown, want) || !strings.Contains(shown, "make the call? yes, no or later") ||
				strings.Contains(shown, "\x1b[2J") {
				t.Errorf("%q: the terminal gets %q", typed, shown)
			}
		})
	}
}
