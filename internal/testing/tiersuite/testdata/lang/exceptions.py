# Exceptions: flow, chaining, notes, custom classes, finally rules.
import errno


def flow(n):
    out = []
    try:
        out.append("try")
        if n == 1:
            raise ValueError("v")
        if n == 2:
            return out + ["return"]
    except ValueError as e:
        out.append(f"except {e}")
    else:
        out.append("else")
    finally:
        out.append("finally")
    return out


print(flow(0), flow(1), flow(2))


class AppError(Exception):
    def __init__(self, code, msg):
        super().__init__(code, msg)
        self.code = code

    def __str__(self):
        return f"[{self.code}] {self.args[1]}"


try:
    try:
        {}["k"]
    except KeyError as e:
        raise AppError(7, "lookup") from e
except AppError as e:
    print(e, repr(e), repr(e.__cause__), e.__suppress_context__, e.args)
try:
    try:
        1 / 0
    except ZeroDivisionError:
        [][1]
except IndexError as e:
    print(e, repr(e.__context__), e.__cause__)
try:
    raise ValueError("a") from None
except ValueError as e:
    print(e.__suppress_context__)
e = ValueError("noted")
e.add_note("first")
e.add_note("second")
print(e.__notes__)
try:
    e.add_note(3)
except TypeError as t:
    print(t)
try:
    e_gone = 1
    try:
        raise KeyError("x")
    except KeyError as e_gone:
        pass
    e_gone
except NameError as n:
    print(n)


def override():
    for _ in range(2):
        try:
            raise ValueError
        finally:
            break
    return "broke out"


print(override())
for action in (lambda: int("x"), lambda: [].pop(), lambda: {}.popitem(), lambda: "a" + 1, lambda: None.x, lambda: len(3), lambda: 1 / 0,
               lambda: (lambda a: a)(), lambda: (lambda: 0)(1), lambda: [1, 2][5], lambda: {}["q"],
               lambda: int(10 ** 5000 and "1" * 5000), lambda: "abc".index("z"), lambda: next(iter([])), lambda: chr(-1),
               lambda: bytes([256]), lambda: float("x"), lambda: "\ud800".encode(), lambda: b"\xff".decode(), lambda: hash([]),
               lambda: sorted([1, "a"]), lambda: max([]), lambda: dict([1]), lambda: getattr(1, "q"), lambda: __import__("nope_x")):
    try:
        r = action()
    except Exception as ex:
        print(type(ex).__name__, "|", ex)
    else:
        print("value", type(r).__name__)
try:
    raise 5
except TypeError as ex:
    print(ex)
try:
    raise ValueError
except (KeyError, ValueError) as ex:
    print(repr(ex))
try:
    assert 1 == 2, "message"
except AssertionError as ex:
    print(repr(ex))
print([c.__name__ for c in KeyError.__mro__], issubclass(SystemExit, Exception), issubclass(TimeoutError, OSError))
try:
    raise OSError(errno.ENOENT, "No such file", "f.txt")
except FileNotFoundError as ex:
    print(ex.strerror, ex.filename, ex.errno == errno.ENOENT, str(ex).endswith("No such file: 'f.txt'"))
err = ValueError("t")
try:
    raise err.with_traceback(None)
except ValueError as ex:
    print(ex is err, ex.__traceback__.tb_lineno > 0)
