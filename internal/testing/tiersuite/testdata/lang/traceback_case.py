# The traceback module inside a snippet.
import io
import sys
import traceback


def a(x):
    return b(x) + 1


def b(x):
    return 10 / x


try:
    a(0)
except ZeroDivisionError as e:
    print(traceback.format_exc())
    tb = e.__traceback__
    print([(f.name, f.lineno, f.line) for f in traceback.extract_tb(tb)], traceback.format_exception_only(e), len(traceback.format_tb(tb)))
    st = traceback.StackSummary.extract(traceback.walk_tb(tb), limit=-1)
    print(st[0].name, st[0].colno, st[0].end_colno)
    te = traceback.TracebackException.from_exception(e, capture_locals=True)
    print(te.exc_type_str, str(te), te.stack[-1].locals)
try:
    try:
        {}["k"]
    except KeyError as e:
        raise RuntimeError("outer") from e
except RuntimeError as e:
    e.add_note("a note\nover lines")
    s = io.StringIO()
    traceback.print_exception(e, file=s)
    print(s.getvalue())
    traceback.print_exception(e, file=s, chain=False, limit=1)
    traceback.print_exc()
try:
    compile("x = (1,\n y z", "code", "exec")
except SyntaxError as e:
    print("".join(traceback.format_exception_only(e)))


def deep(n):
    return 1 / n if n == 0 else deep(n - 1)


try:
    deep(10)
except ZeroDivisionError:
    print(traceback.format_exc())
lines = [tb_line for tb_line in traceback.format_list([("f.py", 3, "fn", "source")])]
print(lines, traceback.extract_stack()[-1].name)
tb = None
try:
    [x for x in (1, 0) if 1 / x]
except ZeroDivisionError:
    tb = sys.exc_info()[2]
    print(tb.tb_frame.f_lineno == tb.tb_lineno or tb.tb_lineno > 0, traceback.format_tb(tb)[-1])
