package tiersuite

import (
	"fmt"
	"testing"
)

// testConcurrency runs host calls concurrently, in all the ways that programs do this. The host
// answers no call until all of them have arrived, so sequential calls fail.
func (s *suite) testConcurrency(t *testing.T) {
	for _, c := range atOnce {
		t.Run(c.name, func(t *testing.T) {
			box := s.open(t, newHost().config())
			box.mustRun(t, `import asyncio
from concurrent.futures import ThreadPoolExecutor, as_completed
ps = ['a', 'b', 'c']`)
			box.mustPrint(t, c.source, "['a', 'b', 'c']\n")
			box.checkAlive(t)
		})
	}

	t.Run("many", s.testMany)
	t.Run("bounded", s.testBounded)
	t.Run("order is kept", s.testOrder)
}

// atOnce are programs that print the answers of three calls of meet, in order.
var atOnce = []struct{ name, source string }{
	{"gather of a comprehension", "print(await asyncio.gather(*[meet(p) for p in ps]))"},
	{"gather of a generator", "print(await asyncio.gather(*(meet(p) for p in ps)))"},
	{"gather of calls", "print(await asyncio.gather(meet('a'), meet('b'), meet('c')))"},
	{"gather of a list", "tasks = [meet(p) for p in ps]\nprint(await asyncio.gather(*tasks))"},
	{"gather of a list that grows", `tasks = []
for p in ps:
    tasks.append(meet(p))
print(await asyncio.gather(*tasks))`},
	{"gather of a dict's values", `tasks = {p: meet(p) for p in ps}
print(list(dict(zip(tasks, await asyncio.gather(*tasks.values()))).values()))`},
	{"gather of coroutines that await", `async def f(p):
    return await meet(p)
print(await asyncio.gather(*[f(p) for p in ps]))`},
	{"gather of coroutines that call", `async def f(p):
    return meet(p)
print(await asyncio.gather(*[f(p) for p in ps]))`},
	{"gather of coroutines that call in the middle", `async def f(p):
    r = meet(p)
    return r.upper().lower()
print(await asyncio.gather(*[f(p) for p in ps]))`},
	{"gather of plain functions that return the call", `def f(p):
    return meet(p)
print(await asyncio.gather(*[f(p) for p in ps]))`},
	{"gather inside a coroutine", `async def main():
    return await asyncio.gather(*[meet(p) for p in ps])
print(await main())`},
	{"asyncio.run of a main", `async def main():
    return await asyncio.gather(*[meet(p) for p in ps])
print(asyncio.run(main()))`},
	{"asyncio.run of a main with helpers", `async def one(p):
    return await meet(p)
async def main():
    return await asyncio.gather(*(one(p) for p in ps))
print(asyncio.run(main()))`},
	{"gather with return_exceptions", "print(await asyncio.gather(*[meet(p) for p in ps], return_exceptions=True))"},
	{"gather under a timeout", `async with asyncio.timeout(3600):
    print(await asyncio.gather(*[meet(p) for p in ps]))`},
	{"gather of wait_for", "print(await asyncio.gather(*[asyncio.wait_for(meet(p), 3600) for p in ps]))"},
	{"TaskGroup of calls", `async with asyncio.TaskGroup() as tg:
    ts = [tg.create_task(meet(p)) for p in ps]
print([t.result() for t in ts])`},
	{"TaskGroup of coroutines", `async def f(p):
    return await meet(p)
async with asyncio.TaskGroup() as tg:
    ts = [tg.create_task(f(p)) for p in ps]
print([t.result() for t in ts])`},
	{"create_task, then await each", `ts = [asyncio.create_task(meet(p)) for p in ps]
print([await t for t in ts])`},
	{"ensure_future, then await each", `ts = [asyncio.ensure_future(meet(p)) for p in ps]
out = []
for t in ts:
    out.append(await t)
print(out)`},
	{"asyncio.wait", `ts = [asyncio.create_task(meet(p)) for p in ps]
done, pending = await asyncio.wait(ts)
print(sorted(t.result() for t in done))`},
	{"asyncio.as_completed", `out = []
for f in asyncio.as_completed([meet(p) for p in ps]):
    out.append(await f)
print(sorted(out))`},
	{"asyncio.to_thread", "print(await asyncio.gather(*[asyncio.to_thread(meet, p) for p in ps]))"},
	{"run_in_executor", `loop = asyncio.get_running_loop()
print(await asyncio.gather(*[loop.run_in_executor(None, meet, p) for p in ps]))`},
	{"a semaphore wide enough", `sem = asyncio.Semaphore(3)
async def f(p):
    async with sem:
        return await meet(p)
print(await asyncio.gather(*[f(p) for p in ps]))`},
	{"workers on a queue", `q, out = asyncio.Queue(), {}
for p in ps:
    q.put_nowait(p)
async def work():
    while not q.empty():
        p = q.get_nowait()
        out[p] = await meet(p)
await asyncio.gather(*[work() for _ in range(3)])
print(sorted(out.values()))`},
	{"ThreadPoolExecutor.map", `with ThreadPoolExecutor(max_workers=3) as ex:
    print(list(ex.map(meet, ps)))`},
	{"ThreadPoolExecutor.map without with", "print(list(ThreadPoolExecutor().map(meet, ps)))"},
	{"ThreadPoolExecutor.submit", `with ThreadPoolExecutor() as ex:
    fs = [ex.submit(meet, p) for p in ps]
    print([f.result() for f in fs])`},
	{"ThreadPoolExecutor and as_completed", `with ThreadPoolExecutor() as ex:
    fs = {ex.submit(meet, p): p for p in ps}
    print(sorted(f.result() for f in as_completed(fs)))`},
	{"ThreadPoolExecutor of a partial", `import functools
with ThreadPoolExecutor() as ex:
    print(list(ex.map(functools.partial(meet), ps, [3, 3, 3])))`},
	{"parallel_map", "print(parallel_map(meet, ps))"},
}

// testMany starts as many calls as the default limit allows.
func (s *suite) testMany(t *testing.T) {
	box := s.open(t, newHost().config())
	const n = 64
	box.mustPrint(t, fmt.Sprintf(`import asyncio
rs = await asyncio.gather(*[meet(str(i), %d) for i in range(%d)])
print(rs == [str(i) for i in range(%d)])`, n, n, n), "True\n")
}

// testBounded counts how many calls reach the host at the same time.
func (s *suite) testBounded(t *testing.T) {
	host := newHost()
	cfg := host.config()
	cfg.Limits.HostCallsAtOnce = 2
	box := s.open(t, cfg)
	box.mustPrint(t, `import asyncio
rs = await asyncio.gather(*[crowd() for _ in range(12)])
print(len(rs))`, "12\n")

	if most := host.most.Load(); most > 2 {
		t.Errorf("%d calls ran at once, the limit is 2", most)
	}
	if n := len(host.made()); n != 12 {
		t.Errorf("the host got %d calls, want 12", n)
	}
}

// testOrder answers the first call last.
func (s *suite) testOrder(t *testing.T) {
	box := s.open(t, newHost().config())
	box.mustPrint(t, `import asyncio
finished = []
async def f(i):
    await slow(40 * (3 - i))
    finished.append(i)
    return i
print(await asyncio.gather(*[f(i) for i in range(3)]), sorted(finished))`, "[0, 1, 2] [0, 1, 2]\n")
}
