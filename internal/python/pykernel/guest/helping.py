"""help(): the page of a host function; pydoc's page of anything else, or a small one
where there is no pydoc."""

import builtins
import importlib
import inspect
import keyword

import hostcall

try:
    import pydoc
except ImportError:
    pydoc = None

_MOST = 60  # members of a class or module that are listed


def show(request):
    """Prints the help about a value, or about what a text names."""
    if isinstance(request, hostcall.HostFunction):
        print(_of_host_function(request))
    elif pydoc is not None:
        pydoc.help(request)
    else:
        print(_page(request))


def _of_host_function(function):
    text = inspect.cleandoc(function.__doc__ or "")
    if not text.startswith(function.__name__):  # the documentation of ours begins with the signature
        text = f"{function.__name__}(...)\n{_indent(text)}".rstrip()
    return f"Help on host function {function.__name__}:\n\n{text}\n"


def _page(request):
    if isinstance(request, str):
        found = _find(request)
        if found is None:
            return f"No Python documentation found for {request!r}. Pass the object itself, as in help(len)."
        request = found[0]
    name = getattr(request, "__qualname__", None) or getattr(request, "__name__", None)
    if inspect.ismodule(request):
        return f"Help on module {name}:\n\n{_doc(request, '')}\n\n{_members(request)}"
    if inspect.isroutine(request):
        return f"Help on {_kind(request)} {name.rpartition('.')[2]}{_home(request)}:\n\n{_routine(request)}"
    if not inspect.isclass(request):
        request = type(request)
        return f"Help on {request.__name__} object:\n\n{_class(request)}"
    return f"Help on class {request.__name__}{_home(request)}:\n\n{_class(request)}"


def _find(text):
    """Returns what a dotted name stands for in a tuple: a module, a builtin or a part of one."""
    text = text.strip()
    if keyword.iskeyword(text):
        return None
    first, *rest = text.split(".")
    try:
        found = vars(builtins)[first] if first in vars(builtins) else importlib.import_module(first)
        for i, part in enumerate(rest):
            if not hasattr(found, part) and inspect.ismodule(found):
                importlib.import_module(".".join([first, *rest[: i + 1]]))
            found = getattr(found, part)
    except (ImportError, AttributeError, ValueError):
        return None
    return (found,)


def _kind(routine):
    if inspect.isbuiltin(routine):
        return "built-in function" if inspect.ismodule(routine.__self__) else "built-in method"
    if inspect.ismethod(routine):
        return "method"
    return "function" if inspect.isfunction(routine) else "method descriptor"


def _home(value):
    module = getattr(value, "__module__", None)
    return f" in module {module}" if module else ""


def _signature(value):
    try:
        return str(inspect.signature(value))
    except (ValueError, TypeError):
        return "(...)"


def _doc(value, indent="    "):
    return _indent(inspect.getdoc(value) or "", indent)


def _indent(text, indent="    "):
    return "\n".join((indent + line).rstrip() for line in text.splitlines())


def _routine(routine):
    return f"{routine.__name__}{_signature(routine)}\n{_doc(routine)}".rstrip() + "\n"


def _class(cls):
    bases = ", ".join(base.__name__ for base in cls.__bases__ if base is not object)
    parts = [f"class {cls.__name__}({bases})" if bases else f"class {cls.__name__}"]
    if _signature(cls) != "(...)":
        parts.append(f"    {cls.__name__}{_signature(cls)}")
    parts += [_doc(cls), "", _members(cls)]
    return "\n".join(part for i, part in enumerate(parts) if part or i == len(parts) - 2)


def _members(owner):
    """Lists the public names of a class or module with the first line of their documentation."""
    names = [n for n in getattr(owner, "__all__", None) or dir(owner) if not n.startswith("_")]
    rows = []
    for name in names[:_MOST]:
        value = getattr(owner, name, None)
        about = (inspect.getdoc(value) or "").split("\n")[0] if callable(value) or inspect.isdatadescriptor(value) else ""
        shown = name + (_signature(value) if inspect.isroutine(value) else "")
        rows.append(f"    {shown}" + (f": {about}" if about else ""))
    if len(names) > _MOST:
        rows.append(f"    ... and {len(names) - _MOST} more")
    return "\n".join(rows)
