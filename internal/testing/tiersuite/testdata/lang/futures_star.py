from concurrent.futures import *
from concurrent.futures.process import BrokenProcessPool
import concurrent.futures

print(ProcessPoolExecutor.__name__, ProcessPoolExecutor.__module__, issubclass(ProcessPoolExecutor, Executor))
print(concurrent.futures.ProcessPoolExecutor is ProcessPoolExecutor, issubclass(BrokenProcessPool, BrokenExecutor))
with ThreadPoolExecutor() as pool:
    print(list(pool.map(abs, [-1, 2])), wait([pool.submit(abs, -3)]).done.pop().result())
