package local

import (
	"fmt"
	"os"

	"github.com/rlmhq/rlm/internal/jail"
	"github.com/rlmhq/rlm/internal/pykernel"
	"github.com/rlmhq/rlm/tiers"
)

// show returns the binds that let a guest read the files of long texts, and where
// it finds the file of each input, empty where it does not.
func (t *Tier) show(inputs []tiers.Input) ([]jail.Bind, []string) {
	paths := make([]string, len(inputs))
	if t.options.MinClass != jail.Full || t.off != 0 {
		return nil, paths // without a file tree of its own there is no place
	}
	var binds []jail.Bind
	for i, in := range inputs {
		if source := pykernel.FileOf(in, os.Geteuid() == 0); source != "" {
			paths[i] = fmt.Sprintf("/context/%d", i)
			binds = append(binds, jail.Bind{Source: source, Target: paths[i]})
		}
	}
	return binds, paths
}
