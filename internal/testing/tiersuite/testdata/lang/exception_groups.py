# ExceptionGroup and except*.
import traceback

eg = ExceptionGroup("many", [ValueError(1), TypeError("t"), ExceptionGroup("inner", [ValueError(2), OSError("o")])])
print(eg, eg.message, len(eg.exceptions))
match_, rest = eg.split(ValueError)
print(repr(match_), repr(rest))
print(repr(eg.subgroup(lambda e: isinstance(e, OSError))), eg.subgroup(KeyError))
try:
    raise eg
except* ValueError as g:
    print("values", repr(g))
except* (TypeError, OSError) as g:
    print("others", repr(g))
try:
    try:
        raise ExceptionGroup("g", [KeyError("k"), ValueError("v")])
    except* ValueError:
        raise RuntimeError("in handler")
except ExceptionGroup as g:
    print(repr(g))
try:
    raise ValueError("bare")
except* ValueError as g:
    print(repr(g))
hits = []
try:
    pass
except* Exception:
    hits.append("no")
else:
    hits.append("else")
finally:
    hits.append("finally")
print(hits)
for make in (lambda: ExceptionGroup("x", []), lambda: ExceptionGroup("x", [1]), lambda: ExceptionGroup("x", [KeyboardInterrupt()])):
    try:
        make()
    except (ValueError, TypeError) as e:
        print(type(e).__name__, e)
print(type(BaseExceptionGroup("b", [KeyboardInterrupt()])).__name__, type(BaseExceptionGroup("b", [ValueError()])).__name__)


class MyGroup(ExceptionGroup):
    def derive(self, excs):
        return MyGroup("derived", excs)


print(repr(MyGroup("m", [ValueError(1), TypeError(2)]).split(TypeError)[0]))
eg.add_note("a note")
print("".join(traceback.format_exception_only(eg)).strip())
print("".join(traceback.format_exception(eg)))
for src in ("try: pass\nexcept* E: return", "try: pass\nexcept* A: pass\nexcept B: pass", "try: pass\nexcept*: pass"):
    try:
        compile(src, "s", "exec")
    except SyntaxError as e:
        print(e.msg)
