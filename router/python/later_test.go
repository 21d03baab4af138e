package python

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/rlmhq/rlm/router"
)

// needed says what a snippet imports and needs at once, and after a bar what its functions
// need when a later snippet uses them.
func needed(n *router.Needs) string {
	list := func(n *router.Needs) string {
		var parts []string
		for _, i := range n.Imports {
			if !i.Guarded {
				parts = append(parts, i.Module)
			}
		}
		for _, f := range n.Features {
			if f.Feature != "classes" && f.Feature != "async" {
				parts = append(parts, string(f.Feature))
			}
		}
		return strings.Join(parts, " ")
	}
	text := list(n)
	for _, name := range slices.Sorted(maps.Keys(n.Later)) {
		text += fmt.Sprintf(" | %s: %s", name, list(n.Later[name]))
	}
	return strings.TrimSpace(text)
}

// TestWhatIsNotReachedIsNotNeeded has imports and uses that do not happen, or not yet.
func TestWhatIsNotReachedIsNotNeeded(t *testing.T) {
	a, _ := open(t)
	for _, c := range []struct{ source, want string }{
		// A condition that never holds.
		{"from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import numpy", "typing"},
		{"import typing\nif typing.TYPE_CHECKING:\n    import numpy\nelse:\n    import re", "typing re"},
		{"import typing as t\nif t.TYPE_CHECKING:\n    from subprocess import run", "typing"},
		{"from typing_extensions import TYPE_CHECKING as T\nif T:\n    import mmap", "typing_extensions"},
		{"TYPE_CHECKING = False\nif TYPE_CHECKING:\n    import numpy", ""},
		{"if TYPE_CHECKING:\n    import numpy", ""},
		{"def f():\n    if TYPE_CHECKING:\n        import numpy\nf()", ""},
		{"if TYPE_CHECKING:\n    import numpy\nimport scipy", "scipy"},
		{"TYPE_CHECKING = True\nif TYPE_CHECKING:\n    import numpy", "numpy"},
		{"from settings import TYPE_CHECKING\nif TYPE_CHECKING:\n    import numpy", "settings numpy"},
		{"if not TYPE_CHECKING:\n    import numpy", "numpy"},
		{"if debug:\n    import numpy", "numpy"},

		// A function that nothing calls yet.
		{"def f():\n    import numpy", "| f: numpy"},
		{"def f():\n    import numpy\nf()", "numpy"},
		{"def f():\n    import numpy\nrows = list(map(f, rows))", "numpy"},
		{"def f():\n    import numpy\nhandlers = {'f': f}", "numpy"},
		{"def f():\n    import numpy\ndef g():\n    return f()", "| f: numpy | g: numpy"},
		{"def f():\n    import numpy\ndef g():\n    return f()\ng()", "numpy"},
		{"def f():\n    def g():\n        import numpy\n    return g", "| f: numpy"},
		{"def f():\n    import numpy\ndef f():\n    import scipy", "| f: scipy"},
		{"def f():\n    import numpy\nf = None", ""},
		{"async def f():\n    import numpy\nawait f()", "numpy"},
		{"async def f():\n    import numpy", "| f: numpy"},
		{"@functools.cache\ndef f():\n    import numpy", "| f: numpy"},
		{"@app.command\ndef f():\n    import numpy", "numpy"},
		{"class A:\n    def f(self):\n        import numpy", "| A: numpy"},
		{"class A:\n    def f(self):\n        import numpy\nA().f()", "numpy"},
		{"class A:\n    import numpy", "numpy"},
		{"class A:\n    class B:\n        def f(self):\n            import numpy", "| A: numpy"},
		{"def f():\n    class A:\n        import numpy", "| f: numpy"},
		{"def f():\n    try:\n        import numpy\n    except ImportError:\n        pass", "| f:"},
		{"f = lambda: __import__('numpy')", "numpy"},

		// What it uses.
		{"import os\ndef f():\n    os.system('ls')", "os | f: processes"},
		{"import os\ndef f():\n    os.system('ls')\nf()", "os processes"},
		{"def f():\n    from subprocess import run", "| f: subprocess"},
		{"def f():\n    from subprocess import run\n    run(['ls'])", "| f: subprocess processes"},
		{"def f():\n    import ctypes", "| f: ctypes native"},
		{"def f(path):\n    return open(path).read()\nprint(len(f('x')))", "files"},
		{"def f(code):\n    exec(code)", "dynamic"},
	} {
		if got := needed(needs(t, a, c.source)); got != c.want {
			t.Errorf("%s\n  needs %q, want %q", c.source, got, c.want)
		}
	}
}
