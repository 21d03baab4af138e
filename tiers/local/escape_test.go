//go:build unix

package local_test

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/rlmhq/rlm/internal/testing/escapes"
	"github.com/rlmhq/rlm/internal/testing/skip"
	"github.com/rlmhq/rlm/internal/wall/jail"
	"github.com/rlmhq/rlm/tiers/local"
	"github.com/rlmhq/rlm/tiers/tiertest"
)

func TestEscape(t *testing.T) {
	skip.Short(t, "make escape runs it")
	skip.UnderRace(t)
	escapes.RunFew(t, usual(t), escapes.KnownGuest)
}

// layers are the jail's layers, by their names in the corpus.
var layers = map[string]jail.Layers{
	"namespaces": jail.Namespaces, "mounts": jail.Mounts, "network": jail.Network,
	"privileges": jail.Privileges, "landlock": jail.Landlock, "seccomp": jail.Seccomp,
	"rlimits": jail.Rlimits, "cgroup": jail.Cgroup,
}

// tryWithout runs a case in a jail without the layers that contain it, except for those to keep.
func tryWithout(t *testing.T, c escapes.Case, keep ...string) string {
	t.Helper()
	needCommonPython(t)
	if strings.Contains(c.Name, "set_user_id") && os.Geteuid() != 0 {
		t.Skip("only root can make a program that belongs to root")
	}
	var off jail.Layers
	for _, name := range c.Layers(local.Name) {
		if layers[name] == 0 {
			t.Fatalf("there is no layer %q", name)
		}
		if !slices.Contains(keep, name) {
			off |= layers[name]
		}
	}
	tier := newTier(t, local.Options{Python: "/usr/bin/python3", Warm: -1})
	tiertest.Require(t, local.Name, tier.Probe(t.Context()))
	tier.Without(off)
	return escapes.Try(t, tier, c, nil)
}

// TestEscapeWithoutLayers shows that the cases are genuine: they succeed when the layers that
// contain them are off.
func TestEscapeWithoutLayers(t *testing.T) {
	skip.Short(t, "make escape runs it")
	skip.UnderRace(t)
	for _, c := range escapes.FewWithoutLayers(t, local.Name) {
		t.Run(c.ID(), func(t *testing.T) {
			t.Parallel()
			if verdict := tryWithout(t, c); !strings.HasPrefix(verdict, escapes.Escaped) {
				t.Errorf("even without %s it is %s", c.Layers(local.Name), verdict)
			}
		})
	}
}

// TestEachLayerContains restores one layer at a time, and checks that this layer alone contains a
// case that escapes without it. A separate file tree needs namespaces, and namespaces need such a
// tree to have their own /proc.
func TestEachLayerContains(t *testing.T) {
	skip.Short(t, "make escape runs it")
	skip.UnderRace(t)
	for layer, id := range map[string]string{
		"namespaces mounts": "container/name_of_the_host", "mounts namespaces": "files/os_open",
		"network": "network/abstract_socket", "privileges": "kernel/mount",
		"landlock": "files/os_open", "seccomp": "kernel/io_uring", "rlimits": "limits/processes",
		"cgroup": "limits/shared_memory",
	} {
		t.Run(layer, func(t *testing.T) {
			t.Parallel()
			c := escapes.Named(t, id)

			verdict := tryWithout(t, c, strings.Fields(layer)...)
			if strings.HasPrefix(verdict, escapes.Escaped) {
				t.Errorf("%s does not contain %s: %s", layer, id, verdict)
			}
		})
	}
}
