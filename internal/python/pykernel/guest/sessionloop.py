"""The event loop that a session's top-level await runs on, whichever kind of
loop the guest has."""

import asyncio
import functools
import inspect
import sys
import threading

_kind = _calls = None


def use(kind, calls):
    """Sets the loop factory and the table of its host calls."""
    global _kind, _calls
    _kind, _calls = kind, calls


_session_loop = None
_began = {}  # the attributes of the loop when it was made


def session_loop():
    """Returns the loop that top-level await runs on."""
    global _session_loop, _began
    if _session_loop is None or _session_loop.is_closed():
        _session_loop = _kind()
        _began = dict(vars(_session_loop))
    asyncio.set_event_loop(_session_loop)
    return _session_loop


def current():
    """Returns the loop that top-level await has run on, None before the first."""
    return _session_loop


def discard_loop():
    """Forgets the loop, so that a copy of this guest starts with none."""
    global _session_loop
    if _session_loop is not None:
        _session_loop.close()
        _session_loop = None


# What a snippet sets in a loop by asyncio's functions. All else that is not new, the loop sets.
_SETTINGS = ("_debug", "_exception_handler", "_task_factory", "slow_callback_duration")


def settings():
    """Returns the attributes that snippets have given the loop."""
    if _session_loop is None or _session_loop.is_closed():
        return {}
    return {name: value for name, value in vars(_session_loop).items()
            if name not in _began or name in _SETTINGS and value is not _began[name]}


def set_settings(attributes):
    vars(session_loop()).update(attributes)


def run_coroutine(coroutine):
    """Runs a snippet's own coroutine to its end; what it leaves behind on an
    abnormal end is cancelled, so that it does not surface in a later snippet."""
    loop = session_loop()
    _let_go(loop)
    try:
        return loop.run_until_complete(coroutine)
    except BaseException:
        _sweep(loop)
        raise


_stock_create_task = asyncio.create_task
_ROUNDS = 100  # of the loop between two snippets: a task may never rest


def create_task(coro, **options):
    """asyncio.create_task. Outside of a coroutine, the task goes to the session's loop, as in a
    notebook, whose loop always runs."""
    is_main = threading.current_thread() is threading.main_thread()
    if asyncio._get_running_loop() is not None or not is_main:
        return _stock_create_task(coro, **options)
    return session_loop().create_task(coro, **options)


def install():
    put_in_place(create_task, _stock_create_task)
    asyncio.create_task = create_task
    create_task.__signature__ = inspect.signature(_stock_create_task)


def go_on():
    """Lets the tasks go on that wait for nothing but their turn, at the end of a snippet
    without await. Their host calls are answered, because none outlives a snippet."""
    loop = _session_loop
    if loop is not None and not loop.is_closed() and (loop._ready or loop._scheduled):
        run_coroutine(_rest(loop))


async def _rest(loop):
    for _ in range(_ROUNDS):
        await asyncio.sleep(0)
        if loop._ready or loop._scheduled and loop._scheduled[0]._when <= loop.time():
            continue
        under_way = [future for future in _calls.futures.values() if asyncio.isfuture(future)]
        if not under_way:
            break
        await asyncio.wait(under_way, return_when=asyncio.FIRST_COMPLETED)


def _let_go(loop):
    """Makes a loop usable again if an interrupt has cut its end short. No loop runs when a
    snippet begins."""
    loop._thread_id = None
    asyncio._set_running_loop(None)


def _sweep(loop):
    tasks = [t for t in asyncio.all_tasks(loop) if not t.done()]
    for task in tasks:
        task.cancel()
    _calls.drop_all()
    handler = loop.get_exception_handler()
    loop.set_exception_handler(lambda loop, context: None)
    _let_go(loop)
    try:
        if tasks:
            loop.run_until_complete(asyncio.wait(tasks, timeout=1))
    except BaseException:
        pass
    finally:
        loop.set_exception_handler(handler)


def put_in_place(ours, stock):
    """Puts a function or class in the place of a stock one, where that is defined and under
    its name: so pickle and the state mover find it."""
    ours.__module__, ours.__name__, ours.__qualname__ = stock.__module__, stock.__name__, stock.__qualname__
    setattr(sys.modules[stock.__module__], stock.__name__, ours)


def target(func):
    """Returns the function under any functools.partial."""
    while isinstance(func, functools.partial):
        func = func.func
    return func
