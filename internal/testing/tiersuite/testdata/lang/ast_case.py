# ast, tokenize, dis-free code objects, compile modes.
import ast
import io
import keyword
import tokenize

src = "def f(a, *b, c=1, **d) -> int:\n    '''doc'''\n    x: int = a + 2\n    return [i async for i in y] if x else (yield)\n"
t = ast.parse("x = 1 + 2 * y\nfor i in range(3):\n    print(i)\n")
print(ast.dump(t), [type(n).__name__ for n in ast.walk(t)][:8], ast.dump(ast.parse("a.b[1:2]", mode="eval"), indent=1))
print(ast.unparse(t), ast.unparse(ast.parse("f'{x!r:>{w}} {{}}'")), ast.unparse(ast.parse("lambda a, /, b=1, *, c: (a, b)")), ast.unparse(ast.parse("match x:\n case [1, *_] if y: pass")), ast.unparse(ast.parse("@d\nclass C[T](B, m=1):\n  async def g(self): await h()")))
print(ast.literal_eval("{'a': [1, -2.5, (None, True)], 'b': {1}, 'c': b'x', 'd': 1+2j}")["a"], ast.get_docstring(ast.parse("def f():\n 'd'").body[0]), ast.get_source_segment("a = (1 +\n 2)", ast.parse("a = (1 +\n 2)").body[0].value))
for bad in ("f()", "1 + x", "__import__('os')", "", "[" * 10):
    try:
        print(ast.literal_eval(bad))
    except (ValueError, SyntaxError) as e:
        print(type(e).__name__, str(e).split(" at 0x")[0].split(": <ast")[0])


class Inc(ast.NodeTransformer):
    def visit_Constant(self, n):
        return ast.copy_location(ast.Constant(n.value + 1), n) if isinstance(n.value, int) else n


class Names(ast.NodeVisitor):
    def __init__(self):
        self.seen = []

    def visit_Name(self, n):
        self.seen.append((n.id, type(n.ctx).__name__, n.lineno, n.col_offset, n.end_col_offset))


v = Names()
v.visit(t)
print(v.seen, eval(compile(ast.fix_missing_locations(Inc().visit(ast.parse("1 + 2 * 3", mode="eval"))), "i", "eval")))
print([(tokenize.tok_name[k.type], k.string) for k in tokenize.generate_tokens(io.StringIO("x = f'a{1}' # c\nif y:\n  z\n").readline)], keyword.iskeyword("async"), keyword.softkwlist)
ns = {}
exec(compile("def g(x): return x * 2\ny = g(21)", "<dyn>", "exec"), ns)
print(ns["y"], ns["g"].__code__.co_filename, eval(compile("1 + 1", "", "eval")), compile("a = 1", "", "exec").co_names)
exec(compile("'shown'\n", "<single>", "single"))
for mode, s in (("eval", "x = 1"), ("exec", "x ="), ("single", "a\nb"), ("nope", "1")):
    try:
        compile(s, "m", mode)
    except (SyntaxError, ValueError) as e:
        print(type(e).__name__, e)
n = ast.parse(src).body[0]
print([a.arg for a in n.args.args], n.args.vararg.arg, n.returns.id, ast.get_docstring(n), compile("1", "f", "exec", ast.PyCF_ONLY_AST).body[0].value.value)
