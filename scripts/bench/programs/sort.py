import random

r = random.Random(1)
data = [r.random() for _ in range(200_000)]


def run():
    sorted(data)
