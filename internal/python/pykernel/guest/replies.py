"""Tells code from prose in what a model wrote without a fence."""

import ast
import builtins
import types
from builtins import compile as parse

import finish

_ANSWERS = ("FINAL", "FINAL_VAR", "SUBMIT")
_ACTS = tuple(getattr(ast, name) for name in (
    "Assign", "AugAssign", "Import", "ImportFrom", "FunctionDef", "AsyncFunctionDef", "ClassDef", "For", "AsyncFor",
    "While", "If", "With", "AsyncWith", "Try", "TryStar", "Match", "Delete",
) if hasattr(ast, name))


def find_code(texts):
    """Returns the index of the first text that is code, -1 if none is."""
    return next((i for i, text in enumerate(texts) if _is_code(text)), -1)


def _is_code(text):
    """Reports whether a text is Python that does something. Words may be Python, too:
    `Answer: Paris` and `Paris (France)` are."""
    try:
        tree = parse(text, "<reply>", "exec", ast.PyCF_ONLY_AST | ast.PyCF_ALLOW_TOP_LEVEL_AWAIT, dont_inherit=True)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return any(map(_acts, tree.body)) and not any(map(_is_label, tree.body))


def _acts(statement):
    if isinstance(statement, ast.AnnAssign):
        return statement.value is not None
    if not isinstance(statement, ast.Expr):
        return isinstance(statement, _ACTS)
    calls = [_root(node) for node in ast.walk(statement) if isinstance(node, ast.Call)]
    # An answer is text, which the host reads, also behind the mark of a list.
    return any(map(_is_known, calls)) and not any(name in _ANSWERS for name in calls)


def _is_label(statement):
    """Reports whether words that are Python set a name behind a label: `Result: n = 5`. Python
    takes the name for a type, and sets another."""
    if not isinstance(statement, ast.AnnAssign) or isinstance(statement.annotation, ast.Constant):
        return False
    name = _root(statement.annotation)
    kind = finish.namespace.get(name, getattr(builtins, name or "", type))
    return not isinstance(kind, (type, types.ModuleType, types.GenericAlias)) and type(kind).__module__ != "typing"


def _root(node):
    """Returns the name that an expression begins with, None if it begins with another thing."""
    while isinstance(node, (ast.Call, ast.Attribute, ast.Subscript)):
        node = node.func if isinstance(node, ast.Call) else node.value
    return node.id if isinstance(node, ast.Name) else None


def _is_known(name):
    return name is not None and (name in finish.namespace or hasattr(builtins, name))
