package session

import (
	"os"
	"path/filepath"

	"github.com/rlmhq/rlm/internal/data/bigtext"
	"github.com/rlmhq/rlm/tiers"
)

// FileOf returns the path of a long text's file, or an empty string if the guest may not read it.
// If other is set, the guest and this process run as different users.
func FileOf(in tiers.Input, other bool) string {
	text, ok := in.Text.(*bigtext.Text)
	if !ok || text.File() == nil || text.Size() <= LongText {
		return ""
	}
	path, err := filepath.Abs(text.File().Name())
	if err != nil {
		return ""
	}
	open, err := text.File().Stat()
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
