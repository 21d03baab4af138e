package docker_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/rlmhq/rlm/tiers"
	"github.com/rlmhq/rlm/tiers/docker"
)

func TestTheImageHasNoShellAndAllItsModules(t *testing.T) {
	t.Parallel()
	tier := usual(t, docker.Options{Warm: -1})
	var names []string
	for name := range tier.Info().Modules {
		names = append(names, name)
	}
	list, err := json.Marshal(names)
	if err != nil {
		t.Fatal(err)
	}
	b := box(t, tier, tiers.Config{})
	r := run(t, b, fmt.Sprintf(`import importlib.util, os, stat, sys
print(sorted(os.listdir('/usr/bin')), os.path.exists('/bin/sh'), os.path.exists('/usr/sbin'))
odd = []
for folder, _, files in os.walk('/'):
    if folder.startswith(('/proc', '/sys', '/dev')): continue
    for f in files:
        s = os.lstat(os.path.join(folder, f))
        if s.st_mode & (stat.S_ISUID | stat.S_ISGID) or s.st_uid not in (0, 65532): odd.append(os.path.join(folder, f))
print(odd)
print([n for n in %s if n not in sys.modules and importlib.util.find_spec(n) is None])`, list))
	if r.Stdout != "['python3', 'python3.13'] False False\n[]\n[]\n" {
		t.Errorf("%s %q %+v", r.Status, r.Stdout, r.Exception)
	}
}

// TestTheImageHasTheRuntimeCompiled looks at what spares each container a tenth of a
// second. An image may be older than the runtime, which then is compiled where it is
// another.
func TestTheImageHasTheRuntimeCompiled(t *testing.T) {
	t.Parallel()
	b := box(t, usual(t, docker.Options{Warm: -1}), tiers.Config{})
	r := run(t, b, `import marshal
with open('/usr/lib/rlm/kernel', 'rb') as file:
    stock = marshal.load(file)
names = {code.co_filename for source, code in stock.items() if source}
print(len(stock) > 20, '<rlm adapters.py, as importlib._bootstrap>' in names)
boot = next(code for source, code in stock.items() if 'boot.py' in code.co_filename)
print(boot.co_names[:2])`)
	if r.Stdout != "True True\n('sys', 'types')\n" {
		t.Errorf("%s %q %+v", r.Status, r.Stdout, r.Exception)
	}
}
