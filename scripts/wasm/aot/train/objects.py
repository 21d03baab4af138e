# Objects, containers, calls, exceptions, generators, and the compiler.
import ast, bisect, collections, contextlib, copy, dataclasses, datetime, enum, functools, heapq, itertools, operator, pickle, types, typing


class Shape:
    count = 0

    def __init__(self, name):
        self.name = name
        Shape.count += 1

    def __repr__(self):
        return f"{type(self).__name__}({self.name!r})"

    @property
    def weight(self):
        return self.area() * 2

    def area(self):
        raise NotImplementedError


class Box(Shape):
    __slots__ = ("a", "b")

    def __init__(self, name, a, b):
        super().__init__(name)
        self.a, self.b = a, b

    def area(self):
        return self.a * self.b

    def __lt__(self, other):
        return self.area() < other.area()

    def __eq__(self, other):
        return isinstance(other, Box) and (self.a, self.b) == (other.a, other.b)

    def __hash__(self):
        return hash((self.a, self.b))


class Disc(Shape):
    def __init__(self, name, radius):
        super().__init__(name)
        self.radius = radius

    def area(self):
        return 3.14 * self.radius**2


@dataclasses.dataclass(order=True)
class Event:
    at: float
    kind: str = dataclasses.field(compare=False)
    tags: list[str] = dataclasses.field(default_factory=list, compare=False)


class Color(enum.Enum):
    RED, GREEN, BLUE = 1, 2, 3


class Vector:
    def __init__(self, *xs):
        self.xs = xs

    def __add__(self, other):
        return Vector(*map(operator.add, self.xs, other.xs))

    def __mul__(self, k):
        return Vector(*(x * k for x in self.xs))

    def __iter__(self):
        return iter(self.xs)

    def __len__(self):
        return len(self.xs)

    def __getitem__(self, i):
        return self.xs[i]

    def __getattr__(self, name):
        return self.xs["xyz".index(name)]


shapes = [Box(f"b{i}", i % 13, i % 7) if i % 3 else Disc(f"d{i}", i % 5) for i in range(3000)]
sum(s.weight for s in shapes), repr(shapes[:50]), len({s for s in shapes if isinstance(s, Box)})
sorted((s for s in shapes if isinstance(s, Box)), reverse=True)
total = Vector(0, 0, 0)
for i in range(3000):
    total = total + Vector(i, 1, 2) * 0.5
    total.y, total[2], len(total)
queue = []
for i in range(4000):
    heapq.heappush(queue, Event(i * 7919 % 1009 / 10, "tick"))
    if i % 3 == 0:
        event = heapq.heappop(queue)
        dataclasses.replace(event, kind="tock")
graph = collections.defaultdict(dict)
for i in range(900):
    for j in (i * 3 % 900, i * 7 % 900, (i + 1) % 900):
        graph[i][j] = (i ^ j) % 17 + 1


def shortest(start):
    best, todo = {start: 0}, [(0, start)]
    while todo:
        far, node = heapq.heappop(todo)
        if far > best[node]:
            continue
        for other, step in graph[node].items():
            if far + step < best.get(other, 1 << 30):
                best[other] = far + step
                heapq.heappush(todo, (far + step, other))
    return best


assert len(shortest(0)) == 900


def breadth(start):
    seen, todo = {start}, collections.deque([start])
    while todo:
        for other in graph[todo.popleft()]:
            if other not in seen:
                seen.add(other)
                todo.append(other)
    return len(seen)


breadth(3)


def numbers(n):
    i = 0
    while i < n:
        sent = yield i
        i += sent or 1


def flatten(tree):
    for item in tree:
        if isinstance(item, list):
            yield from flatten(item)
        else:
            yield item


nested = [[i, [i + 1, [i + 2]]] for i in range(1500)]
list(flatten(nested)), sum(n for n in numbers(8000) if n % 3), copy.deepcopy(nested)
list(itertools.accumulate(itertools.chain.from_iterable(zip(range(2000), range(2000)))))
[list(group) for _, group in itertools.groupby(sorted(range(3000), key=lambda n: n % 11), key=lambda n: n % 11)]


class Failed(Exception):
    def __init__(self, code):
        super().__init__(f"code {code}")
        self.code = code


@contextlib.contextmanager
def managed(into):
    into.append("in")
    try:
        yield into
    finally:
        into.append("out")


