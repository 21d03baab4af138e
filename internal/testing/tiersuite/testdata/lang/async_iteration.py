# Async generators, comprehensions, iterators and context managers.
import asyncio
import contextlib


async def ticker(n):
    try:
        for i in range(n):
            got = yield i
            if got:
                print("got", got)
            await asyncio.sleep(0)
    finally:
        print("ticker closed")


class Count:
    def __init__(self, n):
        self.n = n

    def __aiter__(self):
        return self

    async def __anext__(self):
        if not self.n:
            raise StopAsyncIteration
        self.n -= 1
        await asyncio.sleep(0)
        return self.n


class CM:
    async def __aenter__(self):
        print("aenter")
        return self

    async def __aexit__(self, t, v, tb):
        print("aexit", t and t.__name__)
        return t is ValueError


@contextlib.asynccontextmanager
async def res(name):
    print("open", name)
    try:
        yield name
    finally:
        await asyncio.sleep(0)
        print("close", name)


async def main():
    print([v async for v in ticker(3)], {v: v * v async for v in Count(3)}, [v async for v in Count(6) if v % 2], sum([v async for v in Count(4)]))
    async for v in Count(3):
        if v == 1:
            break
    else:
        print("not reached")
    async for v in Count(1):
        pass
    else:
        print("else", v)
    g = ticker(5)
    print(await anext(g), await g.asend("hello"))
    await g.aclose()
    print(await anext(g, "exhausted"), await anext(aiter(Count(2))))
    g = ticker(2)
    await anext(g)
    try:
        await g.athrow(KeyError("in"))
    except KeyError as e:
        print("out", e)
    async with CM() as c, res("r") as r:
        print(type(c).__name__, r)
    async with CM():
        raise ValueError("swallowed")
    async with contextlib.AsyncExitStack() as st:
        for n in "ab":
            await st.enter_async_context(res(n))
        st.push_async_callback(asyncio.sleep, 0)
    async with contextlib.aclosing(ticker(9)) as t:
        async for v in t:
            break
    gen = (x * 2 async for x in Count(3))
    print(type(gen).__name__, [v async for v in gen], [await asyncio.sleep(0, i) for i in range(3)], [[j async for j in Count(i)] for i in range(3)])
    try:
        async for _ in [1]:
            pass
    except TypeError as e:
        print(e)
    try:
        async with 5:
            pass
    except TypeError as e:
        print(e)
    try:
        await 5
    except TypeError as e:
        print(e)


asyncio.run(main())
for src in ("async def f():\n yield 1\n return 2", "def f():\n await x", "def f():\n async with a: pass", "async def f():\n yield from x", "def f():\n [x async for x in y]"):
    try:
        compile(src, "a", "exec")
        print("compiles")
    except SyntaxError as e:
        print(e.msg)
