# Waits that need no descriptor take their time.
import select
import selectors
import threading
import time


def timed(wait):
    begin = time.monotonic()
    result = wait()
    return result, time.monotonic() - begin >= 0.045


print(timed(lambda: time.sleep(0.05)))
print(timed(lambda: select.select([], [], [], 0.05)))
print(timed(lambda: select.poll().poll(50)))
print(timed(lambda: selectors.SelectSelector().select(0.05)))
print(timed(lambda: selectors.DefaultSelector().select(0.05)))
print(timed(lambda: threading.Event().wait(0.05)))
print(timed(lambda: select.select([], [], [], 0)[0])[0], select.poll().poll(0))
for bad in (-1, "x"):
    try:
        select.select([], [], [], bad)
    except (ValueError, TypeError) as e:
        print(type(e).__name__, e)
