package docker_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/rlmhq/rlm/internal/testing/escapes"
	"github.com/rlmhq/rlm/internal/testing/skip"
	"github.com/rlmhq/rlm/internal/wall/dockerapi"
	"github.com/rlmhq/rlm/tiers"
	"github.com/rlmhq/rlm/tiers/docker"
)

func TestEscape(t *testing.T) {
	skip.UnderRace(t)
	escapes.RunFew(t, usual(t, docker.Options{}), escapes.KnownProcess)
}

// tryWithout runs a case in a container without the layers that contain it, except for the one
// to keep.
func tryWithout(t *testing.T, c escapes.Case, keep dockerapi.Layer) string {
	t.Helper()
	var off []dockerapi.Layer
	for _, name := range c.Layers(docker.Name) {
		layer := dockerapi.Layer(name)
		if !slices.Contains(dockerapi.Layers(), layer) {
			t.Fatalf("there is no layer %q", name)
		}
		if layer != keep {
			off = append(off, layer)
		}
	}
	tier := usual(t, docker.Options{Warm: -1})
	tier.Without(off)
	return escapes.Try(t, tier, c, nil)
}

// TestEscapeWithoutLayers shows that the cases are genuine: they succeed when the layers that
// contain them are off.
func TestEscapeWithoutLayers(t *testing.T) {
	skip.UnderRace(t)
	for _, c := range escapes.FewWithoutLayers(t, docker.Name) {
		t.Run(c.ID(), func(t *testing.T) {
			t.Parallel()
			if verdict := tryWithout(t, c, ""); !strings.HasPrefix(verdict, escapes.Escaped) {
				t.Errorf("even without %s it is %s", c.Layers(docker.Name), verdict)
			}
		})
	}
}

// TestEachLayerContains restores one layer at a time, and checks that this layer alone contains a
// case that escapes without it.
func TestEachLayerContains(t *testing.T) {
	skip.UnderRace(t)
	cases := map[dockerapi.Layer]string{
		dockerapi.Seccomp: "network/connect", dockerapi.Network: "network/connect",
		dockerapi.Privileges: "kernel/mount", dockerapi.Rootfs: "container/modules_folder",
		dockerapi.Names: "container/name_of_the_host",
		dockerapi.Masks: "container/core_pattern", dockerapi.Tmpfs: "limits/inodes",
		dockerapi.Resources: "limits/open_files",
	}
	for _, layer := range dockerapi.Layers() {
		t.Run(string(layer), func(t *testing.T) {
			t.Parallel()
			c := escapes.Named(t, cases[layer])
			if !slices.Contains(c.Layers(docker.Name), string(layer)) {
				t.Fatalf("%s does not name the layer", c.ID())
			}
			if verdict := tryWithout(t, c, layer); strings.HasPrefix(verdict, escapes.Escaped) {
				t.Errorf("%s does not contain %s: %s", layer, c.ID(), verdict)
			}
		})
	}
}

// TestEscapeThroughAMount is the negative control for the image's separate file tree: if a folder
// of the host is mounted, a snippet can read its files.
func TestEscapeThroughAMount(t *testing.T) {
	skip.UnderRace(t)
	tier := usual(t, docker.Options{Warm: -1})
	verdict := escapes.Try(t, tier, escapes.Named(t, "files/os_open"), func(cfg *tiers.Config, folder string) {
		cfg.Mounts = []tiers.Mount{{Source: folder, Target: folder}}
	})
	if !strings.HasPrefix(verdict, escapes.Escaped) {
		t.Errorf("with the folder mounted it is %s", verdict)
	}
}
