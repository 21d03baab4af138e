# Styles of parallel programs. Each asks for all of `prompts` and leaves the answers in
# `answers`, in any order. A host that answers only when several calls are under way at the
# same time shows which styles are parallel.
import asyncio, collections, contextlib, contextvars, functools, queue, re, threading, _thread
import concurrent.futures
from concurrent.futures import ThreadPoolExecutor, as_completed, wait


def label(prompt):
    text = " ".join(prompt.split())
    answer = llm_query(text)
    return answer.upper().lower()


class Labeller:
    def __init__(self):
        self.seen = []

    def label(self, prompt):
        answer = label(prompt)
        self.seen.append(answer)
        return answer


prompts = [f"p{i}" for i in range(64)]
# === map of a plain function
with ThreadPoolExecutor(max_workers=32) as pool:
    answers = list(pool.map(label, prompts))
# === map of the host function
with ThreadPoolExecutor(max_workers=32) as pool:
    answers = list(pool.map(llm_query, prompts))
# === map of a lambda
with ThreadPoolExecutor(32) as pool:
    answers = list(pool.map(lambda p: llm_query(p), prompts))
# === map of a lambda that does more
with ThreadPoolExecutor(32) as pool:
    pairs = list(pool.map(lambda p: (p, llm_query(p).strip()), prompts))
answers = [answer for _, answer in pairs]
# === map of a partial
with ThreadPoolExecutor(32) as pool:
    answers = list(pool.map(functools.partial(lambda before, p: label(before + p), ""), prompts))
# === map of a method
labeller = Labeller()
with ThreadPoolExecutor(32) as pool:
    list(pool.map(labeller.label, prompts))
answers = labeller.seen
# === map over two lists, with a timeout and chunks
with ThreadPoolExecutor(32) as pool:
    answers = list(pool.map(lambda i, p: label(p), range(64), prompts, timeout=600, chunksize=4))
# === map with a pool that nothing closes
answers = list(ThreadPoolExecutor(32).map(label, prompts))
# === map with the default number of workers
with ThreadPoolExecutor() as pool:
    answers = list(pool.map(label, prompts))
# === map with a hundred workers
with ThreadPoolExecutor(max_workers=100) as pool:
    answers = list(pool.map(label, prompts))
# === submit, then result
with ThreadPoolExecutor(32) as pool:
    futures = [pool.submit(label, p) for p in prompts]
    answers = [f.result() for f in futures]
# === submit, then as_completed
with ThreadPoolExecutor(32) as pool:
    futures = {pool.submit(label, p): p for p in prompts}
    answers = [f.result() for f in as_completed(futures)]
# === submit of keyword arguments, read after the block
with ThreadPoolExecutor(32) as pool:
    futures = [pool.submit(label, prompt=p) for p in prompts]
answers = [f.result(timeout=0) for f in futures]
# === submit, then wait for all
pool = ThreadPoolExecutor(32)
done, left = wait([pool.submit(label, p) for p in prompts])
pool.shutdown()
answers = [f.result() for f in done]
# === submit, then wait for the first, again and again
answers = []
with ThreadPoolExecutor(32) as pool:
    left = {pool.submit(label, p) for p in prompts}
    while left:
        done, left = wait(left, return_when=concurrent.futures.FIRST_COMPLETED)
        answers += [f.result() for f in done]
# === submit with callbacks
answers = []
with ThreadPoolExecutor(32) as pool:
    for p in prompts:
        pool.submit(label, p).add_done_callback(lambda f: answers.append(f.result()))
# === workers that raise exceptions after their call
def picky(prompt):
    answer = label(prompt)
    if prompt.endswith("3"):
        raise ValueError(answer)
    return answer

answers = []
with ThreadPoolExecutor(32) as pool:
    for future in [pool.submit(picky, p) for p in prompts]:
        try:
            answers.append(future.result())
        except ValueError as error:
            answers.append(str(error))
# === workers that make several calls
def section(part):
    found = []
    for prompt in part:
        found.append(label(prompt))
    return found

with ThreadPoolExecutor(32) as pool:
    answers = sum(pool.map(section, [prompts[i:i + 2] for i in range(0, 64, 2)]), [])
# === workers that use a generator
def each(part):
    for prompt in part:
        yield label(prompt)

with ThreadPoolExecutor(32) as pool:
    answers = sum(pool.map(lambda part: list(each(part)), [prompts[i:i + 2] for i in range(0, 64, 2)]), [])
# === workers that call from C code
with ThreadPoolExecutor(32) as pool:
    answers = list(pool.map(lambda p: re.sub(".+", lambda m: label(m.group()), p), prompts))
# === workers with a cache
cached = functools.lru_cache(maxsize=None)(label)
with ThreadPoolExecutor(32) as pool:
    answers = list(pool.map(cached, prompts))
# === workers with an initializer and a thread-local value
local = threading.local()

def begin():
    local.count = 0

def counted(prompt):
    local.count += 1
    return label(prompt)

