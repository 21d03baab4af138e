# The classes of MCP servers. A function is made when a snippet names it.
import asyncio as _asyncio
import builtins as _builtins


class _Server(type):
    def __getattr__(cls, name):
        if name.startswith("_"):
            raise AttributeError(name)
        try:
            doc = mcp__describe(cls.__name__, name)
        except Exception as e:
            raise AttributeError(str(e)) from None
        function = _make_function(cls.__name__ + "__" + name, name, doc)
        setattr(cls, name, staticmethod(function))
        return function

    def __dir__(cls):
        return mcp__describe(cls.__name__, "")


def _make_function(host, name, doc):
    call = globals().get(host) or getattr(_builtins, host)

    # In a coroutine it can be awaited; elsewhere it returns the value. The guest starts calls of
    # host functions that it sees in the source; this one it cannot see.
    def function(*args, **kwargs):
        if _asyncio._get_running_loop() is None:
            return call(*args, **kwargs)

        async def later():
            return await __rlm_start__(call, *args, **kwargs)

        return later()

    function.__name__ = function.__qualname__ = name
    function.__doc__ = doc
    return function


class tools:
    "Finds the tools of MCP servers."

    def search(query, limit=10):
        "Returns the tools that fit some words best, as dicts with name, signature and doc."
        return mcp__search(query, limit)
