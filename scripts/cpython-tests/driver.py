"""Runs one module of CPython's own tests inside the sandbox.

The snippet before this one sets `module`, such as "test_json". `context` is the
source tree's Lib directory. It is mounted, read-only, where frozen modules say
that they come from: what the sandbox lacks (test, test.support, pure Python
twins such as _pydecimal) is imported from there, and tests open their data
files there. No test is left out here, and no test is changed.

The result is text in FINAL, lines of tab-separated fields that begin with "@":

    @result  module  run  skipped  failed  seconds
    @fail    id  cause
    @note    what would have kept the module from loading
    @skip    reason  how many tests

Each test's id goes to stderr as it starts (@start), and what fails at once, so
that little is lost in a crash.
"""

import builtins
import collections
import contextlib
import errno
import glob
import importlib.abc
import importlib.util
import inspect
import io
import os
import random
import re
import stat
import sys
import time
import tokenize
import traceback
import types
import unittest

ROOT = sys._stdlib_dir
RESOURCES = ("cpu", "decimal", "walltime")  # as regrtest's -u


# ---- the directory as files -------------------------------------------------------


class Tree:
    """The context as read-only files under ROOT."""

    def __init__(self, texts):
        self.texts = texts
        self.sizes = texts.sizes()
        self.folders = collections.defaultdict(set)
        for path in self.sizes:
            while path:
                path, _, name = path.rpartition("/")
                self.folders[path].add(name)

    def locate(self, path):
        """The path below ROOT, or None for what is elsewhere."""
        if not isinstance(path, (str, bytes, os.PathLike)):
            return None  # a file descriptor
        path = os.path.normpath(os.path.join("/", os.fsdecode(path)))
        if path == ROOT:
            return ""
        return path[len(ROOT) + 1:] if path.startswith(ROOT + "/") else None

    def read(self, place):
        return bytes(self.texts[place].bytes)  # also of a file that is not text

    def open(self, place, mode="r", buffering=-1, encoding=None, errors=None, newline=None, *rest, **more):
        path = f"{ROOT}/{place}"
        if set(mode) & set("wax+"):
            raise OSError(errno.EROFS, os.strerror(errno.EROFS), path)
        if place in self.folders:
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), path)
        if place not in self.sizes:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
        data = io.BytesIO(self.read(place))
        data.name = path
        if "b" in mode:
            return data
        return io.TextIOWrapper(data, encoding, errors, newline)

    def stat(self, place, **_):
        if place in self.folders:
            return os.stat_result((stat.S_IFDIR | 0o555, 0, 0, 1, 0, 0, 0, 0, 0, 0))
        if place in self.sizes:
            return os.stat_result((stat.S_IFREG | 0o444, 0, 0, 1, 0, 0, self.sizes[place], 0, 0, 0))
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), f"{ROOT}/{place}")

    def listdir(self, place):
        if place not in self.folders:
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), f"{ROOT}/{place}")
        return sorted(self.folders[place])

    @contextlib.contextmanager
    def scandir(self, place):
        yield iter([Entry(self, place, name) for name in self.listdir(place)])

    def mount(self):
        """Lets open and os know of the tree; all other paths go where they went."""
        builtins.open = io.open = tokenize._builtin_open = Instead(io.open, self, self.open)
        os.stat = Instead(os.stat, self, self.stat)
        os.lstat = Instead(os.lstat, self, self.stat)
        os.listdir = Instead(os.listdir, self, self.listdir)
        os.scandir = Instead(os.scandir, self, self.scandir)
        glob._StringGlobber.lstat = staticmethod(os.lstat)
        glob._StringGlobber.scandir = staticmethod(os.scandir)
        sys.meta_path.append(Finder(self))


