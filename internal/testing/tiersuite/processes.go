package tiersuite

import (
	"fmt"
	"strings"
	"testing"

	"github.com/rlmhq/rlm/internal/testing/skip"
	"github.com/rlmhq/rlm/tiers"
)

// testProcesses tests child processes together with the tier's own event loop, or the errors of a
// tier without processes.
func (s *suite) testProcesses(t *testing.T) {
	if !s.info.Has(tiers.FeatureProcesses) {
		s.playScenarios(t, emptyConfig, noProcesses)
		return
	}
	s.playScenarios(t, emptyConfig, processes)
	t.Run("Forked", s.testForkedProcess)
}

// noProcesses are scenarios for a tier without processes.
var noProcesses = []scenario{
	single("asyncio says where processes are", step{
		source: "import asyncio\nawait asyncio.create_subprocess_exec('true')", raises: "OSError",
		says: []string{"asyncio's subprocess needs processes", "run it in tier docker or local"},
	}),
	single("a pool of processes says what to use", step{
		source: "from concurrent.futures import *\nProcessPoolExecutor(4)", raises: "OSError",
		says: []string{"use ThreadPoolExecutor or parallel_map", "run it in tier docker or local"},
	}),
}

// processes are scenarios for a tier with processes.
var processes = []scenario{
	{name: "asyncio starts a process", steps: []step{
		{
			source: `import asyncio, sys
async def run(code, text=b''):
    p = await asyncio.create_subprocess_exec(
        sys.executable, '-c', code, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE)
    out, _ = await p.communicate(text)
    return p.returncode, out
print(await run('print(6 * 7)'), await run('import sys; sys.exit(3)'))
print(await asyncio.gather(*[run('print(input()[::-1])', b'ab%d' % i) for i in range(3)]))`,
			out: "(0, b'42\\n') (3, b'')\n[(0, b'0ba\\n'), (0, b'1ba\\n'), (0, b'2ba\\n')]\n",
		},
		{
			source: "print(asyncio.run(run('print(1)')))\nprint(await run('print(2)'))",
			out:    "(0, b'1\\n')\n(0, b'2\\n')\n",
		},
	}},
	single("asyncio ends a process", step{source: `import asyncio, sys
p = await asyncio.create_subprocess_exec(sys.executable, '-c', 'import time; time.sleep(600)')
p.kill()
print(await p.wait())`, out: "-9\n"}),
}

// testForkedProcess reads a short and a long context in a process forked by the snippet.
func (s *suite) testForkedProcess(t *testing.T) {
	skip.Short(t, "it reads a long context")
	long, _ := makeFileInput(t, []byte(strings.Repeat("long ", lazy/4)))
	folder := makeDirInput(t, map[string]string{"a.txt": "alpha", "long.txt": strings.Repeat("long ", lazy/4)})
	cfg := tiers.Config{
		Host:   newHost(),
		Inputs: []tiers.Input{makeTextInput(t, "short.txt", "a short one"), long, folder},
		// A container gets little processor time on a busy machine, and copies its process ten
		// times.
		Limits: tiers.Limits{Wall: s.opt.Patience},
	}
	const source = `import os
def forked(look):
    r, w = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            said = str(look())
        except BaseException as e:
            said = f"{type(e).__name__}: {e}"
        os.write(w, said.encode())
        os._exit(0)
    os.waitpid(pid, 0)
    return os.read(r, 10000).decode()
print(forked(lambda: context[2:7]))
for look in (
    lambda: context_1[5:9], lambda: (context_1.count("long"), context_1.find("short"), "no text" in context_1),
    lambda: len(context_1.splitlines()), lambda: len(re.findall("long", context_1)), lambda: context_1.strip()[-4:],
    lambda: (len(list(context_1.lines())), context_1.findall("short"), len(list(context_1.chunks(10**6)))),
    lambda: json.dumps(context_1)[-6:],
):
    print(forked(look))
said = forked(lambda: context_2["a.txt"])
print("open it before the process is forked, text = context[path]" in said)
text, part = context_2["a.txt"], context_2["long.txt"]
print(forked(lambda: (text[1:3], part[5:9], part.count("long"))), context_2.path, part.path)
print(forked(lambda: llm_query("a")))`

	box := s.open(t, cfg)
	count := lazy / 4
	box.mustPrint(t, source, fmt.Sprintf("short\nlong\n(%d, -1, False)\n1\n%d\nlong\n(1, [], 11)\nlong \"\n"+
		"True\n('lp', 'long', %d) None None\n"+
		"HostError: a forked process cannot call the host\n", count, count, count))
}
