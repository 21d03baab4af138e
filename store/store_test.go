package store_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rlmhq/rlm"
	"github.com/rlmhq/rlm/store"
)

func open(t *testing.T, s rlm.Store) *rlm.Engine {
	t.Helper()
	engine, err := rlm.New(rlm.Options{Store: s})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := engine.Close(); err != nil {
			t.Error(err)
		}
	})
	return engine
}

// TestAFolderIsOpenedWithItsFirstUse checks that an engine that does not use its store does not
// open it.
func TestAFolderIsOpenedWithItsFirstUse(t *testing.T) {
	path := filepath.Join(t.TempDir(), "runs")
	engine := open(t, store.Folder(path))
	if _, err := os.Stat(path); !os.IsNotExist(err) {
		t.Errorf("New has made the folder: %v", err)
	}
	if _, err := engine.Runs(t.Context(), rlm.RunFilter{}); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(path); err != nil {
		t.Error(err)
	}
}

func TestEnginesShareAStore(t *testing.T) {
	shared := store.Folder(t.TempDir())
	first, second := open(t, shared), open(t, shared)
	for _, engine := range []*rlm.Engine{first, second} {
		if _, err := engine.Runs(t.Context(), rlm.RunFilter{}); err != nil {
			t.Error(err)
		}
	}
}

func TestAFolderWithoutANameIsRefused(t *testing.T) {
	_, err := open(t, store.Folder("")).Runs(t.Context(), rlm.RunFilter{})
	if err == nil || !strings.Contains(err.Error(), "name its folder") {
		t.Error(err)
	}
}

type foreign struct{}

func (foreign) String() string { return "elsewhere" }

func TestAForeignStoreIsRefused(t *testing.T) {
	_, err := rlm.New(rlm.Options{Store: foreign{}})
	if err == nil || !strings.Contains(err.Error(), "elsewhere: pass one of package store") {
		t.Error(err)
	}
}