class Entry:
    """What os.scandir gives, for a Tree."""

    def __init__(self, tree, folder, name):
        self.tree, self.name = tree, name
        self.place = f"{folder}/{name}" if folder else name
        self.path = f"{ROOT}/{self.place}"

    def __fspath__(self):
        return self.path

    def is_dir(self, *, follow_symlinks=True):
        return self.place in self.tree.folders

    def is_file(self, *, follow_symlinks=True):
        return self.place in self.tree.sizes

    def is_symlink(self):
        return False

    def stat(self, *, follow_symlinks=True):
        return self.tree.stat(self.place)


class Instead:
    """A function of files that asks a Tree for what is below ROOT. Like the
    functions it stands for, it is no method when it is found in a class."""

    def __init__(self, stock, tree, ours):
        self.stock, self.tree, self.ours = stock, tree, ours
        self.__name__ = self.__qualname__ = stock.__name__
        self.__module__, self.__doc__ = stock.__module__, stock.__doc__
        self.__signature__ = inspect.signature(stock)

    def __call__(self, *args, **kwargs):
        place = self.tree.locate(args[0]) if args else None
        if place is None:
            return self.stock(*args, **kwargs)
        return self.ours(place, *args[1:], **kwargs)


class Finder(importlib.abc.MetaPathFinder):
    """Finds in a Tree what is neither built in nor frozen."""

    def __init__(self, tree):
        self.tree = tree

    def find_spec(self, name, path=None, target=None):
        stem = name.replace(".", "/")
        for place in (stem + "/__init__.py", stem + ".py"):
            if place in self.tree.sizes:
                path = f"{ROOT}/{place}"
                return importlib.util.spec_from_file_location(name, path, loader=Loader(self.tree, name, path))
        if stem in self.tree.folders:
            spec = importlib.machinery.ModuleSpec(name, None, is_package=True)
            spec.submodule_search_locations = [f"{ROOT}/{stem}"]
            return spec


class Loader(importlib.abc.InspectLoader):
    """Loads a module from a Tree."""

    def __init__(self, tree, name, path):
        self.tree, self.name, self.path = tree, name, path

    def is_package(self, name):
        return self.path.endswith("/__init__.py")

    def get_filename(self, name=None):
        return self.path

    def get_data(self, path):
        with self.tree.open(self.tree.locate(path), "rb") as file:
            return file.read()

    def get_source(self, name=None):
        return importlib.util.decode_source(self.get_data(self.path))

    def get_code(self, name=None):
        return compile(self.get_data(self.path), self.path, "exec", dont_inherit=True)


# ---- running and counting ---------------------------------------------------------


def identify(test):
    """A test's id without its module's name and without what follows it for a
    subtest; of a class's fixture, Class.setUpClass."""
    if isinstance(test, unittest.case._SubTest):
        test = test.test_case
    name = test.id()
    name = name.removeprefix("unittest.loader._FailedTest.").removeprefix(f"test.{module}.")
    fixture = re.fullmatch(r"(\w+) \((.*)\)", name)
    if fixture:
        name = f"{fixture[2].removeprefix(f'test.{module}.')}.{fixture[1]}"
    return name


def cause(error):
    """One line: the exception, and where it left the test's code."""
    kind, value, trace = error
    if kind is unittest.TestCase.failureException or not traceback.extract_tb(trace):
        where = ""
    else:
        frames = traceback.extract_tb(trace)
        last = next((f for f in reversed(frames) if f.filename.startswith(ROOT)), frames[-1])
        where = f" ({os.path.basename(last.filename)}:{last.lineno})"
    try:
        message = str(value)
    except Exception:
        message = "?"
    text = " ".join(f"{kind.__name__}: {message}".split())
    return (text if len(text) <= 240 else text[:120] + " ... " + text[-115:]) + where


