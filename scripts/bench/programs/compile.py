import ast

source = "\n".join(
    f"def f{i}(a, b={i}, *c, **d):\n    x = [a + b * {i} for a in c if a > {i}]\n    return x[0] if d else (lambda q: q ** 2)(b)"
    for i in range(200)
)


def run():
    compile(ast.parse(source), "x", "exec")
