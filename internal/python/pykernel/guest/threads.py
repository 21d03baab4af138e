"""Threads of a guest that runs one at a time.

A thread goes on until it waits: for a lock, a host call, a time. Then another one
runs whose wait is over. If all of them wait, the host waits for the first call or
time. So a plain function that calls the host lets the others run, wherever it is.

`threading`, queue and concurrent.futures are CPython's own. They stand on the few
functions of `_thread` that install replaces, and on the locks of locks.py.
"""

import _thread
import collections
import functools
import itertools
import sys
import threading
import time
import weakref

import _rlm
import calls
import sessionloop
import wire

MOST = 256  # threads at one time: each takes 512 KiB


class _Thread:
    """A thread, and what it waits for while another one runs."""

    __slots__ = ("number", "address", "daemon", "task", "run", "done", "end", "error")

    def __init__(self, number):
        self.number = number  # what get_ident returns
        self.address = 0  # for the host
        self.daemon = False
        self.task = None  # until it begins: its function and its handle
        self.run = None  # a reference to what the host calls, dead once that has ended
        self.done = _always  # says that the wait is over
        self.end = None  # of the wait, by time.monotonic
        self.error = None  # raised in the thread instead of going on


def _always():
    return True


def _never():
    return False


_main = _Thread(_thread.get_ident())
_running = _main
_waiting = collections.deque()  # all others, first who has waited longest
_numbers = itertools.count(_main.number + 1)
others = set()  # the threads that have not ended, without the main one
_unused = []  # threads for which the host had no stack: no function frees them


def wait_until(done, timeout=None):
    """Waits until done() holds or the time is over; whether it holds."""
    end = None if timeout is None else time.monotonic() + timeout
    while not done():
        if end is not None and time.monotonic() >= end:
            return False
        _pause(done, end)
    return True


def sleep(seconds):
    """Lets the other threads run, and returns after so many seconds."""
    wait_until(_never, seconds)


def let_run():
    """Lets each thread run whose wait is over."""
    if _next() is not None:
        _pause(_always, None)


def _pause(done, end):
    """Runs another thread, or waits for the host; returns when something has changed."""
    me = _running
    me.done, me.end = done, end
    thread = _next()
    if thread is not None:
        _switch(me, thread)
    else:
        _wait_for_host(me)
    _raise_error(me)


def _next():
    """Returns the thread that is to run, None if all have to wait."""
    now = time.monotonic()
    for thread in _waiting:
        if thread.error is not None or thread.end is not None and now >= thread.end or thread.done():
            return thread
    return None


def _switch(me, thread):
    """Runs another thread until one of them switches back. A thread removes itself from
    those that wait: an interrupt can end this function anywhere."""
    global _running
    try:
        _waiting.append(me)
        _rlm.switch(thread.address)
    finally:
        _running = me
        _waiting.remove(me)


def _wait_for_host(me):
    """Waits for the first host call or time that any thread waits for."""
    ends = [thread.end for thread in (me, *_waiting) if thread.end is not None]
    left = max(0, min(ends) - time.monotonic()) if ends else None
    if calls.calls.futures:
        calls.calls.wait(left)
    elif left is not None:
        wire.text(f"z{int(min(left, 1e9) * 1e6 + 0.999)}")
    else:
        _main.error = RuntimeError(
            "deadlock: every thread waits, and no host call is pending" if others else
            "deadlock: no other thread exists that could end this wait, and no host call is pending")


def _raise_error(thread):
    error, thread.error = thread.error, None
    if error is not None:
        raise error


def interrupt(error):
    """Raises in the main thread what should end the snippet, but came to another one."""
    _main.error = error


def start(function, handle, daemon):
    """Starts a thread, which runs until it first waits; its handle says when it has ended."""
    if len(others) >= MOST:
        raise RuntimeError("can't start new thread")
    thread = _unused.pop() if _unused else _make()
    thread.daemon, thread.task = daemon, (function, handle)
    handle.ident, handle.thread = thread.number, thread
    others.add(thread)

    me = _running
    me.done, me.end = _always, None
    try:
        _switch(me, thread)
    finally:
        has_begun = thread.task is None
        if not has_begun:
            others.discard(thread)
            if thread.run() is not None:  # otherwise an interrupt was the first to run in it
                _unused.append(thread)
    if not has_begun:
        raise RuntimeError("can't start new thread")
    _raise_error(me)


def _make():
    """Returns a thread that has not begun."""
    thread = _Thread(next(_numbers))
    run = functools.partial(_run, thread)
    try:
        thread.address = _rlm.thread(run)
    except MemoryError:
        raise RuntimeError("can't start new thread") from None
    thread.run = weakref.ref(run)
    return thread


def _run(me):
    """Is a thread; returns the address of the one that goes on."""
    global _running
    function, handle = me.task
    try:
        _running, me.task = me, None
        function()
    except SystemExit:
        pass
    except KeyboardInterrupt as error:
        interrupt(error)
    except BaseException as error:
        threading.excepthook(threading.ExceptHookArgs((type(error), error, error.__traceback__, None)))
    others.discard(me)
    me.end = None
    handle._set_done()
    return _choose(me).address


def _choose(me):
    """Returns the thread that goes on after one has ended."""
    while True:
        try:
            thread = _next()
            if thread is not None:
                return thread
            _wait_for_host(me)
        except BaseException as error:
            interrupt(error)


def join_all():
    """Waits for the threads that a snippet leaves behind, as the end of a program does.
    Daemons, and threads that nothing will wake, are left to stop_all."""
    if others:
        try:
            wait_until(lambda: all(thread.daemon for thread in others))
        except RuntimeError:
            pass


def stop_all():
    """Ends all other threads: SystemExit is raised where they wait. What is left after
    that, the host removes when the snippet ends."""
    _main.error = None
    for thread in list(others):
        if thread in others:
            thread.error = SystemExit()
            let_run()
    for thread in others:
        threading._active.pop(thread.number, None)
    others.clear()
    _waiting.clear()
    _main.error = None


class _ThreadHandle:
    """What a threading.Thread holds of its thread."""

    def __init__(self):
        self.ident, self.thread, self._is_done = 0, None, False

    def is_done(self):
        return self._is_done or self.thread is not None and self.thread not in others

    def join(self, timeout=None):
        wait_until(self.is_done, None if timeout is None or timeout < 0 else timeout)

    def _set_done(self):
        self._is_done = True


def get_ident():
    return _running.number


def start_joinable_thread(function, handle=None, daemon=True):
    handle = _ThreadHandle() if handle is None else handle
    start(function, handle, daemon)
    return handle


def start_new_thread(function, args, kwargs={}, /):
    handle = _ThreadHandle()
    start(functools.partial(function, *args, **kwargs), handle, True)
    return handle.ident


_stock_excepthook = threading.excepthook


def excepthook(args, /):
    """threading.excepthook: an interrupt of the snippet goes to the main thread."""
    if issubclass(args.exc_type, KeyboardInterrupt):
        interrupt(args.exc_value)
    elif not issubclass(args.exc_type, SystemExit):
        _stock_excepthook(args)


def install():
    """Puts these threads in place of the stock ones, which cannot start."""
    for ours in (get_ident, start_joinable_thread, start_new_thread, _ThreadHandle):
        sessionloop.put_in_place(ours, getattr(_thread, ours.__name__))
    threading.get_ident, threading._ThreadHandle = get_ident, _ThreadHandle
    threading._start_joinable_thread = start_joinable_thread
    threading.excepthook = excepthook
