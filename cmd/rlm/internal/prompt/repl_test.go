package prompt

import (
	"testing"
)

func TestIndentsFollowTheLineBefore(t *testing.T) {
	for source, want := range map[string]string{
		"if x:":                          "    ",
		"for i in y:\n    if i:":         "        ",
		"def f():\n    a = 1":            "    ",
		"def f():\n    return 1":         "",
		"if x:\n    if y:\n        pass": "    ",
		"x = [":                          "",
	} {
		t.Run(source, func(t *testing.T) {
			if got := indentAfter(source); got != want {
				t.Errorf("%q: %q, want %q", source, got, want)
			}
		})
	}
}
