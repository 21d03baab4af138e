package flush_test

import (
	"errors"
	"io/fs"
	"path/filepath"
	"testing"

	"github.com/rlmhq/rlm/internal/machine/flush"
)

func TestAFolderIsFlushed(t *testing.T) {
	dir := t.TempDir()
	if err := flush.Folder(dir); err != nil {
		t.Error(err)
	}
	if err := flush.Folder(filepath.Join(dir, "none")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a missing folder: %v", err)
	}
}
