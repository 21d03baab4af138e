def walk(tree):
    if tree:
        yield from walk(tree[0])
        yield tree[1]
        yield from walk(tree[2])


def build(low, high):
    if low >= high:
        return None
    middle = (low + high) // 2
    return build(low, middle), middle, build(middle + 1, high)


def run():
    assert sum(walk(build(0, 9000))) == sum(range(9000))
