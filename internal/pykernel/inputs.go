package pykernel

import (
	"os"
	"path/filepath"

	"github.com/rlmhq/rlm/tiers"
)

// showAbove is the size above which a text is worth being shown as a file: the
// guest gets smaller ones as a str.
const showAbove = 8 << 20

// FileOf is the path of a long text's file, empty if the guest may not read it; the
// guest is another user than this process, if other is set.
func FileOf(in tiers.Input, other bool) string {
	if in.Text == nil || in.Text.File() == nil || in.Text.Bytes() <= showAbove {
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
	if other && there.Mode().Perm()&0o004 == 0 {
		return ""
	}
	return path
}
