package main

import (
	"io"
	"testing"

	"github.com/rlmhq/rlm/cmd/rlm/internal/cli"
	"github.com/rlmhq/rlm/cmd/rlm/internal/setup"
)

// TestCommandsHaveTheirNames checks that the table has each command under the command's own name.
func TestCommandsHaveTheirNames(t *testing.T) {
	e := &cli.Env{Stdout: io.Discard, Stderr: io.Discard}
	commands := listCommands()
	for _, c := range commands {
		cmd := c.make(e)
		if cmd.Name() != c.name {
			t.Errorf("%q is %q", c.name, cmd.Name())
		}
		for _, alias := range cmd.Aliases {
			if got := makeCommands(e, []string{alias}); len(got) != 1 || got[0].Name() != c.name {
				t.Errorf("the alias %q makes %d commands", alias, len(got))
			}
		}
		made := len(makeCommands(e, []string{c.name}))
		if c.name != setup.Manual && made != 1 {
			t.Errorf("%s makes %d commands", c.name, made)
		}
	}

	for _, args := range [][]string{
		nil, {"help", "exec"}, {"--log-level=info", "exec"}, {setup.Manual, "x"}, {"exce"},
	} {
		if got := len(makeCommands(e, args)); got != len(commands) {
			t.Errorf("%q makes %d of %d commands", args, got, len(commands))
		}
	}
}
