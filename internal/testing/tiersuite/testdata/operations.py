"""Evaluates expressions over a text t. A sandbox gets this as a snippet; CPython runs it with the
file of a text and one with a JSON list of expressions, and prints a JSON list of the outcomes."""

import ast, bisect, collections, collections.abc, copy, csv, difflib, fnmatch, functools, hashlib
import html, io, itertools, json, operator, pickle, re, string, struct, sys, textwrap, unicodedata
import urllib.parse, zlib


def feed(to, value):
    """Adds a value to a hash that is the same in every CPython."""
    if hasattr(value, "groupdict"):
        value = "match", value.span(), value.groups(), value.groupdict(), value.lastindex
    if isinstance(value, str):
        to.update(b"str")
        for at in range(0, len(value), 1 << 20):
            to.update(value[at : at + (1 << 20)].encode("utf-8", "surrogatepass"))
    elif isinstance(value, (bytes, bytearray)):
        to.update(b"bytes")
        to.update(value)
    elif isinstance(value, dict):
        feed(to, list(value.items()))
    elif isinstance(value, type) or not hasattr(value, "__iter__"):
        to.update(repr(value).encode())
    else:
        to.update(b"[")
        for item in value:
            feed(to, item)
        to.update(b"]")


def digest(value):
    to = hashlib.sha256()
    feed(to, value)
    return to.hexdigest()


def outcome(expression, t):
    """Returns what an expression gives: a value if it is short, else its digest."""
    names = dict(globals(), t=t, N=len(t), islice=itertools.islice, Counter=collections.Counter, hash=digest)
    try:
        value = eval(expression, names)
        short = repr(value) if type(value) in (int, bool, float, str) and len(str(value)) < 99 else ""
        return short or digest(value)
    except Exception as error:
        return "raises " + type(error).__name__


def main(path, expressions):
    import resource

    with open(path, encoding="utf-8", errors="surrogateescape", newline="") as file:
        text = file.read()
    resource.setrlimit(resource.RLIMIT_AS, (12 << 30, 12 << 30))
    with open(expressions, encoding="utf-8") as file:
        print(json.dumps([outcome(expression, text) for expression in json.load(file)]))


if __name__ == "__main__" and len(sys.argv) == 3:
    main(*sys.argv[1:])
