# StopIteration out of a generator becomes a RuntimeError.
def gen():
    yield next(iter([]))


for x in gen():
    print(x)
