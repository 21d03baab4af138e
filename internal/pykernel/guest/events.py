"""An asyncio event loop, and an executor, over host calls.

There are no sockets and no threads in the guest. All the loop can wait for is
time and host calls, and both are one request: `w`, which returns when a started
call has ended or the time is over.
"""

import asyncio
import concurrent.futures
import concurrent.futures.thread
import importlib.machinery
import sys
import time
import types
from asyncio import events as _events

import awaits
import hostcall
import missing
import sessionloop
import wire
from sessionloop import discard_loop, put_in_place, run_coroutine, session_loop, target


class _Calls:
    """The calls under way on the host; asyncio's `selector`, and the executor's."""

    def __init__(self):
        self.futures = {}  # number of the call -> future of either kind

    def select(self, timeout=None):
        if timeout is not None and timeout <= 0 and not self.futures:
            return ()
        if timeout is None and not self.futures:
            raise RuntimeError("deadlock: the event loop waits, and neither a host call nor a timer is pending")
        self.wait(timeout)
        return ()

    def wait(self, timeout):
        ms = -1 if timeout is None else max(0, int(timeout * 1000 + 0.999))
        for number, ok, value in wire.decode(wire.text(f"w{ms}")):
            future = self.futures.pop(number, None)
            if future is None or future.done():
                continue
            if not ok:
                future.set_exception(wire.HostError(value))
                continue
            try:
                future.set_result(value if future.receive is None else future.receive(value))
            except Exception as error:  # of the snippet's own class
                future.set_exception(error)

    def start(self, future, function, args, kwargs):
        number, future.receive = function.start(args, kwargs)
        self.futures[number] = future
        future.add_done_callback(lambda f: self._forget(number, f))
        return future

    def _forget(self, number, future):
        if future.cancelled() and self.futures.pop(number, None) is not None:
            wire.text(f"x{number}")

    def drop_all(self):
        """Cancels the tasks that a stopped snippet left behind."""
        futures, self.futures = self.futures, {}
        for number, future in futures.items():
            wire.text(f"x{number}")
            future.cancel()

    def close(self):
        pass

    def get_map(self):
        return {}


calls = _Calls()


def wait_until(done, timeout=None):
    """Waits until done() holds or the time is over; whether it holds. Only the end
    of a host call can change that: there is no other thread."""
    end = None if timeout is None else time.monotonic() + timeout
    while not done():
        left = None if end is None else end - time.monotonic()
        if left is not None and left <= 0:
            return False
        if calls.futures:
            calls.wait(left)
        elif left is None:
            raise RuntimeError("deadlock: no other thread exists that could end this wait, and no host call is pending")
        else:
            sleep(left)
            return done()
    return True


class HostLoop(asyncio.BaseEventLoop):
    """The event loop of a session."""

    def __init__(self):
        super().__init__()
        self._selector = calls
        self._clock_resolution = 0.001

    def _process_events(self, events):
        pass  # select sets the futures itself

    def _write_to_self(self):
        pass  # nothing else could wake it: there are no threads

    def host_call(self, function, args, kwargs):
        return calls.start(self.create_future(), function, args, kwargs)

    def run_in_executor(self, executor, func, *args):
        if isinstance(target(func), hostcall.HostFunction):
            function, bound, kwargs = _unwrap(func, args)
            return self.host_call(function, bound, kwargs)
        future = self.create_future()
        try:
            future.set_result(func(*args))
        except Exception as error:
            future.set_exception(error)
        return future

    async def shutdown_default_executor(self, timeout=None):
        pass

    async def _make_subprocess_transport(self, *args, **kwargs):
        raise missing.processes("asyncio's subprocess")

    def run_until_complete(self, future):
        with _Nested():
            return super().run_until_complete(future)

    def run_forever(self):
        with _Nested():
            super().run_forever()


class _Nested:
    """Lets a loop run inside another: a snippet with a top-level await may call
    asyncio.run, as it may in the REPLs that models know."""

    def __enter__(self):
        self.outer = outer = _events._get_running_loop()
        if outer is not None:
            self.task = asyncio.tasks.current_task(outer)
            if self.task is not None:
                asyncio.tasks._leave_task(outer, self.task)
            _events._set_running_loop(None)

    def __exit__(self, *exc):
        if self.outer is not None:
            _events._set_running_loop(self.outer)
            if self.task is not None:
                asyncio.tasks._enter_task(self.outer, self.task)


class _Policy(_events.BaseDefaultEventLoopPolicy):
    _loop_factory = HostLoop

    def get_event_loop(self):
        loop = self._local._loop
        return session_loop() if loop is None or loop.is_closed() else loop


sessionloop.use(HostLoop, calls)


def _unwrap(func, args, kwargs=None):
    """Returns the host function under a functools.partial, with all its arguments."""
    kwargs = dict(kwargs or {})
    args = tuple(args)
    while not isinstance(func, hostcall.HostFunction):
        args, kwargs, func = (*func.args, *args), {**func.keywords, **kwargs}, func.func
    return func, args, kwargs


class _ExecutorFuture(concurrent.futures.Future):
    """A future whose result() waits for its host call."""

    def _settle(self, timeout):
        if not wait_until(self.done, timeout):
            raise TimeoutError()

    def result(self, timeout=None):
        self._settle(timeout)
        return super().result(0)

    def exception(self, timeout=None):
        self._settle(timeout)
        return super().exception(0)


