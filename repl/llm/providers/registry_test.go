package providers

import (
	"errors"
	"testing"
)

type closer struct{ closed *int }

func (c closer) Close() error { *c.closed++; return errors.New("away") }

func TestARegistryClosesWhatItKeepsOnce(t *testing.T) {
	closed := 0
	registry := &Registry{}
	registry.keep(closer{&closed})
	if err := registry.Close(); err == nil || closed != 1 {
		t.Errorf("got %v, closed %d times", err, closed)
	}
	if err := registry.Close(); err != nil || closed != 1 {
		t.Errorf("got %v, closed %d times", err, closed)
	}
}
