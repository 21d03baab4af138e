# Coroutines under asyncio.run.
import asyncio
import inspect


async def add(a, b):
    await asyncio.sleep(0)
    return a + b


async def main():
    r = await add(1, 2)
    many = await asyncio.gather(*(add(i, i) for i in range(5)))
    return r, many


print(asyncio.run(main()), asyncio.iscoroutinefunction(add), inspect.iscoroutine(c := add(1, 1)), type(c).__name__, c.close())
log = []


async def step(name, n):
    for i in range(n):
        log.append(f"{name}{i}")
        await asyncio.sleep(0)
    return name


async def interleave():
    a, b = asyncio.create_task(step("a", 3), name="A"), asyncio.create_task(step("b", 2))
    print(a.get_name(), a.done(), asyncio.current_task() is not None, len(asyncio.all_tasks()))
    done, pending = await asyncio.wait([a, b])
    print(sorted(t.result() for t in done), pending, a.done(), a.cancelled())


asyncio.run(interleave())
print(log)


async def ordering():
    out = []

    async def late(t, v):
        await asyncio.sleep(t)
        out.append(v)
        return v
    res = await asyncio.gather(late(0.06, "slow"), late(0.03, "mid"), late(0, "fast"))
    first, pend = await asyncio.wait([asyncio.create_task(late(3600, "x")), asyncio.create_task(late(0, "y"))], return_when=asyncio.FIRST_COMPLETED)
    for p in pend:
        p.cancel()
    comp = [await f for f in asyncio.as_completed([late(0.05, 2), late(0, 1)])]
    return res, out, [t.result() for t in first], comp


print(asyncio.run(ordering()))


class Awaitable:
    def __await__(self):
        yield from asyncio.sleep(0).__await__()
        return "custom"


async def future():
    loop = asyncio.get_running_loop()
    fut = loop.create_future()
    loop.call_soon(fut.set_result, "soon")
    other = loop.create_future()
    loop.call_later(0.01, other.set_result, "later")
    return await fut, await other, await Awaitable(), loop.is_running(), loop.time() >= 0


print(asyncio.run(future()))
for bad in (lambda: asyncio.run(5), lambda: asyncio.gather(5)):
    try:
        bad()
    except (RuntimeError, TypeError, ValueError) as e:
        print(type(e).__name__)
with asyncio.Runner() as runner:
    print(runner.run(add(2, 3)), runner.run(add(4, 5)))


def drive(coro):
    try:
        while True:
            coro.send(None)
    except StopIteration as e:
        return e.value


async def plain():
    return 42


print(drive(plain()))