class Result(unittest.TestResult):
    """Counts each test once, however many of its subtests fail."""

    def __init__(self, *args, **kwargs):
        super().__init__()
        self.causes = {}
        self.notes = []
        self.reasons = collections.Counter()
        self.running = None
        self.ran = 0

    def startTest(self, test):
        super().startTest(test)
        self.running = identify(test)
        self.ran += 1
        log.write(row("start", self.running))

    def stopTest(self, test):
        super().stopTest(test)
        self.running = None

    def fail(self, test, text):
        name = identify(test)
        if name not in self.causes:
            self.causes[name] = text
            log.write(row("fail", name, text))

    def addError(self, test, error):
        log.write("".join(traceback.format_exception(*error)))
        self.fail(test, cause(error))

    addFailure = addError

    def addSubTest(self, test, subtest, error):
        if error is not None:
            self.addError(test, error)

    def addSkip(self, test, reason):
        self.reasons[" ".join(str(reason).split())] += 1
        if self.running and not isinstance(test, unittest.case._SubTest):
            self.ran -= 1

    def addUnexpectedSuccess(self, test):
        self.fail(test, "passes, though CPython says that it fails")

    def wasSuccessful(self):
        return not self.causes


def import_anyhow(name, result):
    """Imports a module of tests. One that would be skipped as a whole, because a
    few of its tests need what WebAssembly lacks, is made to run: those few shall
    fail by themselves."""
    # What CPython finds out by writing a file.
    os_helper._can_chmod = os_helper._can_dac_override = False
    while True:
        try:
            return importlib.import_module(name)
        except (unittest.SkipTest, ImportError, AttributeError) as error:
            if not remove_obstacle(str(error)):
                raise
            result.notes.append(str(error))


def remove_obstacle(text):
    """Whether something could be done about what keeps a module from loading.
    A C module that is made for tests alone becomes one with nothing in it."""
    if "requires socket" in text and not support.has_socket_support:
        support.has_socket_support = True
    elif "requires subprocess" in text and not support.has_subprocess_support:
        support.has_subprocess_support = True
    elif found := re.search(r"cannot import name .(\w+). from .(_test\w+)", text):
        setattr(sys.modules[found[2]], found[1], absent)
    elif found := re.search(r"\b_test[a-z]+\b", text):
        if found[0] in sys.modules:
            return False
        sys.modules[found[0]] = stub = types.ModuleType(found[0])
        stub.get_config = lambda: {"code_debug_ranges": True}
        stub.get_immortalize_deferred = lambda: True
    else:
        return False
    return True


def absent(*args, **kwargs):
    raise AttributeError("a function of a C module that is made for tests")


def run_module(name, result):
    """As regrtest does."""
    support.verbose = 0
    support.use_resources = RESOURCES
    support.record_original_stdout(sys.stdout)
    tests = import_anyhow(f"test.{name}", result)
    random.seed(1)
    loader = unittest.TestLoader()
    suite = loader.loadTestsFromModule(tests)
    for text in loader.errors:
        log.write(text)
        result.causes["(import)"] = "cannot load: " + text.strip().splitlines()[-1]
    unittest.TextTestRunner(io.StringIO(), resultclass=lambda *_, **__: result).run(suite)


def main():
    started, result = time.monotonic(), Result()
    stdout, stderr = sys.stdout, sys.stderr
    try:
        run_module(module, result)
    except unittest.SkipTest as skip:
        result.reasons[f"the whole module: {skip}"] += 1
    except BaseException as error:
        log.write(traceback.format_exc())
        result.causes[result.running or "(import)"] = cause((type(error), error, error.__traceback__))
    sys.stdout, sys.stderr = stdout, stderr
    seconds = time.monotonic() - started
    skipped = sum(result.reasons.values())
    rows = [("result", module, result.ran, skipped, len(result.causes), f"{seconds:.0f}")]
    rows += [("fail", *item) for item in result.causes.items()]
    rows += [("note", text) for text in result.notes]
    rows += [("skip", *item) for item in result.reasons.most_common()]
    return "\n" + "".join(row(*fields) for fields in rows)


def row(*fields):
    fields = (str(f).encode("ascii", "backslashreplace").decode() for f in fields)
    return "@" + "\t".join(" ".join(f.split()) for f in fields) + "\n"


log = sys.stderr
Tree(context).mount()
from test import support
from test.support import os_helper

report = main()
FINAL(report)
