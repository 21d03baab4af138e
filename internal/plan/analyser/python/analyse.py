"""Finds out what a snippet needs, from CPython's own syntax tree.

One pass over the tree with a stack instead of recursion. The loop in _Walk.run
knows the few kinds of node that make up nine tenths of a tree and keeps what it
uses in local variables: it decides how fast routing is. The other kinds have a
function each, in KINDS. A tuple on the stack is a task, (function, a, b), done
when all that was pushed after it has been looked at: the end of a scope, say.
"""

import json
import traceback
from ast import (
    AST, Assign, AsyncFunctionDef, Attribute, BinOp, Call, ClassDef, Constant, Div, Expr,
    FunctionDef, JoinedStr, Name, PyCF_ALLOW_TOP_LEVEL_AWAIT, PyCF_ONLY_AST, Starred, Tuple, Yield,
)
from builtins import compile as parse

FILE = "<snippet>"
NoneType = type(None)
REMOTE = ("http://", "https://", "s3://", "ftp://")
OUT = "/out"  # tiers.OutFolder
LONG_LOOP = 1_000_000  # rounds; shorter ones take no time that counts
WORTH_SAYING = 1_000_000  # nanoseconds
FLAGS = PyCF_ONLY_AST | PyCF_ALLOW_TOP_LEVEL_AWAIT
IMPORTS = (ast.Import, ast.ImportFrom)
LEAVING = frozenset((ast.Return, ast.Raise, ast.Break, ast.Continue))
# An import that is made in two ways counts as the more certain one.
STRONGER = {"": (), "unlikely": ("",), "guarded": ("", "unlikely")}
# What may stand for something: see _Walk.path.
TELLING = frozenset((Name, Attribute, Call, BinOp, Constant, JoinedStr))
# The parser's only two contexts of names that are read and bound.
LOAD, STORE = (n.ctx for n in ast.walk(ast.parse("a\na = 1")) if isinstance(n, Name))


def analyse(source):
    """A router.Verdict, as its JSON."""
    if source.startswith("\ufeff"):
        source = source[1:]
    try:
        tree = parse(source, FILE, "exec", FLAGS, dont_inherit=True)
        walk = _Walk()
        walk.run(tree)
        if walk.doubtful or "__debug__" in source:
            try:
                parse(source, FILE, "exec", PyCF_ALLOW_TOP_LEVEL_AWAIT, dont_inherit=True)
            except RecursionError:
                pass  # too deep to compile: that is the tier's to say
        needs = walk.needs()
        if OUT in source and writes_below_out(tree):
            ask_for_out(needs)
        if walk.may_compute(source):
            nanoseconds, line = effort(tree)
            if nanoseconds >= WORTH_SAYING:
                needs["computes_ns"], needs["computes_line"] = nanoseconds, line
        return {"Needs": needs}
    except SyntaxError as error:
        return {"Invalid": _invalid(error, source)}
    except UnicodeEncodeError:
        return {"Invalid": _invalid(_not_utf8(source), source)}
    except (MemoryError, RecursionError) as error:
        kind = type(error).__name__
        return {"Unknown": f"it is too large or nested too deeply to analyse ({kind})"}
    except (ValueError, OverflowError) as error:
        return {"Unknown": f"its syntax tree cannot be made: {error}"}


def _not_utf8(source):
    """Returns the error that the tiers' runtime reports for bytes that are not UTF-8."""
    at = next(i for i, char in enumerate(source) if "\ud800" <= char <= "\udfff")
    line = source.count("\n", 0, at) + 1
    byte = ord(source[at]) & 0xFF
    return SyntaxError(f"Non-UTF-8 code starting with '\\x{byte:02x}' on line {line}")


