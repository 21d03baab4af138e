"""usage: native.py CODE TEXT...: runs CODE in CPython, the texts as plain strs.

usage: native.py --jsonl TEXT: the tickets at the beginning of TEXT as JSON lines.
"""

import json
import sys


def read(path, size=-1):
    with open(path, "rb") as file:
        return file.read(size).decode("utf-8", "surrogateescape")


def tickets(path):
    for ticket in read(path, 40 << 20).split("\n\n")[:-1]:
        head, _, body = ticket.partition("\n")
        fields = dict(zip(("id", "date", "place", "language", "severity"), head.split(" | ")))
        print(json.dumps({**fields, "lines": body.split("\n"), "size": len(body) / 7}, ensure_ascii=len(body) % 2 == 0))


if __name__ == "__main__":
    sys.stdout.reconfigure(encoding="utf-8", errors="surrogateescape")
    if sys.argv[1] == "--jsonl":
        tickets(sys.argv[2])
    else:
        names = {f"context_{n}": read(path) for n, path in enumerate(sys.argv[2:])}
        with open(sys.argv[1], encoding="utf-8") as file:
            code = compile(file.read(), sys.argv[1], "exec")
        exec(code, {"context": names["context_0"], **names})
