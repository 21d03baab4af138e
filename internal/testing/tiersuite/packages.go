package tiersuite

import (
	"strings"
	"testing"
	"testing/fstest"

	"github.com/rlmhq/rlm/tiers"
)

// packagesFolder returns packages for a session: working ones, a broken one, and one that replaces
// a module of the standard library.
func packagesFolder() fstest.MapFS {
	folder := fstest.MapFS{}
	for name, text := range map[string]string{
		"greet/__init__.py": "from .words import WORD, Greeting\n",
		"greet/words.py": "WORD = 'hello'\n" +
			"class Greeting:\n    def __init__(self, to): self.to = to\n",
		"greet/broken.py":                   "raise ValueError('broken')\n",
		"greet/data/a.txt":                  "some data\n",
		"space/inner.py":                    "NAME = __name__\n",
		"single.py":                         "# -*- coding: latin-1 -*-\nTEXT = 'caf\xe9'\n",
		"json.py":                           "raise ImportError('replaced')\n",
		"My_Greet-2.1.dist-info/METADATA":   "Metadata-Version: 2.1\nName: My-Greet\nVersion: 2.1\n",
		"My_Greet-2.1.dist-info/RECORD":     "greet/__init__.py,,\n",
		"My_Greet-2.1.dist-info/direct.txt": "x",
	} {
		folder[name] = &fstest.MapFile{Data: []byte(text)}
	}
	return folder
}

// testPackages tests the packages of a session.
func (s *suite) testPackages(t *testing.T) {
	cfg := tiers.Config{Packages: packagesFolder()}
	box := s.open(t, cfg)
	for _, c := range []struct{ source, stdout string }{
		{
			"import greet\nprint(greet.WORD, greet.__file__, greet.__name__)",
			"hello /packages/greet/__init__.py greet\n",
		},
		{"import space.inner\nprint(space.inner.NAME, list(space.__path__))", "space.inner ['/packages/space']\n"},
		{"import single\nprint(single.TEXT == 'caf\\xe9')", "True\n"},
		{"import json\nprint(json.dumps([1]))", "[1]\n"},
		{"import pkgutil\nprint(pkgutil.get_data('greet', 'data/a.txt'))", "b'some data\\n'\n"},
		{
			"import importlib.resources as r\nf = r.files('greet')\n" +
				"print(sorted(p.name for p in f.iterdir()), f.joinpath('no').is_file())\n" +
				"f = f / 'data' / 'a.txt'\nprint(f.read_text())",
			"['__init__.py', 'broken.py', 'data', 'words.py'] False\nsome data\n\n",
		},
		{
			"import importlib.metadata as m\nprint(m.version('my.greet'), m.files('my-greet')[0])",
			"2.1 greet/__init__.py\n",
		},
		{"import inspect\nprint(inspect.getsource(greet.Greeting).count('def'))", "1\n"},
		{"import importlib\nprint(importlib.reload(greet).WORD)", "hello\n"},
	} {
		if r := box.mustRun(t, c.source); r.Stdout != c.stdout {
			t.Errorf("%s: %q, want %q", c.source, r.Stdout, c.stdout)
		}
	}

	r := box.run(t, "import greet.broken")
	if r.Exception == nil ||
		!strings.Contains(r.Exception.Traceback, `"/packages/greet/broken.py", line 1`) ||
		!strings.Contains(r.Exception.Traceback, "raise ValueError('broken')") {
		t.Errorf("a package that raises: %+v", r.Exception)
	}
	for _, source := range []string{"import greet.no", "from greet import no", "import nosuch"} {
		if r := box.run(t, source); r.Exception == nil || !strings.Contains(r.Exception.Traceback, source) {
			t.Errorf("%s: %+v", source, r)
		}
	}

	t.Run("absent", func(t *testing.T) {
		if r := s.open(t, emptyConfig()).run(t, "import greet"); r.Status != tiers.StatusRaised {
			t.Errorf("a session without packages has them: %+v", r)
		}
	})
	t.Run("move", func(t *testing.T) {
		box.mustRun(t, "g = greet.Greeting('moon')")
		next := s.open(t, cfg)
		if report := moveTo(t, box, next); len(report.Left) > 0 {
			t.Errorf("left behind: %+v", report.Left)
		}
		if r := next.mustRun(t, "print(g.to, type(g).__module__, f.read_text())"); r.Stdout !=
			"moon greet.words some data\n\n" {
			t.Errorf("%q", r.Stdout)
		}
	})
}
