package docker

import (
	"fmt"

	"github.com/rlmhq/rlm/internal/daemon"
	"github.com/rlmhq/rlm/internal/pykernel"
	"github.com/rlmhq/rlm/tiers"
)

// show returns the mounts that let a guest read the files of long texts, and where
// it finds the file of each input, empty where it does not.
func show(inputs []tiers.Input) ([]daemon.Mount, []string) {
	paths := make([]string, len(inputs))
	var mounts []daemon.Mount
	for i, in := range inputs {
		if source := pykernel.FileOf(in, true); source != "" {
			paths[i] = fmt.Sprintf("/context/%d", i)
			mounts = append(mounts, daemon.Mount{Source: source, Target: paths[i]})
		}
	}
	return mounts, paths
}
