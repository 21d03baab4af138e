package record

import (
	"path/filepath"
	"testing"
)

func TestFoldersOfSubLoopsAreTakenOnce(t *testing.T) {
	dir := t.TempDir()
	trace, err := Open(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	first := trace.Folder()
	child, err := trace.Child()
	if err != nil {
		t.Fatal(err)
	}
	if first != filepath.Join(dir, "sub_0001") || child.folder != "sub_0002/" {
		t.Errorf("the folders are %s and %s", first, child.folder)
	}
	own, err := Open(t.Context(), first) // as a run in this folder does
	if err != nil {
		t.Fatal(err)
	}
	for _, open := range []*Trace{own, child, trace} {
		if err := open.Close(); err != nil {
			t.Error(err)
		}
	}
	var none *Trace
	if none.Folder() != "" {
		t.Error("a nil Trace has a folder")
	}
}
