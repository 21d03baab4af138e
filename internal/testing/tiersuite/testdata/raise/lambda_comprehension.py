# Frames of lambdas, comprehensions, generators and class bodies.
pick = lambda d: d["k"]


def gen():
    yield from (pick(d) for d in [{}])


class Body:
    values = [v for v in gen()]
