# Describes the public functions and classes that a tool file defines.
import inspect


def describe(names):
    found = []
    for name in names:
        f = globals().get(name)
        if name.startswith("_") or not callable(f) or getattr(f, "__module__", None) != __name__:
            continue

        try:
            signature = name + str(inspect.signature(f))
        except (TypeError, ValueError):
            signature = name + "(...)"
        if inspect.iscoroutinefunction(f):
            signature = "await " + signature

        summary = (inspect.getdoc(f) or "").split("\n\n")[0]
        found.append({"name": name, "signature": signature, "doc": summary})

    return found
