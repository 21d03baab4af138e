"""Locks for the guest's threads: while one waits, the others run. A wait that
nothing can end is an error at once, where CPython would wait for ever.

Conditions, events, semaphores, barriers and queue.Queue are made of these locks.
"""

import _thread
import queue
import threading

import threads


class lock:
    """threading.Lock, named as CPython names it."""

    __module__ = "_thread"
    __slots__ = ("_stock", "release", "locked", "__weakref__")

    def __init__(self):
        self._stock = _thread.allocate_lock()
        self.release, self.locked = self._stock.release, self._stock.locked

    def acquire(self, blocking=True, timeout=-1):
        if blocking and (timeout == -1 or timeout > 0) and self.locked():
            threads.wait_until(lambda: not self.locked(), None if timeout == -1 else timeout)
            blocking, timeout = False, -1
        return self._stock.acquire(blocking, timeout)

    def __enter__(self):
        return self.acquire()

    def __exit__(self, *exc):
        self.release()

    def __repr__(self):
        return repr(self._stock)

    def _at_fork_reinit(self):
        self._stock._at_fork_reinit()


class RLock(threading._RLock):
    """threading.RLock, named as CPython names it."""

    __module__ = "_thread"

    def acquire(self, blocking=True, timeout=-1):
        return bool(super().acquire(blocking, timeout))

    __enter__ = acquire

    def __repr__(self):
        state = "locked" if self._count else "unlocked"
        return f"<{state} _thread.RLock object owner={self._owner or 0} count={self._count} at {id(self):#x}>"


class SimpleQueue(queue.SimpleQueue):
    """queue.SimpleQueue, whose own waiting is in C."""

    __module__ = "queue"

    def get(self, block=True, timeout=None):
        if block and (timeout is None or timeout > 0):
            threads.wait_until(self.qsize, timeout)
            block = False
        return super().get(block, timeout)


def install():
    """Puts these locks in place of the stock ones."""
    threading.Lock = threading._allocate_lock = _thread.lock = _thread.LockType = lock
    threading._CRLock = _thread.RLock = RLock
    queue.SimpleQueue = SimpleQueue