def fragile(n):
    try:
        if n % 4 == 0:
            raise Failed(n)
        if n % 4 == 1:
            return {}["missing"]
        if n % 4 == 2:
            return int("x")
        return n
    except Failed as e:
        return e.code
    except (KeyError, ValueError) as e:
        return str(e)
    finally:
        n += 1


for i in range(6000):
    fragile(i)
for i in range(1000):
    with managed([]) as into, contextlib.suppress(ZeroDivisionError):
        into.append(1 // (i % 2))


@functools.lru_cache(maxsize=None)
def paths(x, y):
    return 1 if x == 0 or y == 0 else paths(x - 1, y) + paths(x, y - 1)


def counter():
    n = 0

    def add(by=1, *args, scale=1, **options):
        nonlocal n
        n += by * scale + len(args) + len(options)
        return n

    return add


def traced(f):
    @functools.wraps(f)
    def inner(*args, **kwargs):
        return f(*args, **kwargs)

    return inner


assert paths(60, 60) > 10**30
add = traced(counter())
for i in range(5000):
    add(i, 2, 3, scale=2, name="x")
functools.reduce(lambda a, b: a * 31 + b & 0xFFFF, range(8000))


def describe(value):
    match value:
        case {"kind": "pair", "items": [a, b]}:
            return a, b
        case [first, *rest] if rest:
            return first
        case str() | bytes():
            return len(value)
        case int(n) if n > 10:
            return "big"
        case Color.RED:
            return "red"
        case _:
            return None


for value in [{"kind": "pair", "items": [1, 2]}, [1, 2, 3], "text", 50, 5, Color.RED, None] * 400:
    describe(value)
inventory = {f"item{i}": {"price": i * 1.25, "stock": i % 17, "tags": {f"t{i % 5}", f"u{i % 3}"}} for i in range(2500)}
cheap = {k: v["price"] for k, v in inventory.items() if v["stock"] and v["price"] < 1500}
by_tag = collections.defaultdict(set)
for name, item in inventory.items():
    for tag in item["tags"]:
        by_tag[tag].add(name)
by_tag["t1"] & by_tag["u2"] | by_tag["t3"] - by_tag["u0"]
sorted(inventory.items(), key=lambda kv: (-kv[1]["stock"], kv[0]))[:20]
merged = {**cheap, **{k: -1 for k in list(cheap)[::3]}}
heights = [[(x * y) % 31 for x in range(60)] for y in range(60)]
for _ in range(2):
    heights = [
        [max(row[max(x - 1, 0) : x + 2]) * 2 - row[x] & 63 for x in range(len(row))]
        for row in map(list, zip(*heights[::-1]))
    ]
stack = []
for token in ("3 4 + 2 * 7 / 5 1 - *".split()) * 500:
    if token.isdigit():
        stack.append(float(token))
    else:
        b, a = stack.pop(), stack.pop()
        stack.append({"+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.truediv}[token](a, b))
ordered = []
for i in range(3000):
    bisect.insort(ordered, i * 7919 % 3001)
del ordered[10:500], ordered[::7]
ordered.reverse()
ordered.sort()
ordered[5:5] = [1, 2, 3]
pickle.loads(pickle.dumps((inventory, shapes[:300], [Event(1.5, "x")]))) if __name__ == "__main__" else pickle.dumps(inventory)
start = datetime.datetime(2021, 3, 1, 8)
moments = [start + datetime.timedelta(hours=7 * i) for i in range(1500)]
collections.Counter(m.strftime("%Y-%m") for m in moments), [datetime.datetime.fromisoformat(m.isoformat()) for m in moments]
source = "\n".join(
    f"def f{i}(a, b=1, *c, **d):\n    '''Doc.'''\n    for x in range(a):\n        if x % 2 and not b:\n            yield x + {i}\n"
    f"    try:\n        return [y for y in c if y] or d.get('k{i}')\n    except ValueError as e:\n        raise TypeError(str(e)) from e"
    for i in range(60)
)
tree = ast.parse(source)
sum(isinstance(node, ast.Name) for node in ast.walk(tree)), ast.unparse(tree)
exec(compile(tree, "made", "exec"), {})
for i in range(150):
    eval(f"[{i} + n * 2 for n in range(20) if n % 3]")
Point = collections.namedtuple("Point", "x y")
[Point(i, -i)._replace(y=0) for i in range(1500)]
typing.get_type_hints(Event), types.SimpleNamespace(a=1, b=[2])
