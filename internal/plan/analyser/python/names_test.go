package python

import (
	"fmt"
	"strings"
	"testing"

	"github.com/rlmhq/rlm/router"
)

// names summarises how a snippet uses names: r, w, d, c and f list the names that it reads, writes,
// deletes, calls and defines.
func names(n *router.Needs) string {
	var parts []string
	for _, p := range []struct {
		key  string
		list []string
	}{{"r", n.Reads}, {"w", n.Writes}, {"d", n.Deletes}, {"c", n.Calls}, {"f", n.Defines}} {
		if len(p.list) > 0 {
			parts = append(parts, p.key+":"+strings.Join(p.list, ","))
		}
	}
	return strings.Join(parts, " ")
}

func TestNamesAreFound(t *testing.T) {
	a, _ := open(t)
	for _, c := range []struct{ source, want string }{
		{"x = 1\nprint(x)", "w:x"},
		{"print(x)\nx = 1", "r:x w:x"},
		{"x += 1", "r:x w:x"},
		{"x: int = y", "r:y w:x"},
		{"x: int", ""},
		{"x[0] = 1; y.a = 2", "r:x,y"},
		{"del x", "r:x d:x"},
		{"x = 1\ndel x\nprint(x)", "r:x w:x d:x"},
		{"a, (b, *c) = d", "r:d w:a,b,c"},
		{"for i, x in enumerate(rows): print(i)", "r:rows w:i,x"},
		{"with a as b, c as (d, e): pass", "r:a,c w:b,d,e"},
		{"import os.path, json as j\nfrom a import b as c", "w:os,j,c"},
		{"if (n := len(xs)) > 3: print(n)", "r:xs w:n"},
		{"ys = [f(x, k) for x in xs if x > m]", "r:xs,m,f,k w:ys c:f"},
		{"ys = [x for x in x]", "r:x w:ys"},
		{"ys = {k: v for k, v in d.items()}\nprint(k)", "r:d,k w:ys"},
		{"ys = [y for x in xs for y in x]", "r:xs w:ys"},
		{"any((hit := w) in text for w in words)\nprint(hit)", "r:words,text w:hit"},
		{"(n := 1)", "w:n"},
		{"f = lambda x, y=d: x + y + z", "r:d,z w:f"},
		{"def f(a, b=c, *args, k=e, **kw):\n    return a + b + g", "r:c,e,g w:f f:f"},
		{"def f():\n    x = 1\n    return x\nf()", "w:f f:f"},
		{"def f():\n    return total\ntotal = 1\nf()", "w:f,total f:f"},
		{"def f():\n    return total\nf()\ntotal = 1", "r:total w:f,total f:f"},
		{"def f():\n    return g()\ndef g():\n    return h()\nprint(f())", "r:h w:f,g c:h f:f,g"},
		{"def f():\n    global x\n    x = y", "r:y w:f,x f:f"},
		{"def f():\n    global n\n    n += 1", "r:n w:f,n f:f"},
		{
			"def f():\n    n = 0\n    def g():\n        nonlocal n\n        n += 1\n    return g",
			"w:f f:f",
		},
		{"def f():\n    def g(): return a + b\n    a = 1\n    return g", "r:b w:f f:f"},
		{"def f(n): return n * f(n - 1)", "w:f f:f"},
		{
			"class A(B, metaclass=M):\n    x = y\n    def m(self): return x + z\nA()",
			"r:B,M,y,x,z w:A f:A",
		},
		{"class A:\n    n = 0\n    def m(self): return A.n", "w:A f:A"},
		{"@deco(arg)\ndef f(): pass", "r:deco,arg w:f c:deco f:f"},
		{"def f(x: T) -> U: pass", "r:U,T w:f f:f"},
		{"def f[T](x: T) -> T: return x", "w:f f:f"},
		{"class A[T]:\n    x: T", "w:A f:A"},
		{"type L[T] = list[T] | Q", "r:Q w:L"},
		{"try:\n    risky()\nexcept ValueError as e:\n    print(e)", "r:risky c:risky"},
		{
			"match command:\n    case [x, *rest]: print(x, rest)\n" +
				"    case {'a': y, **z}: pass\n    case Point(x=0) as p: pass",
			"r:command,Point w:x,rest,z,y,p",
		},
		{
			"answer = llm_query(f'{context[:10]} {q!r:>{width}}')",
			"r:llm_query,context,q,width w:answer c:llm_query",
		},
		{"FINAL(answer)", "r:FINAL,answer c:FINAL"},
		{"result = obj.method(1)\nlen(result)", "r:obj w:result"},
		{"from m import f\nf()", "w:f"},
		{
			"async def f():\n    return await llm_query('x')\nr = await f()",
			"r:llm_query w:f,r c:llm_query f:f",
		},
		{"x = [i for i in range(3)]\nprint(i)", "r:i w:x"},
		{"def f():\n    for i in xs: pass\n    return [i for i in ys]", "r:xs,ys w:f f:f"},
		{"if a:\n    def f(): return 1\nelse:\n    f = None", "r:a w:f f:f"},
		{"print(__name__, __doc__)", ""},
		{"def f(): return os.getcwd()\nimport os\nf()", "w:f,os f:f"},
	} {
		t.Run(fmt.Sprintf("%.60s", c.source), func(t *testing.T) {
			if got := names(needs(t, a, c.source)); got != c.want {
				t.Errorf("%q\n  got  %s\n  want %s", c.source, got, c.want)
			}
		})
	}
}

