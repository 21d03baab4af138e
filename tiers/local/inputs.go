package local

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/rlmhq/rlm/internal/jail"
	"github.com/rlmhq/rlm/tiers"
)

// mapAbove is the size above which a text is worth a process of its own: the
// guest gets smaller ones as a str.
const mapAbove = 8 << 20

// show returns the binds that let a guest read the files of long texts, and where
// it finds the file of each input, empty where it does not.
func (t *Tier) show(inputs []tiers.Input) ([]jail.Bind, []string) {
	paths := make([]string, len(inputs))
	if t.options.MinClass != jail.Full || t.off != 0 {
		return nil, paths // without a file tree of its own there is no place
	}
	var binds []jail.Bind
	for i, in := range inputs {
		if source := readable(in); source != "" {
			paths[i] = fmt.Sprintf("/context/%d", i)
			binds = append(binds, jail.Bind{Source: source, Target: paths[i]})
		}
	}
	return binds, paths
}

// readable is the path of an input's file if the guest's user may read it.
func readable(in tiers.Input) string {
	if in.Text == nil || in.Text.File() == nil || in.Text.Bytes() <= mapAbove {
		return ""
	}
	path, err := filepath.Abs(in.Text.File().Name())
	if err != nil {
		return ""
	}
	open, err := in.Text.File().Stat()
	if err != nil {
		return ""
	}
	there, err := os.Lstat(path)
	if err != nil || !os.SameFile(open, there) || !there.Mode().IsRegular() {
		return ""
	}
	if os.Geteuid() == 0 && there.Mode().Perm()&0o004 == 0 {
		return "" // the guest is another user
	}
	return path
}
