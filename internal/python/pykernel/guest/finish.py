"""How a snippet gives its answer: FINAL and its dialects."""

import answers
import artefacts
import wire


class Finished(SystemExit):
    """Ends the snippet. As a SystemExit it passes `except Exception` and, unlike
    other exceptions, leaves an event loop at once."""


done = False
namespace = None  # the snippets' globals, set by run


def _finish(value, name=""):
    global done
    if not done:
        kept = artefacts.answer(value)
        value = value if kept is None else kept[0]
        answer = answers.encode({"value": value, "name": name}, value)
        done = True
        wire.send("f", answer)
    raise Finished()


def FINAL(value=None, **fields):
    """FINAL(value): give the final answer and end the run."""
    _finish(fields if fields and value is None else value)


_MISSING = object()


def FINAL_VAR(name, value=_MISSING):
    """FINAL_VAR("name"): give the variable's value as the final answer.
    FINAL_VAR("name", value) names and gives a value."""
    if value is not _MISSING:
        if isinstance(name, str) and name.isidentifier():
            namespace[name] = value
        _finish(value, str(name))
    if not isinstance(name, str):
        _finish(name)
    key = name.strip().strip("\"'")
    if key in namespace and key not in hidden():
        _finish(namespace[key], key)
    raise NameError(f"FINAL_VAR: there is no variable {key!r}. {_listing()} Assign it first, then call FINAL_VAR again.")


def SUBMIT(*values, **fields):
    """SUBMIT(answer=...) or SUBMIT(value): give the final answer and end the run."""
    if not values and not fields:
        raise TypeError("SUBMIT() has no answer in it: SUBMIT(answer=value)")
    if not fields:
        _finish(values[0] if len(values) == 1 else list(values))
    _finish(fields)


def SHOW_VARS():
    """Print the names, types and sizes of your variables."""
    rows = [f"{name}: {_describe(namespace[name])}" for name in user_names()]
    print("\n".join(rows) if rows else "No variables yet.")


_SIZED = (str, bytes, bytearray, list, tuple, dict, set, frozenset)


def report():
    """Tells the host which variables there are. Lengths are of Python's own types
    alone: a snippet's class may do anything when it is asked."""
    rows = []
    try:
        for name in user_names():
            if len(name) <= 50 and len(rows) < 300:
                value = namespace[name]
                kind = type(value).__name__[:50]
                rows.append((name, f"{kind} ({len(value):,})" if type(value) in _SIZED else kind))
        if rows:
            wire.tell("v", rows)
    except Exception:
        pass  # a namespace with keys that are no names, a metaclass that bites: the host knows less


def _describe(value):
    kind = type(value).__name__
    try:
        return f"{kind} ({len(value):,})" if hasattr(type(value), "__len__") else kind
    except Exception:
        return kind


def _listing():
    names = list(user_names())
    return "Variables: " + ", ".join(names) + "." if names else "No variables yet."


def hidden():
    """Returns the names in the namespace that are not the user's."""
    return _hidden.union(name for name, f in initial.items() if callable(f) and namespace.get(name) is f)


_hidden = frozenset()


def user_names():
    """Names the snippets defined, in order, modules left out."""
    for name, value in list(namespace.items()):
        if type(name) is str and not name.startswith("_") and name not in _hidden and not (
            type(value).__name__ == "module" or initial.get(name, _MISSING) is value or _is_import(name, value)
        ):
            yield name


def _is_import(name, value):
    """Reports whether a name that was there from the beginning has another import of that
    name: `from datetime import datetime`."""
    return name in initial and type(value) is type and value.__name__ == name and value.__module__ != "__main__"


initial = {}  # what the namespace held before the first snippet


def check_answer():
    """Ends the run if a snippet set answer["ready"]."""
    global done
    answer = namespace.get("answer")
    if not done and type(answer) is dict and answer.get("ready") is True:
        content = answer.get("content")
        encoded = answers.encode({"value": content, "name": "answer"}, content)
        done = True
        wire.send("f", encoded)
