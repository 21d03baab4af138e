# inspect: signatures and the snippet's own source through linecache.
import inspect
import linecache
import types


def top(a, /, b: int, *args, c=3, **kw) -> str:
    """Top doc.

    More.
    """
    local = a  # a comment
    return lambda: local


class C:
    "C doc."

    def m(self, x=1): ...

    @classmethod
    def cm(cls, y): ...

    @staticmethod
    def sm(): ...

    async def am(self): ...

    def gen(self):
        yield


sig = inspect.signature(top)
print(sig, list(sig.parameters), sig.parameters["c"].default, sig.parameters["a"].kind.name, sig.return_annotation, sig.bind(1, 2, 3, z=4).arguments)
print(inspect.getsource(top))
print(inspect.getsource(C.m), inspect.getsourcelines(C.gen)[0], inspect.getdoc(top), inspect.getcomments(top))
print(linecache.getline(top.__code__.co_filename, top.__code__.co_firstlineno).strip())
for bad in ((), (1,), (1, 2, 3), ):
    try:
        sig.bind(*bad)
        print("binds")
    except TypeError as e:
        print(e)
print(inspect.signature(C), inspect.signature(C().m), inspect.signature(C.cm), inspect.signature(len), inspect.signature(lambda *, k: 0))
print(inspect.isfunction(top), inspect.ismethod(C().m), inspect.isclass(C), inspect.iscoroutinefunction(C.am), inspect.isgeneratorfunction(C.gen), inspect.isbuiltin(len), inspect.getmro(C)[-1], [n for n, _ in inspect.getmembers(C, inspect.isfunction)])
print(inspect.getclosurevars(top(1, 2)).nonlocals, inspect.getattr_static(C, "sm").__class__.__name__, inspect.unwrap(top) is top, inspect.currentframe().f_code.co_name, inspect.getmodule(top).__name__)


def caller():
    return inspect.stack()[0].function, inspect.stack()[1].function, inspect.stack()[0].code_context[0].strip()


print(caller(), inspect.cleandoc("  a\n    b\n    c"), inspect.getfullargspec(top).kwonlydefaults)
g = C().gen()
print(inspect.getgeneratorstate(g), next(g), inspect.getgeneratorstate(g))
ns = types.SimpleNamespace(a=1, b="x")
ns.c = 3
print(ns, vars(ns), types.MappingProxyType({"k": 1})["k"], types.new_class("N", (C,), {}, lambda d: d.update(z=1)).z, types.MethodType(lambda self: self, 5)(), types.FunctionType(top.__code__, {}).__name__, isinstance(print, types.BuiltinFunctionType), types.GenericAlias(list, int))
