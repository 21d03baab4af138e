def a(i, j):
    return 1.0 / ((i + j) * (i + j + 1) // 2 + i + 1)


def times(v, transposed):
    n = range(len(v))
    return [sum((a(j, i) if transposed else a(i, j)) * v[j] for j in n) for i in n]


def run():
    v = [1.0] * 110
    for _ in range(3):
        v = times(times(v, False), True)
