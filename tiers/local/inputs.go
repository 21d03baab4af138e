package local

import (
	"fmt"
	"os"

	"github.com/rlmhq/rlm/internal/jail"
	"github.com/rlmhq/rlm/internal/session"
	"github.com/rlmhq/rlm/tiers"
)

// showFiles returns the binds of the files of long texts, and the path of each input's file
// in the guest, empty for inputs without one.
func (t *Tier) showFiles(inputs []tiers.Input) ([]jail.Bind, []string) {
	paths := make([]string, len(inputs))
	if t.options.AllowNested || t.off != 0 {
		return nil, paths // without a separate file tree, files have no place
	}
	var binds []jail.Bind
	for i, in := range inputs {
		if source := session.FileOf(in, os.Geteuid() == 0); source != "" {
			paths[i] = fmt.Sprintf("/context/%d", i)
			binds = append(binds, jail.Bind{Source: source, Target: paths[i]})
		}
	}

	return binds, paths
}