with ThreadPoolExecutor(32, thread_name_prefix="ask", initializer=begin) as pool:
    answers = list(pool.map(counted, prompts))
# === workers in a context manager
@contextlib.contextmanager
def logged(name, log=[]):
    log.append(name)
    try:
        yield log
    finally:
        log.append(name)

def inside(prompt):
    with logged(prompt):
        return label(prompt)

with ThreadPoolExecutor(32) as pool:
    answers = list(pool.map(inside, prompts))
# === pools in the workers of a pool
def group(part):
    with ThreadPoolExecutor(8) as inner:
        return list(inner.map(label, part))

with ThreadPoolExecutor(8) as pool:
    answers = sum(pool.map(group, [prompts[i:i + 8] for i in range(0, 64, 8)]), [])
# === workers with a lock
lock, answers = threading.Lock(), []

def locked(prompt):
    answer = label(prompt)
    with lock:
        answers.append(answer)

with ThreadPoolExecutor(32) as pool:
    list(pool.map(locked, prompts))
# === workers with a semaphore
gate = threading.Semaphore(20)

def admitted(prompt):
    with gate:
        return label(prompt)

with ThreadPoolExecutor(64) as pool:
    answers = list(pool.map(admitted, prompts))
# === workers that wait for an event
go = threading.Event()

def ready(prompt):
    go.wait()
    return label(prompt)

with ThreadPoolExecutor(64) as pool:
    futures = [pool.submit(ready, p) for p in prompts]
    go.set()
    answers = [f.result() for f in futures]
# === threads
answers = []

def work(prompt):
    answers.append(label(prompt))

threads = [threading.Thread(target=work, args=(p,)) for p in prompts]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
# === threads of a class
class Asker(threading.Thread):
    def __init__(self, prompt):
        super().__init__(daemon=True)
        self.prompt = prompt

    def run(self):
        self.answer = label(self.prompt)

threads = [Asker(p) for p in prompts]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
answers = [thread.answer for thread in threads]
# === threads that take from a queue
tasks, results = queue.Queue(), queue.SimpleQueue()

def serve():
    while (prompt := tasks.get()) is not None:
        results.put(label(prompt))
        tasks.task_done()

threads = [threading.Thread(target=serve) for _ in range(32)]
for thread in threads:
    thread.start()
for p in prompts:
    tasks.put(p)
tasks.join()
for _ in threads:
    tasks.put(None)
for thread in threads:
    thread.join()
answers = [results.get() for _ in prompts]
# === threads that meet at a barrier
barrier, answers = threading.Barrier(32), []

def step(part):
    for prompt in part:
        barrier.wait()
        answers.append(label(prompt))

threads = [threading.Thread(target=step, args=(prompts[i:i + 2],)) for i in range(0, 64, 2)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
# === timers
answers = []
timers = [threading.Timer(0.001, lambda p=p: answers.append(label(p))) for p in prompts]
for timer in timers:
    timer.start()
for timer in timers:
    timer.join()
# === threads without an object, and a condition
answers, changed = [], threading.Condition()

def append(prompt):
    answer = label(prompt)
    with changed:
        answers.append(answer)
        changed.notify()

for p in prompts:
    _thread.start_new_thread(append, (p,))
with changed:
    changed.wait_for(lambda: len(answers) == 64)
# === an event loop in each thread
answers = []

async def both(part):
    return await asyncio.gather(*[llm_query(p) for p in part])

threads = [threading.Thread(target=lambda part=part: answers.extend(asyncio.run(both(part))))
           for part in [prompts[i:i + 8] for i in range(0, 64, 8)]]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
# === gather of to_thread
answers = await asyncio.gather(*[asyncio.to_thread(label, p) for p in prompts])
# === run_in_executor, the default one
loop = asyncio.get_running_loop()
answers = await asyncio.gather(*[loop.run_in_executor(None, label, p) for p in prompts])
# === run_in_executor, with a pool
async def main():
    loop = asyncio.get_running_loop()
    with ThreadPoolExecutor(32) as pool:
        return await asyncio.gather(*[loop.run_in_executor(pool, functools.partial(label, p)) for p in prompts])

answers = asyncio.run(main())
# === a context variable that to_thread carries
depth = contextvars.ContextVar("depth", default=0)
depth.set(1)
answers = await asyncio.gather(*[asyncio.to_thread(lambda p: label(p) if depth.get() else "lost", p) for p in prompts])
# === parallel_map of a plain function
answers = parallel_map(label, prompts)
# === parallel_map of a lambda, with exceptions
answers = parallel_map(lambda p: label(p), prompts, return_exceptions=True)
# === gather of the host function
answers = await asyncio.gather(*[llm_query(p) for p in prompts])
# === tasks of a group, with a function in between
async def through(prompt):
    answer = llm_query(prompt)
    return answer.strip()

async with asyncio.TaskGroup() as tasks:
    running = [tasks.create_task(through(p)) for p in prompts]
answers = [task.result() for task in running]