def _invalid(error, source):
    if error.text is None and error.lineno and error.filename == FILE:
        lines = source.replace("\r\n", "\n").replace("\r", "\n").split("\n")
        if error.lineno <= len(lines) and (lines[-1] or error.lineno < len(lines)):
            error.text = lines[error.lineno - 1] + "\n"
    trace = "".join(traceback.TracebackException(type(error), error, None).format())
    return {"Type": type(error).__name__, "Message": str(error), "Traceback": trace}


class _Walk:
    """The findings of one pass, and its current scope."""

    def __init__(self):
        self.stack = []
        self.imports, self.features = {}, {}
        self.bound = {}  # names of this scope, as far as they are bound already
        self.reads = {}  # names read in this scope that were not bound then
        self.calls = {}  # names called in this scope
        self.names = IMPLIED  # name -> what it stands for: a dotted path, or a _Later
        self.declared = ()  # nonlocal names of this scope, and whether they are global
        self.kind = None  # the node whose scope this is, None for the module
        self.loops = self.guards = self.lambdas = 0
        self.unbound, self.deletes, self.defines, self.written = {}, {}, {}, {}
        self.methods = None  # a _Later of the methods of a class, until its end
        self.later = None  # the _Later of the function that the walk is in, None outside
        self.unreached = 0  # how many blocks are around that never run
        self.unlikely = 0  # how many that seldom run: see router.Import
        self.comprehensions = False  # whether there was one
        self.doubtful = False  # whether only the compiler can say that this is valid
        self.rounds = 1  # the constant bounds of all ranges, multiplied
        self.large = False  # whether another bound of a range may be large

    def run(self, tree):
        """Visits the whole tree."""
        stack = self.stack
        pop, push = stack.pop, stack.append
        _block(self, tree.body)
        bound, reads, calls, names = self.bound, self.reads, self.calls, self.names
        while stack:
            node = pop()
            kind = node.__class__
            if kind is Expr:
                node = node.value
                kind = node.__class__
            if kind is Call:
                func = node.func
                for arg in node.args:
                    if arg.__class__ is not Constant:
                        push(arg.value if arg.__class__ is Starred else arg)
                if node.keywords:
                    self.keywords(node.keywords)
                kind = func.__class__
                if kind is Name:
                    calls[func.id] = None
                    if func.id in names:
                        self.call(node)
                elif kind is Attribute and func.attr in HOT:
                    self.call(node)
                node = func
            while kind is Attribute:
                if node.attr in HOT:
                    self.attribute(node)
                node = node.value
                kind = node.__class__
            if kind is Name:
                name = node.id
                if node.ctx is LOAD:
                    if name not in bound:
                        reads[name] = None
                    if name in names:
                        self.name(node, name)
                        names = self.names
                elif node.ctx is STORE:
                    bound[name] = None
                    if name in names:
                        names = self.forget(name)
                else:
                    self.delete(name)
                    names = self.names
            elif kind is Constant or kind is NoneType:
                continue
            elif kind is list:
                stack += node[::-1]
            elif kind is Assign:
                value, targets = node.value, node.targets
                if len(targets) == 1:
                    targets = targets[0]
                    if value.__class__ in TELLING and targets.__class__ is Name:
                        self.alias(targets.id, value)
                push(targets)
                push(value)
            elif kind in MANY:
                stack += MANY[kind](node)
            elif kind in ONE:
                push(ONE[kind](node))
            elif kind is Call:
                push(node)
            else:
                if kind is tuple:
                    node[0](self, node[1], node[2])
                else:
                    KINDS.get(kind, _other)(self, node)
                bound, reads, calls, names = self.bound, self.reads, self.calls, self.names

    def alias(self, name, value):
        """Notes that a name will be bound to a value that may stand for a module or function."""
        path = self.path(value)
        if value.__class__ is Constant and value.value.__class__ is bool:
            path = "True" if value.value else "False"
            if name == "TYPE_CHECKING" and not value.value:
                path = IMPLIED[name]  # the idiom without an import of typing
        text = path == "str" and value.__class__ is Constant
        if path is not None and (not text or _like_path(value.value)):
            self.stack.append((_Walk.bind, name, path))

    def keywords(self, keywords):
        """The keyword arguments of a call."""
        self.stack += [k.value for k in keywords]
        if len(keywords) > 1 and len({k.arg or k for k in keywords}) < len(keywords):
            self.doubtful = True  # an argument named twice

    # --- names ---

    def name(self, node, name):
        """Notes that a name is read that stands for a module or function."""
        path = self.names[name]
        if path.__class__ is _Later:
            self.use(name)
        elif path in FEATURES and name != "open":
            self.need(FEATURES[path], path, node)

    def use(self, name, runs=True):
        """Notes that a function is mentioned: from now on it may run, and read names. Without
        runs, a later snippet may do so."""
        if self.kind is None:
            later = self.names[name]
            self.forget(name)
            if runs:
                later.add_needs(self.imports, self.features)
            for read in later.reads:
                if read not in self.bound:
                    self.reads[read] = None
                if self.names.get(read).__class__ is _Later:
                    self.use(read, runs)

    def forget(self, name):
        """A name that stands for something is bound anew. The names of an outer
        scope stay as they are."""
        self.names = names = dict(self.names)
        del names[name]
        return names

    def bind(self, name, path=None):
        """Binds a name to the result of path."""
        self.bound[name] = None
        if path is not None:
            self.names = {**self.names, name: path}
        elif name in self.names:
            self.forget(name)

    def delete(self, name):
        """Handles a del statement."""
        if self.kind is None:
            self.deletes[name] = None
            if self.bound.pop(name, self) is None:
                self.unbound[name] = None
            else:
                self.reads[name] = None
        if name in self.names:
            self.forget(name)

    # --- features ---

    def need(self, feature, why, node):
        """Notes a feature and where it was seen."""
        self.need_at(feature, why, node.lineno)

    def need_at(self, feature, why, line):
        """Notes a feature, as one of the function around if it needs it only when it is called."""
        if not self.unreached or feature not in DEFERRED:
            here = self if self.later is None or feature not in DEFERRED else self.later
            here.features.setdefault((feature, why), line)

    def path(self, node):
        """Returns the dotted path that an expression stands for, if it is known."""
        kind = node.__class__
        if kind is Name:
            path = self.names.get(node.id)
            return path if path.__class__ is str else None
        if kind is Attribute:
            base = self.path(node.value)
            return base and ATTRIBUTES.get(f"{base}.{node.attr}", f"{base}.{node.attr}")
        if kind is Call:
            func = node.func
            if func.__class__ is Name:
                path = self.names.get(func.id, func.id)
            elif func.__class__ is Attribute and func.attr in RESULTING:
                path = self.path(func)
            else:
                return None
            if path.__class__ is str and CALLED.get(path) == "import" and node.args:
                name = _text(node.args[0])
                if isinstance(name, str):
                    whole = len(node.args) == 1 and path != "__import__"
                    return name if whole else name.partition(".")[0]
            return RESULTS.get(path)
        if kind is BinOp:
            left = self.path(node.left)
            if node.op.__class__ is Div:
                return "Path" if left == "Path" or self.path(node.right) == "Path" else None
            return "str" if left == "str" else self.path(node.right)
        if kind is JoinedStr or kind is Constant and node.value.__class__ is str:
            return "str"
        return None

    def attribute(self, node):
        """Handles an attribute with the name of a function of interest."""
        path = self.path(node)
        if path in FEATURES:
            self.need(FEATURES[path], path, node)

    def call(self, node):
        """Handles a call that may be of interest."""
        path = self.path(node.func)
        if path in CALLED:
            CALLS[CALLED[path]](self, node, path)
        elif path in OPENERS:
            at = OPENERS[path]
            if len(node.args) > at:
                text = _text(node.args[at])
                if isinstance(text, str) and text.startswith(REMOTE):
                    self.need("sockets", path, node)
                elif text not in (":memory:", "") and self.path(node.args[at]) in ("str", "Path"):
                    self.need("files", path, node)
        elif node.func.__class__ is Attribute and node.func.attr in SAVERS:
            if node.args and self.path(node.args[0]) in ("str", "Path"):
                self.need("files", node.func.attr, node)

    def imported(self, module, line):
        """Notes an import."""
        if self.unreached:
            return
        here = self if self.later is None else self.later
        kind = "guarded" if self.guards else "unlikely" if self.unlikely else ""
        here.imports.setdefault((module, kind), line)
        if not kind and module in IMPORTED:
            self.need_at(IMPORTED[module], "import " + module, line)

    # --- the answer ---

    def may_compute(self, source):
        """Reports whether the snippet may compute for long; most do not."""
        return (self.rounds >= LONG_LOOP or self.large and LARGE_NUMBER.search(source)
                or any(call in source for call in LARGE_CALLS))

    def needs(self):
        """Returns router.Needs as JSON has it."""
        later = {name: value for name, value in self.names.items() if value.__class__ is _Later}
        for name in later:
            if name in self.names:
                self.use(name, runs=False)
        free = [name for name in self.reads if name not in BUILTINS]
        writes = [*self.bound, *(n for n in (*self.unbound, *self.written) if n not in self.bound)]
        return {
            "language": "python", **_listed(self.imports, self.features), "reads": free,
            "writes": list(dict.fromkeys(writes)), "deletes": list(self.deletes),
            "defines": list(self.defines),
            "calls": [
                n for n in self.calls
                if n not in BUILTINS and n not in self.bound and n not in self.unbound
            ],
            "later": _later_needs(later),
        }