func TestImportsAreFound(t *testing.T) {
	a, _ := open(t)
	for _, c := range []struct{ source, want string }{
		{"import json, numpy as np", "json@1 numpy@1"},
		{"import a.b.c\nimport a.b", "a.b.c@1 a.b@2"},
		{"from a.b import c, d", "a.b@1"},
		{"from . import x\nfrom ..p import y", ".@1 ..p@2"},
		{"def f():\n    import pandas\nf()", "pandas@2"},
		{"import importlib\nimportlib.import_module('numpy.linalg')", "importlib@1 numpy.linalg@2"},
		{"__import__('scipy')", "scipy@1"},
		{"from importlib import import_module\nimport_module('yaml')", "importlib@1 yaml@2"},
		{"try:\n    import numpy\nexcept ImportError:\n    numpy = None", "numpy?@2"},
		{"try:\n    import numpy\nexcept ModuleNotFoundError:\n    pass", "numpy?@2"},
		{"try:\n    import numpy\nexcept (ValueError, ImportError):\n    pass", "numpy?@2"},
		{"try:\n    import numpy\nexcept Exception:\n    pass", "numpy?@2"},
		{"try:\n    import numpy\nexcept:\n    pass", "numpy?@2"},
		{
			"try:\n    if x:\n        from numpy import array\nexcept ImportError:\n    pass",
			"numpy?@3",
		},
		{"try:\n    import numpy\nexcept ValueError:\n    pass", "numpy@2"},
		{"try:\n    import numpy\nexcept ImportError:\n    raise", "numpy@2"},
		{
			"try:\n    import numpy\nexcept ImportError:\n    raise SystemExit('install numpy')",
			"numpy@2",
		},
		{"try:\n    import numpy\nfinally:\n    pass", "numpy@2"},
		{"try:\n    pass\nexcept ImportError:\n    import numpy", "numpy@4"},
		{"try:\n    pass\nexcept ImportError:\n    pass\nelse:\n    import numpy", "numpy@6"},
		{"try:\n    def f():\n        import numpy\nexcept ImportError:\n    pass\nf()", "numpy@3"},
		{
			"import contextlib\nwith contextlib.suppress(ImportError):\n    import numpy",
			"contextlib@1 numpy?@3",
		},
		{
			"from contextlib import suppress\nwith suppress(KeyError):\n    import numpy",
			"contextlib@1 numpy@3",
		},
		{"try:\n    import ujson as json\nexcept ImportError:\n    import json", "ujson?@2 json@4"},
		{"try:\n    import numpy\nexcept ImportError:\n    pass\nimport numpy", "numpy@5"},
		{"try:\n    import a\nexcept* ImportError:\n    pass", "a?@2"},
		{"importlib.import_module(f'{x}')", ""},
		{"text = 'import numpy'", ""},
	} {
		t.Run(fmt.Sprintf("%.60s", c.source), func(t *testing.T) {
			var parts []string
			for _, i := range needs(t, a, c.source).Imports {
				guard := ""
				if i.Guarded {
					guard = "?"
				}
				parts = append(parts, fmt.Sprintf("%s%s@%d", i.Module, guard, i.Line))
			}
			if got := strings.Join(parts, " "); got != c.want {
				t.Errorf("%q\n  imports %s\n  want    %s", c.source, got, c.want)
			}
		})
	}
}
