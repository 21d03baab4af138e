# threading's locks and queue's queues in one thread.
import queue
import re
import threading


def attempt(action):
    try:
        return action()
    except (RuntimeError, ValueError, OverflowError, TypeError, queue.Empty, queue.Full, threading.BrokenBarrierError) as e:
        return f"{type(e).__name__}: {e}"


def shown(lock):
    return re.sub(" at 0x[0-9a-fA-F]+| owner=[0-9]+", "", repr(lock))


lock = threading.Lock()
print(shown(lock), lock.acquire(), lock.locked(), shown(lock), lock.acquire(False), lock.acquire(blocking=False))
print(lock.acquire(timeout=0), lock.acquire(timeout=0.01), lock.acquire(True, 0.01), lock.release(), lock.locked())
print(attempt(lock.release), "|", attempt(lambda: lock.acquire(False, 1)), "|", attempt(lambda: lock.acquire(timeout=-2)))
print(attempt(lambda: lock.acquire(timeout=1e300)))
with lock as held:
    print(held, lock.locked(), attempt(lambda: lock.acquire(timeout=-2)))
print(lock.locked(), type(lock), type(lock) is type(threading.Lock()), isinstance(lock, threading.Lock))
try:
    with lock:
        raise KeyError("inside")
except KeyError as e:
    print(e, lock.locked())

again = threading.RLock()
with again, again:
    print(again.acquire(), again.acquire(timeout=0.01), again.release(), again.release(), shown(again))
print(attempt(again.release))

condition = threading.Condition(threading.Lock())
print(attempt(condition.wait), "|", attempt(condition.notify))
with condition:
    print(condition.wait(0.01), condition.wait(0), condition.wait_for(lambda: 7), condition.wait_for(lambda: 0, 0.01))
    condition.notify_all()
with threading.Condition() as reentrant:
    print(reentrant)

event = threading.Event()
print(event.is_set(), event.wait(0.01), event.set(), event.wait(), event.wait(5), event.clear(), event.is_set())
semaphore = threading.BoundedSemaphore(2)
print(semaphore.acquire(), semaphore.acquire(), semaphore.acquire(False), semaphore.acquire(timeout=0.01), semaphore.release(2))
print(attempt(semaphore.release))
print(threading.Barrier(1).wait(), attempt(lambda: threading.Barrier(2).wait(0.01)))

for kind in (queue.Queue, queue.LifoQueue, queue.PriorityQueue):
    q = kind(maxsize=3)
    for n in (2, 3, 1):
        q.put(n)
    print(kind.__name__, q.full(), attempt(lambda: q.put(4, timeout=0.01)) or "put", attempt(lambda: q.put_nowait(4)))
    print([q.get() for _ in range(3)], q.empty(), attempt(q.get_nowait), attempt(lambda: q.get(timeout=0.01)))
    for _ in range(3):
        q.task_done()
    print(q.join(), attempt(q.task_done))
simple = queue.SimpleQueue()
simple.put(1)
print(simple.get(), simple.empty(), simple.qsize(), attempt(simple.get_nowait), attempt(lambda: simple.get(timeout=0.01)))
print(attempt(lambda: simple.get(timeout=-1)), "|", simple.put(None), simple.get(timeout=5), type(simple).__name__)
print(threading.current_thread().name, threading.active_count(), threading.main_thread() is threading.current_thread())
