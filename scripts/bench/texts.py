"""Times operations on a text. A sandbox gets this before each operation; native CPython runs
it with a file and answers operations, a line each."""

import collections
import hashlib
import io
import json
import re
import sys
import time
import unicodedata


def measure(operation, text, seconds):
    """Returns the best time of an operation, and the type of its result: {"took": 0.5, "type":
    "list"}. Evaluates the operation until that many seconds have passed. took is missing if
    the memory is not enough."""
    names, took = dict(globals(), t=text), []
    code = compile(operation, "operation", "eval")
    while len(took) < 100 and sum(took) < seconds:
        begun = time.perf_counter()
        try:
            kind = type(eval(code, names)).__name__
        except (MemoryError, OverflowError) as error:
            return {"type": type(error).__name__}
        took.append(time.perf_counter() - begun)
    return {"took": min(took), "type": kind}


def serve(path, memory):
    """Answers operations on the text of a file, with so many more bytes of memory than the
    text takes."""
    import resource

    with open(path, encoding="utf-8", errors="surrogateescape", newline="") as file:
        text = file.read()
    with open("/proc/self/statm") as file:
        limit = int(file.read().split()[0]) * resource.getpagesize() + memory
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    for line in sys.stdin:
        operation, seconds = json.loads(line)
        print(json.dumps(measure(operation, text, seconds)), flush=True)


if __name__ == "__main__" and len(sys.argv) == 3:
    serve(sys.argv[1], int(sys.argv[2]))
