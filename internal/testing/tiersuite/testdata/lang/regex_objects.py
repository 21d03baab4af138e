# Patterns as objects: identity, type, and whom the warnings of re name.
import copy
import functools
import inspect
import pickle
import re
import typing
import warnings

p = re.compile("x+")
print(p is re.compile("x+"), p is re.compile("x+", re.I), re.compile(p) is p, p.search("axx").re is p)
print(type(p), type(p) is re.Pattern, p.__class__ is re.Pattern, type(re.compile(b"x")) is re.Pattern)
print(isinstance(p, re.Pattern), issubclass(type(p), re.Pattern), isinstance(p, typing.Pattern), issubclass(type(p), typing.Pattern))
print(isinstance("x", re.Pattern), issubclass(str, re.Pattern), isinstance("x", typing.Pattern), issubclass(str, typing.Pattern))
print(re.Pattern[str], typing.Pattern[str], typing.get_origin(typing.Pattern[str]) is re.Pattern, re.Pattern.__qualname__, re.Pattern.__module__)
re.purge()
q = re.compile("x+")
print(p is q, p == q, hash(p) == hash(q), {p: 1}[q], p != re.compile("x+", re.S), p == "x+")
print(copy.copy(p) is p, copy.deepcopy([p])[0] is p, pickle.loads(pickle.dumps(p)) == p)
for attempt in (
    lambda: re.Pattern(),
    lambda: setattr(re.Pattern, "more", 1),
    lambda: type("Mine", (re.Pattern,), {}),
    lambda: issubclass(1, re.Pattern),
    lambda: re.compile(p, re.I),
    lambda: p < q,
    lambda: setattr(p, "more", 1),
    lambda: p.missing,
):
    try:
        print(attempt())
    except (TypeError, ValueError, AttributeError) as e:
        print(type(e).__name__, e)


@functools.singledispatch
def kind(value):
    return "other"


@kind.register
def _(value: re.Pattern):
    return "pattern"


print(kind(p), kind("x"))
match p:
    case re.Pattern(pattern=source, flags=flags):
        print(source, flags)
print(inspect.signature(re.search), inspect.signature(re.compile), inspect.signature(re.sub), re.search.__name__, re.compile.__module__)

with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    re.compile("[[a]")
    re.search("[[b]", "x")
    re.sub("[[c]", "", "x")
    list(re.finditer("[[d]", "x"))
    re.sub("a", "", "x", 1)
    re.subn("a", "", "x", 1)
    re.split("a", "x", 1)
for w in caught:
    print(w.filename, w.lineno, w.category.__name__, w.message)
