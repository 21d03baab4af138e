# Queue, Lock, Event, Semaphore, Condition, Barrier.
import asyncio


async def queues():
    q, out = asyncio.Queue(maxsize=2), []

    async def produce():
        for i in range(6):
            await q.put(i)
            out.append(f"+{i}")
        await q.put(None)

    async def consume():
        while (v := await q.get()) is not None:
            out.append(f"-{v}")
            q.task_done()
        q.task_done()
    await asyncio.gather(produce(), consume())
    await q.join()
    print(len(out), [o for o in out if o[0] == "-"], q.empty(), q.qsize(), q.full())
    pq, lq = asyncio.PriorityQueue(), asyncio.LifoQueue()
    for v in (3, 1, 2):
        pq.put_nowait(v)
        lq.put_nowait(v)
    print([pq.get_nowait() for _ in range(3)], [await lq.get() for _ in range(3)])
    try:
        lq.get_nowait()
    except asyncio.QueueEmpty as e:
        print(type(e).__name__)
    q.shutdown()
    try:
        await q.put(1)
    except asyncio.QueueShutDown as e:
        print(type(e).__name__)


async def locks():
    lock, trace, running, peak = asyncio.Lock(), [], 0, 0

    async def crit(n):
        async with lock:
            trace.append(f"in{n}")
            await asyncio.sleep(0)
            trace.append(f"out{n}")
    await asyncio.gather(*(crit(i) for i in range(3)))
    print(trace, lock.locked())
    sem = asyncio.Semaphore(2)

    async def limited(i):
        nonlocal running, peak
        async with sem:
            running += 1
            peak = max(peak, running)
            await asyncio.sleep(0.005)
            running -= 1
            return i
    print(await asyncio.gather(*(limited(i) for i in range(6))), peak)
    try:
        asyncio.BoundedSemaphore(1).release()
    except ValueError as e:
        print(e)


async def events():
    ev, log = asyncio.Event(), []

    async def waiter(n):
        await ev.wait()
        log.append(n)
    ts = [asyncio.create_task(waiter(i)) for i in range(3)]
    await asyncio.sleep(0)
    print(log, ev.is_set())
    ev.set()
    await asyncio.gather(*ts)
    print(log, await ev.wait())
    cond, items = asyncio.Condition(), []

    async def taker():
        async with cond:
            await cond.wait_for(lambda: len(items) >= 2)
            return list(items)
    t = asyncio.create_task(taker())
    for i in range(2):
        await asyncio.sleep(0)
        async with cond:
            items.append(i)
            cond.notify_all()
    print(await t)
    bar, order = asyncio.Barrier(3), []

    async def meet(i):
        order.append(f"arrive{i}")
        await bar.wait()
        order.append("past")
    await asyncio.gather(*(meet(i) for i in range(3)))
    print(order)


asyncio.run(queues())
asyncio.run(locks())
asyncio.run(events())


async def workers():
    q, results = asyncio.Queue(), {}
    for i in range(10):
        q.put_nowait(i)

    async def worker(name):
        while True:
            i = await q.get()
            await asyncio.sleep(0)
            results[i] = i * i
            q.task_done()
    ws = [asyncio.create_task(worker(n)) for n in range(3)]
    await q.join()
    for w in ws:
        w.cancel()
    print(await asyncio.gather(*ws, return_exceptions=True) and "workers done", sorted(results.items()))


asyncio.run(workers())
