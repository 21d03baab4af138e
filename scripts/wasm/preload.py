# Runs once, while the memory image is made: imports what snippets import, so
# that no sandbox ever has to, and touches what is set up on first use. Names
# bound here are gone afterwards; only sys.modules stays.

import importlib

MODULES = """
    __future__ abc array ast asyncio base64 binascii bisect builtins calendar
    cmath codecs codeop collections collections.abc concurrent.futures
    concurrent.futures.thread contextlib contextvars copy copyreg csv
    dataclasses datetime decimal difflib encodings.ascii encodings.latin_1
    encodings.utf_8 enum errno fractions functools gc hashlib heapq html
    importlib inspect io itertools json keyword linecache locale math numbers
    operator os pprint random re reprlib statistics string struct sys textwrap
    threading time token tokenize traceback types typing unicodedata
    urllib.parse uuid warnings weakref zlib
""".split()


def use_compiler():
    """The parser, the AST types and the symbol table are made when first used."""
    import ast

    source = (
        "from math import pi\n"
        "@str\n"
        "class C:\n"
        "    x: int = 1\n"
        "    async def f(self, *a, k=1, **kw):\n"
        "        async with a as b: return await b\n"
        "def g(n):\n"
        "    'doc'\n"
        "    try:\n"
        "        for i in range(n): yield f'{i!r:>{n}}'\n"
        "    except* ValueError as e: raise RuntimeError from e\n"
        "    finally: pass\n"
        "x = [i for i in {1: 2, **{}} if i] or {*()} or (lambda a: a)(1)\n"
        "match x:\n"
        "    case [1, *_] | {'a': 1}: pass\n"
        "y = a[1:2, ...] if (z := 1) else -1 ** 2\n"
    )
    tree = ast.parse(source)
    ast.unparse(tree)
    compile(ast.fix_missing_locations(tree), "<preload>", "exec")
    compile("await x", "<preload>", "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)


def use_library():
    """The first use of these sets up codecs, tables and caches."""
    import codecs
    import datetime
    import decimal
    import json
    import traceback

    for name in ("ascii", "utf-8", "latin-1"):
        codecs.lookup(name)
        "a".encode(name).decode(name)
    for handler in ("strict", "ignore", "replace", "backslashreplace",
                    "surrogateescape", "surrogatepass"):
        codecs.lookup_error(handler)
    json.loads(json.dumps({"a": [1, 2.5, None, "\u00e9"]}, indent=1))
    datetime.datetime.strptime("2024-01-02", "%Y-%m-%d").strftime("%c")
    str(decimal.Decimal(1) / 3)
    try:
        raise ValueError("preload")
    except ValueError:
        traceback.format_exc()


def clear_caches():
    """What the preload itself left behind would only be ballast."""
    import linecache
    import re

    re.purge()
    linecache.clearcache()


for name in MODULES:
    importlib.import_module(name)
use_compiler()
use_library()
clear_caches()
