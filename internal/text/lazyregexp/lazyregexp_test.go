package lazyregexp

import "testing"

func TestPatternsAreCompiledOnFirstUse(t *testing.T) {
	words, broken := New(`\w+`), New(`(`)
	if got := words.FindAllString("one, two", -1); len(got) != 2 || got[1] != "two" {
		t.Errorf("it finds %q", got)
	}

	defer func() {
		if recover() == nil {
			t.Error("a broken text compiles")
		}
	}()
	broken.MatchString("x")
}