class ThreadPoolExecutor(concurrent.futures.Executor):
    """A stand-in for threads, which the guest has not: host functions run on the
    host at the same time, any other function runs at once in submit."""

    def __init__(self, max_workers=None, thread_name_prefix="", initializer=None, initargs=()):
        if max_workers is not None and max_workers <= 0:
            raise ValueError("max_workers must be greater than 0")
        self._max_workers = max_workers or 32
        self._closed = False
        if initializer is not None:
            initializer(*initargs)

    def submit(self, fn, /, *args, **kwargs):
        if self._closed:
            raise RuntimeError("cannot schedule new futures after shutdown")
        future = _ExecutorFuture()
        future.set_running_or_notify_cancel()
        if isinstance(fn, hostcall.Deferred):
            try:
                fn, args, kwargs = fn.make(*args, **kwargs)
            except Exception as error:
                future.set_exception(error)
                return future
        if isinstance(target(fn), hostcall.HostFunction):
            return calls.start(future, *_unwrap(fn, args, kwargs))
        try:
            future.set_result(fn(*args, **kwargs))
        except Exception as error:
            future.set_exception(error)
        return future

    def shutdown(self, wait=True, *, cancel_futures=False):
        self._closed = True


class ProcessPoolExecutor(concurrent.futures.Executor):
    """concurrent.futures.ProcessPoolExecutor where there are no processes: it can be imported."""

    def __init__(self, *args, **kwargs):
        raise missing.processes("ProcessPoolExecutor", "use ThreadPoolExecutor or parallel_map, or ")


class BrokenProcessPool(concurrent.futures.BrokenExecutor):
    """The error of a pool whose process has died."""


def _install_processes():
    """Gives concurrent.futures its module of processes, which CPython lacks here."""
    module = types.ModuleType("concurrent.futures.process", "Pools of processes, of which this sandbox has none.")
    module.__spec__ = importlib.machinery.ModuleSpec(module.__name__, None)  # no snippet made it
    for kind in (ProcessPoolExecutor, BrokenProcessPool):
        kind.__module__ = module.__name__
        setattr(module, kind.__name__, kind)
    sys.modules[module.__name__] = concurrent.futures.process = module
    concurrent.futures.ProcessPoolExecutor = ProcessPoolExecutor


_wait, _as_completed = concurrent.futures.wait, concurrent.futures.as_completed


def wait(fs, timeout=None, return_when=concurrent.futures.ALL_COMPLETED):
    """concurrent.futures.wait for futures of host calls."""
    fs = set(fs)
    if return_when == concurrent.futures.FIRST_COMPLETED:
        until = lambda: any(f.done() for f in fs)
    elif return_when == concurrent.futures.FIRST_EXCEPTION:
        until = lambda: all(f.done() for f in fs) or any(
            f.done() and not f.cancelled() and f.exception() for f in fs)
    else:
        until = lambda: all(f.done() for f in fs)
    if any(isinstance(f, _ExecutorFuture) for f in fs):
        wait_until(until, timeout)
        timeout = 0
    return _wait(fs, timeout, return_when)


def as_completed(fs, timeout=None):
    """concurrent.futures.as_completed for futures of host calls."""
    left = set(fs)
    if not any(isinstance(f, _ExecutorFuture) for f in left):
        yield from _as_completed(left, timeout)
        return
    end = None if timeout is None else time.monotonic() + timeout
    while left:
        if not wait_until(lambda: any(f.done() for f in left), None if end is None else end - time.monotonic()):
            raise TimeoutError(f"{len(left)} (of {len(fs)}) futures unfinished")
        ready = {f for f in left if f.done()}
        left -= ready
        yield from ready


async def to_thread(func, /, *args, **kwargs):
    """asyncio.to_thread, for host functions without a thread."""
    if isinstance(target(func), hostcall.HostFunction):
        return await asyncio.get_running_loop().host_call(*_unwrap(func, args, kwargs))
    return func(*args, **kwargs)


def sleep(seconds, /):
    """time.sleep: the host waits, so that a limit can end it."""
    if not isinstance(seconds, (int, float)):
        if not hasattr(type(seconds), "__index__") and not hasattr(type(seconds), "__float__"):
            raise TypeError(f"{type(seconds).__name__!r} object cannot be interpreted as an integer")
        seconds = seconds.__index__() if hasattr(type(seconds), "__index__") else float(seconds)
    if seconds != seconds:
        raise ValueError("Invalid value NaN (not a number)")
    if seconds < 0:
        raise ValueError("sleep length must be non-negative")
    wire.text(f"z{int(min(seconds, 1e9) * 1e6)}")


def parallel_map(fn, inputs, return_exceptions=False):
    """parallel_map(fn, inputs): [fn(x) for x in inputs], host functions at once."""
    pool = ThreadPoolExecutor()
    futures = [pool.submit(fn, x) for x in inputs]
    if not return_exceptions:
        return awaits.gathered([f.result() for f in futures])
    return awaits.gathered([f.exception() or f.result() for f in futures], True)


def install():
    """Puts the guest's event loop, executor and sleep in place of the stock ones."""
    for ours, stock in ((to_thread, asyncio.to_thread), (wait, concurrent.futures.wait), (sleep, time.sleep),
                        (as_completed, concurrent.futures.as_completed), (ThreadPoolExecutor, concurrent.futures.ThreadPoolExecutor)):
        put_in_place(ours, stock)
    asyncio.set_event_loop_policy(_Policy())
    asyncio.DefaultEventLoopPolicy = _Policy
    asyncio.EventLoop = asyncio.SelectorEventLoop = HostLoop
    _events._init_event_loop_policy = lambda: asyncio.set_event_loop_policy(_Policy())
    asyncio.to_thread = to_thread
    concurrent.futures.ThreadPoolExecutor = ThreadPoolExecutor
    concurrent.futures.wait, concurrent.futures.as_completed = wait, as_completed
    _install_processes()
