# The version and the facts of sys that do not depend on the machine.
import platform
import sys

assert sys.version_info[:2] == (3, 13)
print(sys.version_info.major, sys.version_info.minor, sys.version.split(".")[:2], sys.implementation.name, sys.byteorder, sys.maxunicode, sys.hexversion >> 16)
print(platform.python_implementation(), platform.python_version_tuple()[:2], sys.api_version, sys.float_repr_style, sys.getdefaultencoding(), sys.flags.optimize, __debug__)
print(all(m in sys.builtin_module_names for m in ("sys", "builtins")), "json" in sys.stdlib_module_names, sys.intern("a") is sys.intern("a"), sys.getsizeof([]) > 0, callable(sys.exit), sys.exc_info())
try:
    1 / 0
except ZeroDivisionError:
    print(sys.exc_info()[0].__name__, repr(sys.exception()))
print(sys.exception(), sys.getrefcount(object()) > 0, sys.getfilesystemencoding(), sys.hash_info.algorithm is not None, sys.copyright[:14])
try:
    sys.exit("stops here unless caught")
except SystemExit as e:
    print(repr(e.code))
for code in (None, 0, 3):
    try:
        sys.exit(code)
    except SystemExit as e:
        print(e.code)
print(sys._getframe().f_code.co_name, sys._getframe().f_lineno > 0, sys._getframe().f_globals is globals())
