# random with a seed gives the same sequence everywhere.
import random

random.seed(42)
print(random.random(), random.randint(1, 100), random.choice("abcdef"), random.sample(range(100), 5), random.choices("xyz", weights=[1, 2, 7], k=6), random.uniform(1, 2), random.randrange(0, 100, 7), random.getrandbits(70))
l = list(range(10))
random.shuffle(l)
print(l, [round(f(0, 1), 9) for f in (random.gauss, random.normalvariate, random.lognormvariate)], round(random.expovariate(2), 9), round(random.betavariate(2, 3), 9), round(random.triangular(0, 1, 0.2), 9), random.randbytes(8).hex(), random.binomialvariate(10, 0.3))
r = random.Random("text seed")
state = r.getstate()
a = [r.random() for _ in range(3)]
r.setstate(state)
assert a == [r.random() for _ in range(3)]
print(a, random.Random(b"bytes").random(), random.Random(2 ** 80).randint(0, 10 ** 30), random.Random(-7).random() == random.Random(7).random())
for bad in (lambda: random.choice([]), lambda: random.sample([1], 2), lambda: random.randint(2, 1), lambda: random.randrange(0), lambda: random.choices([], k=1), lambda: random.sample({1, 2}, 1), lambda: random.Random([]), lambda: random.choices([1], weights=[0]), lambda: random.randrange(1.5)):
    try:
        print(bad())
    except (IndexError, ValueError, TypeError) as e:
        print(type(e).__name__, e)
q = random.Random(1)
counts = [0] * 6
for _ in range(6000):
    counts[q.randrange(6)] += 1
print(counts, random.sample(["a", "b"], k=3, counts=[2, 2]) and "counts", random.SystemRandom().random() != random.SystemRandom().random())
inside = sum(q.random() ** 2 + q.random() ** 2 < 1 for _ in range(4000))
print(inside)
