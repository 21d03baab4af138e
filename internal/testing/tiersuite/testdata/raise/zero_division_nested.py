# Carets under the part of the expression that failed, over nested calls.
def ratio(a, b):
    return (a + 1) / (b - b)


def total(rows):
    return sum_of([ratio(x, y) * 2 for x, y in rows])


def sum_of(v):
    return sum(v)


print("before")
result = total([(1, 2)]) + len("é" * 3)
