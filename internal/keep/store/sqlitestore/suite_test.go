package sqlitestore_test

import (
	"testing"

	"github.com/rlmhq/rlm/internal/keep/store"
	"github.com/rlmhq/rlm/internal/keep/store/sqlitestore"
	"github.com/rlmhq/rlm/internal/testing/storetest"
)

func TestSuite(t *testing.T) {
	storetest.Run(t, func(t *testing.T) func() store.Store {
		t.Helper()
		dir := t.TempDir()
		return func() store.Store {
			f, err := sqlitestore.Open(dir)
			if err != nil {
				t.Fatal(err)
			}
			return f
		}
	})
}
