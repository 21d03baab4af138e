"""Freeze the standard library into one C file and one blob beside it.

usage: freeze.py LIB SYSCONFIGDATA OUTDIR

LIB is the source tree's Lib directory, SYSCONFIGDATA the _sysconfigdata module
of the WebAssembly build. Run it with the native build of the very same CPython
(the marshal format is the version's own), with PYTHONHASHSEED=0 and with
-X no_debug_ranges (they mark columns of source lines that nobody has).
"""

import _imp
import marshal
import pathlib
import re
import sys

# What cannot work without files, sockets, threads, processes or a terminal, what
# only stands in for a C module that is there, and what is no use to a snippet.
# Names of top-level modules.
DROPPED = frozenset("""
    __phello__ _aix_support _android_support _apple_support _ios_support
    _osx_support _py_abc _pydatetime _pydecimal _pyio _pyrepl antigravity bz2
    cProfile compileall ctypes curses dbm ensurepip ftplib getpass idlelib
    imaplib lib2to3 lzma mailbox modulefinder msilib multiprocessing netrc
    nntplib nturl2path pickletools poplib profile pstats pty py_compile pyclbr
    pydoc pydoc_data site-packages smtplib sqlite3 ssl telnetlib test this
    tkinter trace tty turtle turtledemo venv webbrowser wsgiref xmlrpc zipapp
""".split())

# The same inside packages that stay.
DROPPED_SUBMODULES = frozenset("""
    asyncio.proactor_events asyncio.windows_events asyncio.windows_utils
    concurrent.futures.process
    encodings.mbcs encodings.oem
    http.server
""".split())

# Every CPython has these frozen already.
BUILT_IN = frozenset(_imp._frozen_module_names())

TEST_DIRS = frozenset({"test", "tests", "idle_test", "__pycache__"})


def module_name(path, lib):
    """Return the dotted name of the module in path, and if it is a package."""
    parts = list(path.relative_to(lib).with_suffix("").parts)
    is_package = parts[-1] == "__init__"
    if is_package:
        parts.pop()
    return ".".join(parts), is_package


def wanted(path, lib):
    parts = path.relative_to(lib).with_suffix("").parts
    if parts[0] in DROPPED or TEST_DIRS.intersection(parts[:-1]):
        return False
    return ".".join(parts) not in DROPPED_SUBMODULES


def library(lib):
    """Yield (name, is_package, source) of every module to freeze, sorted."""
    for path in sorted(lib.rglob("*.py")):
        name, is_package = module_name(path, lib)
        if wanted(path, lib) and name not in BUILT_IN:
            yield name, is_package, path.read_bytes()


def build_variables(path):
    """Return the source of a _sysconfigdata that says nothing of the machine.

    The original is full of the build's directories and the builder's tools.
    Nothing can be built in the sandbox, so that every string with a path in it
    can go; what is left is written one to a line, for how the original is
    wrapped depends on the length of those paths.
    """
    namespace = {}
    exec(compile(path.read_bytes(), path.name, "exec"), namespace)
    variables = {
        key: value
        for key, value in sorted(namespace["build_time_vars"].items())
        if not (isinstance(value, str) and "/" in value)
    }
    lines = [f" {key!r}: {value!r},\n" for key, value in variables.items()]
    return ("build_time_vars = {\n" + "".join(lines) + "}\n").encode()


def freeze(name, source):
    """Return the marshalled code of a module.

    Marshal marks as shared what has more than one reference, which depends on
    what else this process holds; a round trip leaves only the code's own.
    """
    code = compile(source, f"<frozen {name}>", "exec", dont_inherit=True, optimize=0)
    return marshal.dumps(marshal.loads(marshal.dumps(code)))


def c_table(entries):
    """Return the C source of the table, given (name, is_package, offset, size)."""
    rows = "".join(
        f'    {{"{name}", blob + {offset}, {size}, {int(is_package)}}},\n'
        for name, is_package, offset, size in entries
    )
    return (
        "/* Made by freeze.py. */\n"
        "#include <Python.h>\n\n"
        "static const unsigned char blob[] = {\n"
        '#embed "frozen.bin"\n'
        "};\n\n"
        "const struct _frozen stdlib_frozen[] = {\n"
        f"{rows}"
        "    {0, 0, 0, 0},\n"
        "};\n"
    )


def main(lib, sysconfigdata, outdir):
    modules = list(library(lib))
    modules.append((sysconfigdata.stem, False, build_variables(sysconfigdata)))
    blob, entries = bytearray(), []
    for name, is_package, source in modules:
        if not re.fullmatch(r"[\w.-]+", name):
            raise SystemExit(f"freeze: cannot freeze a module called {name!r}")
        marshalled = freeze(name, source)
        entries.append((name, is_package, len(blob), len(marshalled)))
        blob += marshalled
    outdir.joinpath("frozen.bin").write_bytes(blob)
    outdir.joinpath("frozen.c").write_text(c_table(entries))
    print(f"froze {len(entries)} modules, {len(blob)} bytes")


if __name__ == "__main__":
    if len(sys.argv) != 4:
        raise SystemExit(__doc__)
    if "no_debug_ranges" not in sys._xoptions:
        raise SystemExit("freeze: run me with -X no_debug_ranges")
    main(*map(pathlib.Path, sys.argv[1:]))
