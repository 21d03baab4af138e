# contextvars, alone and with tasks.
import asyncio
import contextvars

v = contextvars.ContextVar("v", default="dflt")
n = contextvars.ContextVar("n")
print(v.get(), n.get("none"), v.name)
try:
    n.get()
except LookupError as e:
    print(type(e).__name__)
tok = v.set("one")
print(v.get(), tok.var is v, tok.old_value is contextvars.Token.MISSING)
v.reset(tok)
print(v.get())
try:
    v.reset(tok)
except RuntimeError as e:
    print("used once")
ctx = contextvars.copy_context()


def inside():
    v.set("in ctx")
    return v.get()


print(ctx.run(inside), v.get(), ctx[v], v in ctx, len(ctx) >= 1)


async def task(name):
    v.set(name)
    await asyncio.sleep(0)
    return v.get()


async def main():
    v.set("main")
    got = await asyncio.gather(*(task(f"t{i}") for i in range(3)))
    c = contextvars.copy_context()
    t = asyncio.create_task(task("explicit"), context=c)
    await t
    direct = await task("direct")
    return got, c[v], direct, v.get()


print(asyncio.run(main()), v.get())
