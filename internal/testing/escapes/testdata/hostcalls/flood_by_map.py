# calls the host from a pool of workers
from concurrent.futures import ThreadPoolExecutor
with ThreadPoolExecutor(8) as p:
    for f in [p.submit(ask, i) for i in range(30)]:
        try: f.result()
        except BaseException: pass
