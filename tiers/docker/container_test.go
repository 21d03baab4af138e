package docker

import (
	"strings"
	"testing"

	"github.com/rlmhq/rlm/internal/wall/dockerapi"
)

// TestFindFault checks that ends that a guest cannot cause are distinguished from those that a
// snippet may cause.
func TestFindFault(t *testing.T) {
	for _, row := range []struct {
		name  string
		state dockerapi.State
		oom   bool
		want  string // empty for the snippet's own end
	}{
		{name: "the first process ended", state: dockerapi.State{ExitCode: 0}},
		{name: "the first process failed", state: dockerapi.State{ExitCode: 1}},
		{
			name:  "killed by somebody",
			state: dockerapi.State{ExitCode: 137},
			want:  "killed from outside",
		},
		{name: "killed for its memory", state: dockerapi.State{ExitCode: 137}, oom: true},
		{
			name:  "ended while the daemon was dead",
			state: dockerapi.State{ExitCode: 255},
			want:  "while its daemon was away",
		},
		{
			name:  "the daemon names an error",
			state: dockerapi.State{ExitCode: 128, Error: "no such device"},
			want:  "the container failed: no such device",
		},
	} {
		t.Run(row.name, func(t *testing.T) {
			var c container
			c.findFault(row.state, row.oom)

			switch got := c.Fault(); {
			case row.want == "" && got != nil:
				t.Errorf("got %v, want none", got)
			case row.want != "" && (got == nil || !strings.Contains(got.Error(), row.want)):
				t.Errorf("got %v, want %q", got, row.want)
			}
		})
	}
}
