# with: order, suppression, ExitStack, contextlib helpers.
import contextlib
import io


class CM:
    def __init__(self, name, swallow=False):
        self.name, self.swallow = name, swallow

    def __enter__(self):
        print("enter", self.name)
        return self.name

    def __exit__(self, t, v, tb):
        print("exit", self.name, t and t.__name__, v, tb is not None)
        return self.swallow


with CM("a") as a, CM("b") as b:
    print(a, b)
with CM("outer", swallow=True):
    with CM("inner"):
        raise ValueError("boom")
print("went on")
with (
    CM("p") as p,
    CM("q"),
):
    pass


@contextlib.contextmanager
def tag(name):
    print(f"<{name}>")
    try:
        yield name.upper()
    except KeyError as e:
        print("handled", e)
    finally:
        print(f"</{name}>")


with tag("b") as t:
    print(t)
with tag("i"):
    raise KeyError("k")


@tag("deco")
def work():
    print("working")


work()
with contextlib.suppress(ZeroDivisionError, KeyError):
    1 / 0
buf = io.StringIO()
with contextlib.redirect_stdout(buf):
    print("captured")
print(repr(buf.getvalue()))
with contextlib.ExitStack() as st:
    for n in "xyz":
        st.enter_context(CM(n))
    st.callback(print, "callback", 1)
    st.push(lambda *exc: print("pushed", exc[0]))
with contextlib.nullcontext(5) as five:
    print(five)


class Closable:
    def close(self):
        print("closed")


with contextlib.closing(Closable()):
    pass
try:
    with 5:
        pass
except TypeError as e:
    print(e)


def early():
    with CM("ret"):
        return "returned"


print(early())


class BadExit:
    def __enter__(self):
        return self

    def __exit__(self, *a):
        raise RuntimeError("from exit")


try:
    with BadExit():
        raise ValueError("original")
except RuntimeError as e:
    print(e, repr(e.__context__))


@contextlib.contextmanager
def twice():
    yield 1
    yield 2


try:
    with twice():
        pass
except RuntimeError as e:
    print(e)
