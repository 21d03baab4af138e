"""Tells code from prose in what a model wrote without a fence."""

import ast
import builtins
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
    return any(map(_acts, tree.body))


def _acts(statement):
    if isinstance(statement, ast.AnnAssign):
        return statement.value is not None
    if not isinstance(statement, ast.Expr):
        return isinstance(statement, _ACTS)
    if isinstance(statement.value, ast.Call) and _root(statement.value) in _ANSWERS:
        return False  # an answer in text, which the host reads
    return any(isinstance(node, ast.Call) and _is_known(_root(node)) for node in ast.walk(statement))


def _root(node):
    """Returns the name that an expression begins with, None if it begins with another thing."""
    while isinstance(node, (ast.Call, ast.Attribute, ast.Subscript)):
        node = node.func if isinstance(node, ast.Call) else node.value
    return node.id if isinstance(node, ast.Name) else None


def _is_known(name):
    return name is not None and (name in finish.namespace or hasattr(builtins, name))
