# Warnings go to stderr unless caught.
import io
import sys
import warnings

warnings.warn("to stderr")
with warnings.catch_warnings(record=True) as got:
    warnings.simplefilter("always")
    warnings.warn("caught", DeprecationWarning)
    warnings.warn_explicit("explicit", UserWarning, "f.py", 3)
print([(w.category.__name__, str(w.message)) for w in got], got[1].filename, got[1].lineno)
with warnings.catch_warnings():
    warnings.simplefilter("error")
    for src in ("x = '\\d'", "1 is 1", "assert (1, 'x')", "[1](2)"):
        try:
            compile(src, "w", "exec")
        except SyntaxError as e:
            print(e.msg)
    try:
        warnings.warn("raised", RuntimeWarning)
    except RuntimeWarning as e:
        print("error:", e)
with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    warnings.warn("silent")


class MyWarning(UserWarning):
    pass


err, old = io.StringIO(), sys.stderr
sys.stderr = err
try:
    with warnings.catch_warnings():
        warnings.simplefilter("default")
        warnings.showwarning(MyWarning("shown"), MyWarning, "file.py", 7, line="src")
finally:
    sys.stderr = old
print(err.getvalue())
print(warnings.formatwarning("m", UserWarning, "f.py", 1, "code"))


@warnings.deprecated("use other")
def old_func():
    return "still works"


with warnings.catch_warnings(record=True) as got:
    warnings.simplefilter("always")
    print(old_func(), str(got[0].message), old_func.__deprecated__)
