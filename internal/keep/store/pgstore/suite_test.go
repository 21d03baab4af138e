package pgstore

import (
	"testing"

	"github.com/rlmhq/rlm/internal/keep/store"
	"github.com/rlmhq/rlm/internal/testing/storetest"
)

func TestSuite(t *testing.T) {
	storetest.Run(t, func(t *testing.T) func() store.Store {
		t.Helper()
		w := newWorld(t)
		return func() store.Store { return w.open(t) }
	})
}
