"""Runs the cells of a file in one namespace, as a session does, over the text in another file.
Prints a JSON list with what each printed and how it failed."""

import ast
import asyncio
import contextlib
import inspect
import io
import json
import sys

cells, file = sys.argv[1:]
with open(file, encoding="utf-8", errors="surrogateescape", newline="") as f:
    text = f.read()
names = {"__name__": "__main__", "context": text}


def perform(code):
    """Evaluates code that may await."""
    value = eval(code, names)
    return asyncio.run(value) if inspect.iscoroutine(value) else value


def readable(character):
    """Returns U+FFFD for a byte that is not UTF-8, as the test has it."""
    return "\ufffd" if "\udc80" <= character <= "\udcff" else character


def run(source):
    tree = ast.parse(source)
    last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
    flags = ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
    perform(compile(tree, "cell", "exec", flags=flags))
    if last is not None:
        value = perform(compile(ast.Expression(last.value), "cell", "eval", flags=flags))
        if value is not None:
            names["_"] = value
            print(repr(value))


results = []
with open(cells, encoding="utf-8") as f:
    sources = f.read().split("# %%")[1:]
for source in sources:
    names["context"] = text
    out, failure = io.StringIO(), ""
    try:
        with contextlib.redirect_stdout(out):
            run("#" + source)
    except Exception as error:
        kind = type(error)
        failure = f"{'' if kind.__module__ == 'builtins' else kind.__module__ + '.'}{kind.__qualname__}: {error}"
    results.append(["".join(map(readable, out.getvalue())), failure])
print(json.dumps(results))
