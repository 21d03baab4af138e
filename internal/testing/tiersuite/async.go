package tiersuite

import (
	"testing"

	"github.com/rlmhq/rlm/tiers"
)

// testAsync tests top-level await and asyncio where a snippet's position in a session matters. The
// scripts in testdata/lang test asyncio within one script.
func (s *suite) testAsync(t *testing.T) {
	t.Run("TopLevel", func(t *testing.T) { s.playScenarios(t, emptyConfig, topLevelAwait) })
	t.Run("Loops", func(t *testing.T) { s.playScenarios(t, emptyConfig, loops) })
	t.Run("Errors", func(t *testing.T) { s.playScenarios(t, emptyConfig, asyncErrors) })
	t.Run("Processes", s.testProcesses)
}

const sayLater = "import asyncio\nasync def later(v, t=0):\n    await asyncio.sleep(t)\n    return v\n"

var topLevelAwait = []scenario{
	single("an awaited expression is echoed", step{source: sayLater + "await later(5)", out: "5\n"}),
	single("an awaited None is not echoed", step{source: sayLater + "await later(None)"}),
	single("await in an assignment", step{
		source: sayLater + "x = await later(2) + await later(3)\nprint(x)",
		out:    "5\n",
	}),
	single("await in a comprehension", step{
		source: sayLater + "[await later(i) for i in range(3)]",
		out:    "[0, 1, 2]\n",
	}),
	single("await in a condition and a loop", step{source: sayLater + `while await later(False): pass
for i in await later([1, 2]):
    if await later(i): print(i)`, out: "1\n2\n"}),
	single("await in an f-string", step{source: sayLater + "f'{await later(1)}!'", out: "'1!'\n"}),
	single("async for and async with", step{
		source: `import contextlib
@contextlib.asynccontextmanager
async def cm():
    print('in')
    yield 1
    print('out')
async def gen():
    yield 7
async with cm() as c:
    async for v in gen():
        print(c, v)`,
		out: "in\n1 7\nout\n",
	}),
	single("an async comprehension", step{source: `async def gen():
    for i in range(3): yield i
[i async for i in gen()]`, out: "[0, 1, 2]\n"}),
	single("gather at the top", step{
		source: sayLater + "await asyncio.gather(later(1, 0.02), later(2))",
		out:    "[1, 2]\n",
	}),
	single("await in a function that is not async is refused", step{
		source: "def f():\n    await x",
		raises: "SyntaxError", says: []string{"'await' outside async function"},
	}),
	single("names bound by a snippet with await are global", step{source: sayLater + `y = await later(1)
def read(): return y
print(read(), 'y' in globals())`, out: "1 True\n"}),
	{name: "what an awaiting snippet binds persists", steps: []step{
		{source: sayLater + "a = await later('kept')"},
		{source: "b = a + await later('!')"},
		{source: "print(a, b)", out: "kept kept!\n"},
	}},
	{name: "a coroutine made in one snippet is awaited in the next", steps: []step{
		{source: sayLater + "c = later('made before')"},
		{source: "await c", out: "'made before'\n"},
	}},
	single("del and global inside an awaiting snippet", step{source: sayLater + `x = await later(1)
del x
try:
    x
except NameError as e:
    print(e)`, out: "name 'x' is not defined\n"}),
}

