package stwait

import (
	"runtime"
	"testing"
)

func TestAStopCounts(t *testing.T) {
	before := Read()
	if wait := before.Longest(before); wait != 0 {
		t.Errorf("nothing took %s", wait)
	}
	runtime.GC()
	if wait := Read().Longest(before); wait <= 0 {
		t.Errorf("a collection took %s", wait)
	}
}
