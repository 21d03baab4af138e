package python

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/rlmhq/rlm/router"
)

// needed lists the imports and features that a snippet needs immediately, with a question mark
// after unlikely imports. After a bar, it lists those that a function needs when a later snippet
// uses the function.
func needed(n *router.Needs) string {
	list := func(n *router.Needs) string {
		var parts []string
		for _, i := range n.Imports {
			switch {
			case i.Unlikely:
				parts = append(parts, i.Module+"?")
			case !i.Guarded:
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

// TestUnreachedImportsAreNotNeeded checks imports and uses that the snippet does not reach, or not
// yet.
func TestUnreachedImportsAreNotNeeded(t *testing.T) {
	a, _ := open(t)
	for _, c := range []struct{ source, want string }{
		// A condition that is never true.
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

		// A condition that is known without running the snippet.
		{"if 0:\n    import subprocess\n    subprocess.run('x')", ""},
		{"if False:\n    import numpy\nelse:\n    import re", "re"},
		{"if True:\n    import re\nelse:\n    import numpy", "re"},
		{"while False:\n    import numpy", ""},
		{"for x in []:\n    import numpy", ""},
		{"for x in ():\n    import numpy\nelse:\n    import re", "re"},
		{"if not True:\n    import numpy", ""},
		{"if None or False and x:\n    import numpy", ""},
		{"if TYPE_CHECKING and True:\n    import numpy", ""},
		{"if debug and False:\n    import numpy", ""},
		{"if True or debug:\n    import re\nelif x:\n    import numpy", "re"},
		{"import sys\nif sys.platform == 'win32':\n    import winreg", "sys"},
		{"import sys\nif sys.platform.startswith('win'):\n    import winreg", "sys"},
		{"import sys\nif sys.platform in ('win32', 'cygwin'):\n    import winreg\nelse:\n    import re", "sys re"},
		{"from os import name\nif name != 'nt':\n    import re\nelse:\n    import winreg", "os re"},
		{"import platform\nif platform.system() == 'Windows':\n    import winreg", "platform"},
		{"import sys\nif sys.platform == 'linux':\n    import numpy", "sys numpy"},
		{"import sys\nif sys.version_info[0] < 3:\n    import numpy", "sys"},
		{"import sys\nif sys.version_info < (3, 9):\n    import numpy", "sys"},
		{"import sys\nif sys.version_info.major == 2:\n    import numpy", "sys"},
		{"raise SystemExit\nimport numpy", ""},
		{"for x in y:\n    continue\n    import numpy", ""},
		{"def f():\n    return 1\n    import numpy\nf()", ""},
		{"def f():\n    if x:\n        return 1\n    import numpy\nf()", "numpy"},
		{"def f():\n    return 1\n    yield\nf()", "generators"},
		{"with x:\n    raise y\n    import numpy\nimport re", "re"},

		// A condition that is known for most versions of Python, or as long as a name is not
		// rebound.
		{"import sys\nif sys.version_info < (3, 11):\n    import numpy\nelse:\n    import re", "sys numpy? re"},
		{"import sys\nif sys.version_info >= (3, 11):\n    import re\nelse:\n    import numpy", "sys re numpy?"},
		{"import sys\nif sys.version_info[:2] == (3, 10):\n    import numpy", "sys numpy?"},
		{"import sys\nif not sys.version_info.minor > 10:\n    import numpy", "sys numpy?"},
		{"DEBUG = False\nif DEBUG:\n    import numpy", "numpy?"},
		{"DEBUG = False\nif x and DEBUG:\n    import numpy", "numpy?"},
		{"DEBUG = True\nif not DEBUG:\n    import numpy", "numpy?"},
		{"DEBUG = False\nDEBUG = x\nif DEBUG:\n    import numpy", "numpy"},
		{"DEBUG = False\ndef f():\n    if DEBUG:\n        import numpy\nf()", "numpy?"},
		{"DEBUG = False\nif DEBUG:\n    subprocess.run('x')", "processes"},

		// A condition that is unknown.
		{"if debug:\n    import numpy", "numpy"},
		{"if importlib.util.find_spec('numpy'):\n    import numpy", "numpy"},
		{"match x:\n    case 1:\n        import numpy", "numpy"},
		{"import sys\nif sys.version_info < x:\n    import numpy", "sys numpy"},
		{"import sys\nif sys.version_info['a'] < 3 < 4:\n    import numpy", "sys numpy"},
		{"import sys\nif sys.version_info < 'a' or sys.version_info[9] > 2:\n    import numpy", "sys numpy"},
		{"import sys\nif sys.platform.startswith(1):\n    import numpy", "sys numpy"},

		// Code that depends on the presence of a module.
		{"try:\n    import tomllib\nexcept ImportError:\n    import numpy as tomllib", "numpy?"},
		{"try:\n    import a\nexcept ImportError:\n    b = 0\nelse:\n    from a import b", "a?"},
		{"try:\n    import a\nexcept ImportError:\n    raise\nelse:\n    import numpy", "a numpy"},
		{"try:\n    f()\nexcept Exception:\n    import numpy", "numpy"},
		{"try:\n    import a\nexcept ImportError:\n    import numpy\nimport numpy", "numpy"},
		{"try:\n    import a\nexcept ImportError:\n    def f():\n        import numpy", "| f: numpy?"},

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

		// Names that a function uses.
		{"import os\ndef f():\n    os.system('ls')", "os | f: processes"},
		{"import os\ndef f():\n    os.system('ls')\nf()", "os processes"},
		{"def f():\n    from subprocess import run", "| f: subprocess"},
		{"def f():\n    from subprocess import run\n    run(['ls'])", "| f: subprocess processes"},
		{"def f():\n    import ctypes", "| f: ctypes native"},
		{"def f(path):\n    return open(path).read()\nprint(len(f('x')))", "files"},
		{"def f(code):\n    exec(code)", "dynamic"},
	} {
		t.Run(fmt.Sprintf("%.60s", c.source), func(t *testing.T) {
			if got := needed(needs(t, a, c.source)); got != c.want {
				t.Errorf("%s\n  needs %q, want %q", c.source, got, c.want)
			}
		})
	}
}
