# Assignment expressions and where they bind.
data = [3, 1, 4, 1, 5, 9, 2, 6]
assert (n := len(data)) == 8 and n == 8
print([y for v in data if (y := v * v) > 10], y)
it = iter(data)
chunks = []
while chunk := [v for _, v in zip(range(3), it)]:
    chunks.append(chunk)
print(chunks)


def first_long(words, size):
    if any((found := w) and len(w) > size for w in words):
        return found
    return None


print(first_long(["a", "bbb", "cc"], 2), first_long(["a"], 2))
print((a := 1, b := 2), a, b)
print({(k := v): k + 1 for v in range(3)}, k)
x = 0
print(x if (x := 5) else None, f"{(z := 7)} {z}")


def scopes():
    total = 0
    parts = [total := total + v for v in range(5)]
    return parts, total


print(scopes())
for src in ("[i := 0 for i in range(3)]", "x := 1", "class C: [a := 1 for _ in 'x']", "(a.b := 1)", "(lambda: (yield))"):
    try:
        compile(src, "w", "exec")
        print("fine", src)
    except SyntaxError as e:
        print(e.msg)
