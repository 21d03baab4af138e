# The snippet is the main module.
import sys

if __name__ == "__main__":
    print("main")


class K:
    class Inner:
        pass


def f():
    pass


print(K.__module__, f.__module__, K.Inner.__qualname__, repr(K), repr(K.Inner), f.__qualname__, (lambda: 0).__qualname__, sys.modules["__main__"].__name__)
main = sys.modules["__main__"]
main.set_from_module = 5
print(set_from_module, main.K is K, vars(main) is globals(), main.__dict__["f"] is f)
import __main__

print(__main__ is main, __main__.K is K, __builtins__ is not None, __doc__)
exec("created = 1")
print(created, globals()["created"], eval("created + 1"))
globals()["dynamic"] = 7
print(dynamic)


def main_func(argv=None):
    return len(argv or [])


if __name__ == "__main__":
    code = main_func(["a", "b"])
    print("exit code would be", code)
try:
    from . import sibling
except ImportError as e:
    print(e)
try:
    import no_such_module
except ModuleNotFoundError as e:
    print(e, e.name)
try:
    from math import no_such_name
except ImportError as e:
    print(str(e).split(" (")[0], e.name)
import collections.abc as cabc
import os.path
from math import *

print(cabc.Mapping.__name__, os.path.join("a", "b"), floor(2.5), os.sep, os.path.basename("x/y.z"), os.path.splitext("a.tar.gz"), os.path.normpath("a/../b"))
