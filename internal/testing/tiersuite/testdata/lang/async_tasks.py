# TaskGroup, cancellation, timeouts, shielding.
import asyncio


async def ok(v, t=0.0):
    await asyncio.sleep(t)
    return v


async def fail(msg, t=0.0):
    await asyncio.sleep(t)
    raise ValueError(msg)


async def forever(log, name):
    try:
        await asyncio.sleep(3600)
    except asyncio.CancelledError:
        log.append(f"{name} cancelled")
        raise
    finally:
        log.append(f"{name} finally")


async def groups():
    async with asyncio.TaskGroup() as tg:
        ts = [tg.create_task(ok(i, 0.01 * (3 - i))) for i in range(3)]
    print([t.result() for t in ts])
    log, both = [], asyncio.Event()

    async def fail_with(msg):
        await both.wait()
        raise ValueError(msg)

    try:
        async with asyncio.TaskGroup() as tg:
            tg.create_task(forever(log, "bystander"))
            tg.create_task(fail_with("one"))
            tg.create_task(fail_with("two"))
            await asyncio.sleep(0)
            both.set()
    except* ValueError as g:
        print(sorted(str(e) for e in g.exceptions), log)


asyncio.run(groups())


async def timeouts():
    log = []
    try:
        async with asyncio.timeout(0.01):
            await forever(log, "t")
    except TimeoutError as e:
        print("timeout", repr(e), log)
    try:
        await asyncio.wait_for(forever(log, "w"), 0.01)
    except asyncio.TimeoutError:
        print("wait_for", log[2:])
    async with asyncio.timeout(60) as cm:
        v = await ok("in time")
    print(v, cm.expired(), await asyncio.wait_for(ok(1), 5))
    async with asyncio.timeout(None) as cm:
        cm.reschedule(asyncio.get_running_loop().time() + 60)
    done, pend = await asyncio.wait([asyncio.create_task(ok(1, 3600))], timeout=0.01)
    print(len(done), len(pend))
    [p.cancel() for p in pend]


asyncio.run(timeouts())


async def cancels():
    log = []
    t = asyncio.create_task(forever(log, "c"))
    await asyncio.sleep(0)
    print(t.cancel("why"), t.cancelling(), t.done())
    try:
        await t
    except asyncio.CancelledError as e:
        print("caught", e.args, t.cancelled(), log)
    gate = asyncio.Event()

    async def gated():
        await gate.wait()
        return "kept"

    inner = asyncio.create_task(gated())
    outer = asyncio.create_task(asyncio.wait_for(asyncio.shield(inner), 0.001))
    try:
        await outer
    except TimeoutError:
        print(inner.done(), gate.set(), await inner)

    async def stubborn():
        try:
            await asyncio.sleep(3600)
        except asyncio.CancelledError:
            asyncio.current_task().uncancel()
            return "survived"
    s = asyncio.create_task(stubborn())
    await asyncio.sleep(0)
    s.cancel()
    print(await s)


asyncio.run(cancels())


async def gathers():
    print(await asyncio.gather(ok(1), fail("g"), return_exceptions=True))
    try:
        await asyncio.gather(ok(1), fail("first", 0.01), fail("second", 0.05))
    except ValueError as e:
        print(e)
    t = asyncio.create_task(fail("task"))
    await asyncio.wait([t])
    print(repr(t.exception()))
    cb = []
    t = asyncio.create_task(ok(5))
    t.add_done_callback(lambda t: cb.append(t.result()))
    await t
    await asyncio.sleep(0)
    print(cb, await asyncio.gather())


asyncio.run(gathers())


async def leave_running():
    asyncio.create_task(forever(left, "left"))
    await asyncio.sleep(0)


left = []
asyncio.run(leave_running())
print(left)
