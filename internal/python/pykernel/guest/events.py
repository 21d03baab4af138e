"""An asyncio event loop, and an executor, over host calls and the guest's threads."""

import asyncio
import collections
import concurrent.futures
import concurrent.futures.thread
import contextvars
import functools
import importlib.machinery
import itertools
import sys
import threading
import time
import types
from asyncio import events as _events

import awaits
import hostcall
import missing
import sessionloop
import threads
import wasi
import wire
from calls import calls
from sessionloop import discard_loop, put_in_place, run_coroutine, session_loop, target


class _Selector:
    """What a loop waits with: the end of a host call makes it ready, or another thread."""

    def __init__(self, loop):
        self._loop = loop

    def select(self, timeout=None):
        if timeout is not None and timeout <= 0:
            if calls.futures:
                calls.wait(0)
            threads.let_run()
        elif timeout is None and not calls.futures and not threads.others:
            raise RuntimeError("deadlock: the event loop waits, and neither a host call nor a timer is pending")
        else:
            threads.wait_until(lambda: self._loop._ready, timeout)
        return ()

    def close(self):
        pass

    def get_map(self):
        return {}


class HostLoop(asyncio.BaseEventLoop):
    """The event loop of a session."""

    def __init__(self):
        super().__init__()
        self._selector = _Selector(self)
        self._clock_resolution = 0.001

    def _process_events(self, events):
        pass  # the calls set the futures themselves

    def _write_to_self(self):
        pass  # another thread runs only while this one looks whether it is ready

    def host_call(self, function, args, kwargs):
        return calls.start(self.create_future(), function, args, kwargs)

    def run_in_executor(self, executor, func, *args):
        if isinstance(target(func), hostcall.HostFunction):
            return self.host_call(*_unwrap(func, args))
        return super().run_in_executor(executor, func, *args)

    async def shutdown_default_executor(self, timeout=None):
        if self._default_executor is not None:
            self._default_executor.shutdown()

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


class ThreadPoolExecutor(concurrent.futures.Executor):
    """concurrent.futures.ThreadPoolExecutor. A host function needs no thread. A thread ends
    when no work is left: none may outlive its snippet."""

    _counter = itertools.count().__next__

    def __init__(self, max_workers=None, thread_name_prefix="", initializer=None, initargs=()):
        if max_workers is not None and max_workers <= 0:
            raise ValueError("max_workers must be greater than 0")
        if initializer is not None and not callable(initializer):
            raise TypeError("initializer must be a callable")
        self._max_workers = max_workers or 32
        self._prefix = thread_name_prefix or f"ThreadPoolExecutor-{self._counter()}"
        self._initializer = initializer and functools.partial(initializer, *initargs)
        self._closed = False
        self._queue = collections.deque()
        self._pending = set()  # futures that are not done
        self._workers = 0
        self._started = 0

    def submit(self, fn, /, *args, **kwargs):
        if self._closed:
            raise RuntimeError("cannot schedule new futures after shutdown")
        future = concurrent.futures.Future()
        if isinstance(target(fn), hostcall.HostFunction):
            future.set_running_or_notify_cancel()
            calls.start(future, *_unwrap(fn, args, kwargs))
        else:
            self._queue.append((future, fn, args, kwargs))
        self._pending.add(future)
        future.add_done_callback(self._pending.discard)
        if self._queue and self._workers < self._max_workers:
            self._start_worker()
        return future

    def _start_worker(self):
        worker = threading.Thread(target=self._work, name=f"{self._prefix}_{self._started}")
        self._workers += 1
        self._started += 1
        try:
            worker.start()
        except RuntimeError:
            self._workers -= 1
            if not self._workers:
                raise

    def _work(self):
        try:
            if self._initializer is not None:
                self._initializer()
        except BaseException as error:
            self._break(error)
        try:
            while self._queue:
                self._run(*self._queue.popleft())
        finally:
            self._workers -= 1

    @staticmethod
    def _run(future, fn, args, kwargs):
        if not future.set_running_or_notify_cancel():
            return
        try:
            result = fn(*args, **kwargs)
        except BaseException as error:
            future.set_exception(error)
        else:
            future.set_result(result)

    def _break(self, error):
        """Fails all calls, as CPython does when an initializer has failed."""
        broken = concurrent.futures.thread.BrokenThreadPool(
            "A thread initializer failed, the thread pool is not usable anymore")
        broken.__cause__ = error
        while self._queue:
            self._queue.popleft()[0].set_exception(broken)
        self._closed = True

    def shutdown(self, wait=True, *, cancel_futures=False):
        self._closed = True
        while cancel_futures and self._queue:
            self._queue.popleft()[0].cancel()
        if wait:
            threads.wait_until(lambda: not self._pending)


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


async def to_thread(func, /, *args, **kwargs):
    """asyncio.to_thread; a host function needs no thread."""
    loop = asyncio.get_running_loop()
    if isinstance(target(func), hostcall.HostFunction):
        return await loop.host_call(*_unwrap(func, args, kwargs))
    return await loop.run_in_executor(None, functools.partial(contextvars.copy_context().run, func, *args, **kwargs))


class _Answer:
    """What the answer to a call goes to that a thread waits for."""

    value = error = None
    is_done = False

    def done(self):
        return self.is_done

    def set_result(self, value):
        self.value, self.is_done = value, True

    def set_exception(self, error):
        self.error, self.is_done = error, True

    def cancel(self):
        self.set_exception(concurrent.futures.CancelledError())


_stock_answer = hostcall.answer


def _wait_for_answer(request):
    """Makes a host call. Other threads run meanwhile."""
    if not threads.others:
        return _stock_answer(request)
    answer = _Answer()
    number = calls.send(answer, request)
    try:
        threads.wait_until(answer.done)
    finally:
        calls.abandon(number)
    if answer.error is not None:
        raise answer.error
    return answer.value


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
    if threads.others:
        threads.sleep(seconds)
    else:
        wire.text(f"z{int(min(seconds, 1e9) * 1e6)}")


def parallel_map(fn, inputs, return_exceptions=False):
    """parallel_map(fn, inputs): [fn(x) for x in inputs], at once."""
    pool = ThreadPoolExecutor()
    futures = [pool.submit(fn, x) for x in inputs]
    if not return_exceptions:
        return awaits.gathered([f.result() for f in futures])
    return awaits.gathered([f.exception() or f.result() for f in futures], True)


def install():
    """Puts the guest's event loop, executor and sleep in place of the stock ones."""
    for ours, stock in ((to_thread, asyncio.to_thread), (sleep, time.sleep),
                        (ThreadPoolExecutor, concurrent.futures.ThreadPoolExecutor)):
        put_in_place(ours, stock)
    wasi.install()
    hostcall.answer = _wait_for_answer
    asyncio.set_event_loop_policy(_Policy())
    asyncio.DefaultEventLoopPolicy = _Policy
    asyncio.EventLoop = asyncio.SelectorEventLoop = HostLoop
    _events._init_event_loop_policy = lambda: asyncio.set_event_loop_policy(_Policy())
    asyncio.to_thread = to_thread
    concurrent.futures.ThreadPoolExecutor = ThreadPoolExecutor
    _install_processes()
