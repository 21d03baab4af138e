"""The event loop of a guest that has threads: asyncio's own, and host calls
beside its sockets. It takes the place of the module events."""

import asyncio
import concurrent.futures
import functools
import threading
import time
from asyncio import events as _events

import _rlm
import awaits
import hostcall
import sessionloop
import wire
from sessionloop import discard_loop, put_in_place, run_coroutine, session_loop, target


class _Calls:
    """The host calls in flight of event loops."""

    def __init__(self):
        self.futures = {}

    def drop_all(self):
        futures, self.futures = self.futures, {}
        for number, future in futures.items():
            _abandon(number)
            if not future.done() and not future.get_loop().is_closed():
                future.cancel()


calls = _Calls()


def _abandon(number):
    _rlm.forget(number)
    wire.text(f"x{number}")


class HostLoop(asyncio.SelectorEventLoop):
    """The event loop of a session."""

    def __init__(self):
        super().__init__()
        try:
            self.add_reader(_rlm.fileno, _rlm.pump)
        except OSError:
            pass  # a forked process has no connection

    def host_call(self, function, args, kwargs):
        future = self.create_future()

        request, receive = function.request(args, kwargs)

        def answered(failed, data):
            self.call_soon_threadsafe(self._settle, future, receive, failed, data)

        number = _rlm.post(b"c" + request.encode("utf-8", "replace"), answered)
        calls.futures[number] = future
        future.add_done_callback(lambda f: self._forget(number, f))
        return future

    @staticmethod
    def _settle(future, receive, failed, data):
        if future.done():
            return
        text = data.decode("utf-8", "surrogateescape")
        try:
            if failed:
                raise wire.HostError(text)
            value = wire.decode_answer(text)
            future.set_result(wire.settle(value) if receive is None else receive(value))
        except Exception as error:  # the host's, or one of the snippet's own class
            future.set_exception(error)

    @staticmethod
    def _forget(number, future):
        if calls.futures.pop(number, None) is not None and future.cancelled():
            _abandon(number)

    def run_in_executor(self, executor, func, *args):
        if executor is None and isinstance(target(func), hostcall.HostFunction):
            func = functools.partial(func, *args)
            positional, named = (), {}
            while isinstance(func, functools.partial):
                positional, named, func = (*func.args, *positional), {**func.keywords, **named}, func.func
            return self.host_call(func, positional, named)
        return super().run_in_executor(executor, func, *args)

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


# The policy of Unix before CPython 3.14 also watches child processes; later, loops do so.
_Stock = getattr(asyncio.unix_events, "_UnixDefaultEventLoopPolicy", None) or _events._BaseDefaultEventLoopPolicy


class _Policy(_Stock):
    _loop_factory = HostLoop

    def get_event_loop(self):
        loop = self._local._loop
        if threading.current_thread() is threading.main_thread() and (loop is None or loop.is_closed()):
            return session_loop()
        return super().get_event_loop()


sessionloop.use(HostLoop, calls)


_stock_sleep = time.sleep


def sleep(seconds, /):
    """time.sleep: the host waits for the main thread, so that it is not charged
    as work."""
    if _rlm.forked() or threading.current_thread() is not threading.main_thread() or not isinstance(seconds, (int, float)):
        return _stock_sleep(seconds)
    if not seconds >= 0:
        return _stock_sleep(seconds)  # its own errors
    wire.text(f"z{int(min(seconds, 1e9) * 1e6)}")


_stock_begin = concurrent.futures.ThreadPoolExecutor.__init__


@functools.wraps(_stock_begin)
def _begin_pool(self, max_workers=None, *args, **kwargs):
    """Workers of a snippet wait for the host, so their number does not depend on processors."""
    _stock_begin(self, 32 if max_workers is None else max_workers, *args, **kwargs)


def parallel_map(fn, inputs, return_exceptions=False):
    """parallel_map(fn, inputs): [fn(x) for x in inputs], at once."""
    with concurrent.futures.ThreadPoolExecutor(32) as pool:
        futures = [pool.submit(fn, x) for x in inputs]
        if not return_exceptions:
            return awaits.gathered([f.result() for f in futures])
        return awaits.gathered([f.exception() or f.result() for f in futures], True)


def install():
    """Puts the session's event loop and sleep in place of the stock ones."""
    put_in_place(sleep, _stock_sleep)
    concurrent.futures.ThreadPoolExecutor.__init__ = _begin_pool
    # Stacks count as memory of the session: with CPython's 8 MiB, sixty threads use it up.
    threading.stack_size(2 << 20)
    asyncio.set_event_loop_policy(_Policy())
