"""Conditions that are known without running anything: what they exclude is not needed."""

import operator
import sys

UNKNOWN, NEVER = (None, True), (False, True)
COMPARES = {
    ast.Lt: operator.lt, ast.LtE: operator.le, ast.Gt: operator.gt, ast.GtE: operator.ge,
    ast.Eq: operator.eq, ast.NotEq: operator.ne, ast.In: lambda a, b: a in b,
    ast.NotIn: lambda a, b: a not in b,
}
# What each of these is in one tier or another: wasm, or Linux.
PLACES = {"sys.platform": ("wasi", "linux"), "os.name": ("posix",), "platform.system": ("wasi", "Linux")}
# The Python of wasm and docker, and those that tier local may have.
VERSIONS = tuple(
    {"sys.version_info": v, "sys.version_info.major": v[0], "sys.version_info.minor": v[1]}
    for v in (tuple(sys.version_info), *((3, minor, 0, "final", 0) for minor in range(9, 30)))
)


def truth(walk, test):
    """Returns whether a condition holds, None if only a run can tell, and whether that is
    sure: a name may be bound again, and another tier may have another version of Python."""
    rule = TRUTHS.get(test.__class__)
    return rule(walk, test) if rule else UNKNOWN


def _of_constant(walk, test):
    return bool(test.value), True


def _of_name(walk, test):
    path = walk.path(test)
    if path in ("typing.TYPE_CHECKING", "typing_extensions.TYPE_CHECKING"):
        return NEVER
    return (path == "True", False) if path in ("True", "False") else UNKNOWN


def _of_not(walk, test):
    holds, sure = truth(walk, test.operand) if test.op.__class__ is ast.Not else UNKNOWN
    return (None if holds is None else not holds), sure


def _of_several(walk, test):
    """One that is false decides an `and`, one that is true an `or`."""
    decides = test.op.__class__ is ast.Or
    parts = [truth(walk, value) for value in test.values]
    deciding = [sure for holds, sure in parts if holds is decides]
    if deciding:
        return decides, any(deciding)
    if any(holds is None for holds, _ in parts):
        return UNKNOWN
    return not decides, all(sure for _, sure in parts)


def _of_compare(walk, test):
    compare = COMPARES.get(test.ops[0].__class__)
    if compare is None or len(test.ops) > 1:
        return UNKNOWN
    left, right = test.left, _literal(test.comparators[0])
    path = _path(walk, left.value if left.__class__ is ast.Subscript else left)
    if right is None or path not in PLACES and path not in VERSIONS[0]:
        return UNKNOWN
    part = _literal(left.slice) if left.__class__ is ast.Subscript else slice(None)
    values = PLACES.get(path) or [version[path] for version in VERSIONS]
    try:
        if left.__class__ is ast.Subscript:
            values = [value[part] for value in values]
        answers = [compare(value, right) for value in values]
    except (TypeError, IndexError):
        return UNKNOWN
    return _agreed(answers, path in PLACES)


def _agreed(answers, places):
    """Sums up what a condition is in several tiers. The version of most tiers is the first."""
    if len(set(answers)) == 1:
        return answers[0], True
    return UNKNOWN if places else (answers[0], False)


def _of_call(walk, test):
    func = test.func
    if func.__class__ is not Attribute or func.attr != "startswith" or len(test.args) != 1:
        return UNKNOWN
    places, start = PLACES.get(_path(walk, func.value)), _literal(test.args[0])
    if places is None or start.__class__ is not str:
        return UNKNOWN
    return _agreed([place.startswith(start) for place in places], True)


def _path(walk, node):
    """Returns the path of a name, or of a function that is called without arguments."""
    return walk.path(node.func if node.__class__ is Call and not node.args else node)


def _literal(node):
    """Returns the value of a literal, None if it is none that counts here."""
    if node.__class__ is Constant:
        return node.value
    if node.__class__ in (Tuple, ast.List, ast.Set):
        return tuple(_literal(part) for part in node.elts)
    if node.__class__ is ast.Slice:
        return slice(*(part and _literal(part) for part in (node.lower, node.upper, node.step)))
    return None


TRUTHS = {
    Constant: _of_constant, Name: _of_name, Attribute: _of_name, ast.UnaryOp: _of_not,
    ast.BoolOp: _of_several, ast.Compare: _of_compare, Call: _of_call,
}
