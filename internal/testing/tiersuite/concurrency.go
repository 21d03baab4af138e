package tiersuite

import (
	"fmt"
	"testing"
)

// concurrency runs host calls in all the ways in which programs run things at
// the same time. The host answers none of them before all have arrived, so what
// is sequential fails.
func (s *suite) concurrency(t *testing.T) {
	for _, c := range atOnce {
		t.Run(c.name, func(t *testing.T) {
			box := s.open(t, newHost().config())
			box.ok(t, "import asyncio\nfrom concurrent.futures import ThreadPoolExecutor, as_completed\nps = ['a', 'b', 'c']")
			box.prints(t, c.source, "['a', 'b', 'c']\n")
			box.alive(t)
		})
	}
	t.Run("many", s.many)
	t.Run("bounded", s.bounded)
	t.Run("order is kept", s.order)
}

// atOnce are programs that print the answers of three calls of meet, in order.
var atOnce = []struct{ name, source string }{
	{"gather of a comprehension", "print(await asyncio.gather(*[meet(p) for p in ps]))"},
	{"gather of a generator", "print(await asyncio.gather(*(meet(p) for p in ps)))"},
	{"gather of calls", "print(await asyncio.gather(meet('a'), meet('b'), meet('c')))"},
	{"gather of a list", "tasks = [meet(p) for p in ps]\nprint(await asyncio.gather(*tasks))"},
	{"gather of a list that grows", "tasks = []\nfor p in ps:\n    tasks.append(meet(p))\nprint(await asyncio.gather(*tasks))"},
	{"gather of a dict's values", "tasks = {p: meet(p) for p in ps}\nprint(list(dict(zip(tasks, await asyncio.gather(*tasks.values()))).values()))"},
	{"gather of coroutines that await", "async def f(p):\n    return await meet(p)\nprint(await asyncio.gather(*[f(p) for p in ps]))"},
	{"gather of coroutines that call", "async def f(p):\n    return meet(p)\nprint(await asyncio.gather(*[f(p) for p in ps]))"},
	{"gather of coroutines that call in the middle", "async def f(p):\n    r = meet(p)\n    return r.upper().lower()\nprint(await asyncio.gather(*[f(p) for p in ps]))"},
	{"gather of plain functions that return the call", "def f(p):\n    return meet(p)\nprint(await asyncio.gather(*[f(p) for p in ps]))"},
	{"gather inside a coroutine", "async def main():\n    return await asyncio.gather(*[meet(p) for p in ps])\nprint(await main())"},
	{"asyncio.run of a main", "async def main():\n    return await asyncio.gather(*[meet(p) for p in ps])\nprint(asyncio.run(main()))"},
	{"asyncio.run of a main with helpers", "async def one(p):\n    return await meet(p)\nasync def main():\n    return await asyncio.gather(*(one(p) for p in ps))\nprint(asyncio.run(main()))"},
	{"gather with return_exceptions", "print(await asyncio.gather(*[meet(p) for p in ps], return_exceptions=True))"},
	{"gather under a timeout", "async with asyncio.timeout(3600):\n    print(await asyncio.gather(*[meet(p) for p in ps]))"},
	{"gather of wait_for", "print(await asyncio.gather(*[asyncio.wait_for(meet(p), 3600) for p in ps]))"},
	{"TaskGroup of calls", "async with asyncio.TaskGroup() as tg:\n    ts = [tg.create_task(meet(p)) for p in ps]\nprint([t.result() for t in ts])"},
	{"TaskGroup of coroutines", "async def f(p):\n    return await meet(p)\nasync with asyncio.TaskGroup() as tg:\n    ts = [tg.create_task(f(p)) for p in ps]\nprint([t.result() for t in ts])"},
	{"create_task, then await each", "ts = [asyncio.create_task(meet(p)) for p in ps]\nprint([await t for t in ts])"},
	{"ensure_future, then await each", "ts = [asyncio.ensure_future(meet(p)) for p in ps]\nout = []\nfor t in ts:\n    out.append(await t)\nprint(out)"},
	{"asyncio.wait", "ts = [asyncio.create_task(meet(p)) for p in ps]\ndone, pending = await asyncio.wait(ts)\nprint(sorted(t.result() for t in done))"},
	{"asyncio.as_completed", "out = []\nfor f in asyncio.as_completed([meet(p) for p in ps]):\n    out.append(await f)\nprint(sorted(out))"},
	{"asyncio.to_thread", "print(await asyncio.gather(*[asyncio.to_thread(meet, p) for p in ps]))"},
	{"run_in_executor", "loop = asyncio.get_running_loop()\nprint(await asyncio.gather(*[loop.run_in_executor(None, meet, p) for p in ps]))"},
	{"a semaphore wide enough", "sem = asyncio.Semaphore(3)\nasync def f(p):\n    async with sem:\n        return await meet(p)\nprint(await asyncio.gather(*[f(p) for p in ps]))"},
	{"workers on a queue", "q, out = asyncio.Queue(), {}\nfor p in ps:\n    q.put_nowait(p)\nasync def work():\n    while not q.empty():\n        p = q.get_nowait()\n        out[p] = await meet(p)\nawait asyncio.gather(*[work() for _ in range(3)])\nprint(sorted(out.values()))"},
	{"ThreadPoolExecutor.map", "with ThreadPoolExecutor(max_workers=3) as ex:\n    print(list(ex.map(meet, ps)))"},
	{"ThreadPoolExecutor.map without with", "print(list(ThreadPoolExecutor().map(meet, ps)))"},
	{"ThreadPoolExecutor.submit", "with ThreadPoolExecutor() as ex:\n    fs = [ex.submit(meet, p) for p in ps]\n    print([f.result() for f in fs])"},
	{"ThreadPoolExecutor and as_completed", "with ThreadPoolExecutor() as ex:\n    fs = {ex.submit(meet, p): p for p in ps}\n    print(sorted(f.result() for f in as_completed(fs)))"},
	{"ThreadPoolExecutor of a partial", "import functools\nwith ThreadPoolExecutor() as ex:\n    print(list(ex.map(functools.partial(meet), ps, [3, 3, 3])))"},
	{"parallel_map", "print(parallel_map(meet, ps))"},
}

// many has as many calls under way as the default limit allows.
func (s *suite) many(t *testing.T) {
	box := s.open(t, newHost().config())
	const n = 64
	box.prints(t, fmt.Sprintf("import asyncio\nrs = await asyncio.gather(*[meet(str(i), %d) for i in range(%d)])\nprint(rs == [str(i) for i in range(%d)])", n, n, n), "True\n")
}

// bounded counts how many calls the host sees at once.
func (s *suite) bounded(t *testing.T) {
	host := newHost()
	cfg := host.config()
	cfg.Limits.HostCallsAtOnce = 2
	box := s.open(t, cfg)
	box.prints(t, "import asyncio\nrs = await asyncio.gather(*[crowd() for _ in range(12)])\nprint(len(rs))", "12\n")
	if most := host.most.Load(); most > 2 {
		t.Errorf("%d calls ran at once, the limit is 2", most)
	}
	if n := len(host.made()); n != 12 {
		t.Errorf("the host got %d calls, want 12", n)
	}
}

// order gives the first call the slowest answer.
func (s *suite) order(t *testing.T) {
	box := s.open(t, newHost().config())
	box.prints(t, `import asyncio
finished = []
async def f(i):
    await slow(40 * (3 - i))
    finished.append(i)
    return i
print(await asyncio.gather(*[f(i) for i in range(3)]), sorted(finished))`, "[0, 1, 2] [0, 1, 2]\n")
}
