from asyncio import gather, run, to_thread
from concurrent.futures import *
from datetime import datetime, time
from time import sleep
import concurrent.futures
import zoneinfo
# --- the next snippet ---
sleep(0)
with ThreadPoolExecutor() as pool:
    futures = [pool.submit(abs, n) for n in (-1, -2)]
    print(sorted(f.result() for f in as_completed(futures)), len(wait(futures).done), FIRST_COMPLETED)
del pool, futures
print(concurrent.futures.wait is wait, concurrent.futures.ProcessPoolExecutor is ProcessPoolExecutor)


async def main():
    return await gather(to_thread(abs, -3), to_thread(abs, -4))


print(run(main()), datetime(2024, 1, 1), time(1))
# --- the next snippet ---
print(run(main()), wait.__name__, issubclass(ProcessPoolExecutor, Executor), sleep.__name__)
