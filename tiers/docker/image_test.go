package docker_test

import (
	"encoding/json"
	"fmt"
	"os"
	"testing"

	"github.com/rlmhq/rlm/tiers"
	"github.com/rlmhq/rlm/tiers/docker"
)

func TestTheImageHasItsProgramsAndModules(t *testing.T) {
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
	programs, err := os.ReadFile("../../images/python/programs.txt")
	if err != nil {
		t.Fatal(err)
	}
	b := box(t, tier, tiers.Config{})
	r := run(t, b, fmt.Sprintf(`import importlib.util, os, stat, sys
print(set(os.listdir('/usr/bin')) ^ set(%q.split()), os.path.exists('/usr/sbin'))
odd = []
for folder, _, files in os.walk('/'):
    if folder.startswith(('/proc', '/sys', '/dev')): continue
    for f in files:
        s = os.lstat(os.path.join(folder, f))
        if s.st_mode & (stat.S_ISUID | stat.S_ISGID) or s.st_uid not in (0, 65532): odd.append(os.path.join(folder, f))
print(odd)
print([n for n in %s if n not in sys.modules and importlib.util.find_spec(n) is None])`, programs, list))
	if r.Stdout != "set() False\n[]\n[]\n" {
		t.Errorf("%s %q %+v", r.Status, r.Stdout, r.Exception)
	}
}

// TestTheShellWorks checks the shell commands that models write instead of calling Python's own
// functions.
func TestTheShellWorks(t *testing.T) {
	t.Parallel()
	tier := usual(t, docker.Options{Warm: -1})
	for _, row := range []struct{ name, source, stdout string }{
		{"os.system", "import os\nopen('b', 'w').close()\nprint(os.system('ls; exit 3') >> 8)", "b\n3\n"},
		{
			"getoutput", "import subprocess\nprint(subprocess.getoutput('seq 12 | grep 1 | sort -rn | head -n 2'))",
			"12\n11\n",
		},
		{
			"a script", "import subprocess\n" +
				"open('a.sh', 'w').write('for i in 1 2; do echo $i | sed s/1/one/; done')\n" +
				"print(subprocess.run(['sh', 'a.sh'], capture_output=True, text=True).stdout, end='')",
			"one\n2\n",
		},
		{
			"find", "import subprocess\nprint(subprocess.getoutput('find /sandbox -type d | xargs basename'))",
			"sandbox\n",
		},
		{
			"a locale", "import locale\nprint(locale.setlocale(locale.LC_ALL, 'C.UTF-8'), " +
				"locale.setlocale(locale.LC_ALL, ''), locale.nl_langinfo(locale.CODESET))", "C.UTF-8 C.UTF-8 UTF-8\n",
		},
	} {
		t.Run(row.name, func(t *testing.T) {
			if r := run(t, box(t, tier, tiers.Config{}), row.source); r.Stdout != row.stdout {
				t.Errorf("%s %q %q %+v", r.Status, r.Stdout, r.Stderr, r.Exception)
			}
		})
	}
}

// TestTheImageHasTheRuntimeCompiled checks that the image contains the compiled runtime, which
// saves each container a tenth of a second. If an image is older than the runtime, the parts that
// differ are compiled in the container.
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