class _Later:
    """What a function reads and needs when it is called."""

    __slots__ = ("reads", "imports", "features")

    def __init__(self):
        self.reads, self.imports, self.features = (), {}, {}

    def __bool__(self):
        return bool(self.reads or self.imports or self.features)

    def add_needs(self, imports, features):
        """Adds the needs to what there is already."""
        for key, line in self.imports.items():
            imports.setdefault(key, line)
        for key, line in self.features.items():
            features.setdefault(key, line)


def writes_below_out(tree):
    """Reports whether all absolute paths in a snippet lie below /out."""
    paths = [node.value for node in ast.walk(tree) if node.__class__ is Constant
             and node.value.__class__ is str and node.value[:1] == "/" and _like_path(node.value)]
    return bool(paths) and all(path == OUT or path.startswith(OUT + "/") for path in paths)


def ask_for_out(needs):
    """Asks for the folder /out instead of files. A tier that has no other files rejects the
    snippet if it opens one after all."""
    for part in (needs, *needs["later"].values()):
        for row in part["features"]:
            if row["feature"] == "files":
                row["feature"] = "out"


def _later_needs(later):
    """Returns what each function needs that no line of the snippet mentions, with what it
    calls in turn."""
    found = {}
    for name in later:
        imports, features, pending, seen = {}, {}, [name], set()
        while pending:
            at = pending.pop()
            if at in later and at not in seen:
                seen.add(at)
                later[at].add_needs(imports, features)
                pending += later[at].reads
        if imports or features:
            found[name] = _listed(imports, features)
    return found


def _listed(imports, features):
    """Returns imports and features as JSON has them."""
    rows = [{"feature": f, "why": why, "line": line} for (f, why), line in features.items()]
    rows.sort(key=_line)
    return {
        "imports": [
            {"module": module, "line": line, **({kind: True} if kind else {})}
            for (module, kind), line in imports.items()
            if not any((module, other) in imports for other in STRONGER[kind])
        ],
        "features": rows,
    }


def _like_path(text):
    return len(text) < 300 and ("/" in text or "." in text) and "\n" not in text


def _line(row):
    return row["line"]


def _text(node):
    return node.value if node.__class__ is Constant else None