var loops = []scenario{
	single("asyncio.run in a plain snippet", step{source: sayLater + "print(asyncio.run(later(3)))", out: "3\n"}),
	single("asyncio.run twice", step{
		source: sayLater + "print(asyncio.run(later(1)), asyncio.run(later(2)))",
		out:    "1 2\n",
	}),
	single("asyncio.run beside top-level await", step{source: sayLater + `x = await later(1)
print(x, asyncio.run(later(2)), await later(3))`, out: "1 2 3\n"}),
	single("asyncio.run in a function called by an awaiting snippet",
		step{source: sayLater + `def sync(): return asyncio.run(later('nested'))
await later(0)
print(sync())`, out: "nested\n"}),
	{name: "a loop whose end an interrupt has cut short", steps: []step{
		{source: sayLater + "await later(1)", out: "1\n"},
		{source: `loop = asyncio.get_event_loop()
loop._thread_id = 1
asyncio._set_running_loop(loop)`},
		{source: "await later(2)", out: "2\n"},
	}},
	single("run_until_complete", step{source: sayLater + `loop = asyncio.new_event_loop()
print(loop.run_until_complete(later(4)))
loop.close()`, out: "4\n"}),
	single("get_event_loop().run_until_complete", step{source: sayLater + `import warnings
warnings.simplefilter('ignore')
print(asyncio.get_event_loop().run_until_complete(later(4)))`, out: "4\n"}),
	single("a task is finished by a later await", step{source: sayLater + `t = asyncio.create_task(later('task'))
await asyncio.sleep(0)
print(await t)`, out: "task\n"}),
	single("to_thread runs the function", step{
		source: "import asyncio\nprint(await asyncio.to_thread(pow, 2, 5))",
		out:    "32\n",
	}),
	single("run_in_executor runs the function", step{source: `import asyncio
print(await asyncio.get_running_loop().run_in_executor(None, pow, 2, 6))`, out: "64\n"}),
	single("ThreadPoolExecutor keeps order", step{source: `from concurrent.futures import ThreadPoolExecutor
with ThreadPoolExecutor(4) as ex:
    print(list(ex.map(lambda v: v * v, range(5))), ex.submit(pow, 2, 3).result())`, out: "[0, 1, 4, 9, 16] 8\n"}),
	single("ThreadPoolExecutor carries exceptions",
		step{source: `from concurrent.futures import ThreadPoolExecutor, as_completed
ex = ThreadPoolExecutor()
fs = [ex.submit(lambda v: 1 / v, v) for v in (1, 0)]
print(sorted(type(f.exception()).__name__ for f in as_completed(fs)))`, out: "['NoneType', 'ZeroDivisionError']\n"}),
	{name: "a task left running does not disturb the next snippet", steps: []step{
		{source: sayLater + `left = asyncio.create_task(later('never asked for', 3600))
await asyncio.sleep(0)`},
		{source: "print('next')", out: "next\n"},
		{source: "print(await later('and on'))", out: "and on\n"},
	}},
	{name: "a task made without await is finished by a later snippet", steps: []step{
		{source: sayLater + "t = asyncio.create_task(later('from before', 0.01), name='mine')"},
		{source: "print(await t, t.get_name())", out: "from before mine\n"},
	}},
	{name: "a task goes on between snippets, as in a notebook", steps: []step{
		{source: `import asyncio, time
async def f():
    print('begun')
    await asyncio.sleep(0.5)
    print('done')
t = asyncio.create_task(f())
print('made')`, out: "made\nbegun\n"},
		{source: "time.sleep(0.6)\nprint(t.done())", out: "False\ndone\n"},
		{source: "print(t.done())", out: "True\n"},
	}},
	{name: "a task that never rests does not hold a snippet", steps: []step{
		{source: `import asyncio
async def f():
    while True: await asyncio.sleep(0)
t = asyncio.create_task(f())`},
		{source: "print(t.cancel())", out: "True\n"},
		{source: "print(t.cancelled())", out: "True\n"},
	}},
	single("no loop runs outside of a coroutine", step{source: `import asyncio
try:
    asyncio.get_running_loop()
except RuntimeError as e:
    print(e)`, out: "no running event loop\n"}),
	{name: "an unawaited coroutine is no error", steps: []step{
		{source: sayLater + "c = later(1)\ndel c\nprint('fine')", out: "fine\n"},
		{source: "print('next')", out: "next\n"},
	}},
}

var asyncErrors = []scenario{
	{name: "an exception in a task has its lines", steps: []step{
		{source: `import asyncio
async def leaf():
    raise LookupError('deep')
async def branch():
    await leaf()
await asyncio.gather(branch())`, raises: "LookupError", says: []string{
			`<snippet 1>", line 6, in <module>`, `<snippet 1>", line 5, in branch`, `<snippet 1>", line 3, in leaf`,
			"LookupError: deep",
		}},
		{source: "print('alive')", out: "alive\n"},
	}},
	{name: "an exception group of a TaskGroup", since: 11, steps: []step{
		{source: `import asyncio
async def bad(m): raise ValueError(m)
async with asyncio.TaskGroup() as tg:
    tg.create_task(bad('one'))
    tg.create_task(bad('two'))`, raises: "ExceptionGroup", says: []string{"ValueError: one", "ValueError: two"}},
		{source: "print('alive')", out: "alive\n"},
	}},
	{name: "a cancelled top level", steps: []step{
		{source: `import asyncio
asyncio.current_task().cancel()
await asyncio.sleep(0)`, status: tiers.StatusRaised, says: []string{"CancelledError"}},
		{source: "await asyncio.sleep(0, 'alive')", out: "'alive'\n"},
	}},
	{name: "timeout", since: 11, steps: []step{
		{source: `import asyncio
async with asyncio.timeout(0.01):
    await asyncio.sleep(3600)`, raises: "TimeoutError"},
		{source: `try:
    await asyncio.wait_for(asyncio.sleep(3600), 0.01)
except TimeoutError:
    print('caught')`, out: "caught\n"},
	}},
	{name: "sys.exit in a task", steps: []step{
		{source: `import asyncio, sys
async def f(): sys.exit(3)
await asyncio.create_task(f())`, status: tiers.StatusExited},
		{source: "print('alive')", out: "alive\n"},
	}},
}
