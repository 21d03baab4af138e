# Plain loops over lists, strings, dicts and numbers, each written as a model would write it.
import collections, math, re


def edit_script(a, b):
    table = [[0] * (len(b) + 1) for _ in range(len(a) + 1)]
    for i in range(len(a) - 1, -1, -1):
        for j in range(len(b) - 1, -1, -1):
            if a[i] == b[j]:
                table[i][j] = table[i + 1][j + 1] + 1
            else:
                table[i][j] = max(table[i + 1][j], table[i][j + 1])
    out, i, j = [], 0, 0
    while i < len(a) and j < len(b):
        if a[i] == b[j]:
            out.append((" ", a[i]))
            i, j = i + 1, j + 1
        elif table[i + 1][j] >= table[i][j + 1]:
            out.append(("-", a[i]))
            i += 1
        else:
            out.append(("+", b[j]))
            j += 1
    return out


def knapsack(weights, values, room):
    best = [0] * (room + 1)
    for weight, value in zip(weights, values):
        for left in range(room, weight - 1, -1):
            if best[left - weight] + value > best[left]:
                best[left] = best[left - weight] + value
    return best[room]


def hanoi(n, source="a", target="b", other="c"):
    if n == 0:
        return 0
    return hanoi(n - 1, source, other, target) + 1 + hanoi(n - 1, other, target, source)


def ackermann(m, n):
    if m == 0:
        return n + 1
    if n == 0:
        return ackermann(m - 1, 1)
    return ackermann(m - 1, ackermann(m, n - 1))


def insertion(values):
    values = list(values)
    for i in range(1, len(values)):
        value, j = values[i], i - 1
        while j >= 0 and values[j] > value:
            values[j + 1] = values[j]
            j -= 1
        values[j + 1] = value
    return values


def quick(values):
    if len(values) < 2:
        return values
    pivot = values[len(values) // 2]
    return (
        quick([v for v in values if v < pivot]) + [v for v in values if v == pivot] + quick([v for v in values if v > pivot])
    )


def permutations(items):
    if not items:
        yield ()
    for i, item in enumerate(items):
        for rest in permutations(items[:i] + items[i + 1 :]):
            yield (item, *rest)


def flood(width, height):
    walls = {(x, y) for x in range(width) for y in range(height) if (x * 5 + y * 3) % 7 == 0}
    seen, todo, steps = {(1, 0)}, [(1, 0)], 0
    while todo:
        following = []
        for x, y in todo:
            for a, b in ((1, 0), (0, 1), (-1, 0), (0, -1)):
                at = x + a, y + b
                if 0 <= at[0] < width and 0 <= at[1] < height and at not in walls and at not in seen:
                    seen.add(at)
                    following.append(at)
        todo, steps = following, steps + 1
    return len(seen), steps


class Node:
    def __init__(self, key, value):
        self.key, self.value, self.left, self.right = key, value, None, None


class Map:
    def __init__(self):
        self.root, self.size = None, 0

    def put(self, key, value):
        if self.root is None:
            self.root = Node(key, value)
            self.size += 1
            return
        node = self.root
        while node.key != key:
            side = "left" if key < node.key else "right"
            below = getattr(node, side)
            if below is None:
                setattr(node, side, Node(key, value))
                self.size += 1
                return
            node = below
        node.value = value

    def __getitem__(self, key):
        node = self.root
        while node is not None:
            if key == node.key:
                return node.value
            node = node.left if key < node.key else node.right
        raise KeyError(key)

    def __contains__(self, key):
        try:
            self[key]
        except KeyError:
            return False
        return True


class Tokens:
    kinds = re.compile(r"\s*(?:(\d+\.?\d*)|([A-Za-z_]\w*)|(.))")

    def __init__(self, text):
        self.items = [m.groups() for m in self.kinds.finditer(text)]
        self.at = 0

    def peek(self):
        return self.items[self.at] if self.at < len(self.items) else (None, None, None)

    def take(self):
        token = self.peek()
        self.at += 1
        return token


def total(tokens, names):
    value = product(tokens, names)
    while tokens.peek()[2] in ("+", "-"):
        value = value + product(tokens, names) if tokens.take()[2] == "+" else value - product(tokens, names)
    return value


def product(tokens, names):
    value = atom(tokens, names)
    while tokens.peek()[2] in ("*", "/"):
        value = value * atom(tokens, names) if tokens.take()[2] == "*" else value / atom(tokens, names)
    return value


def atom(tokens, names):
    number, name, sign = tokens.take()
    if number is not None:
        return float(number) if "." in number else int(number)
    if name is not None:
        return names[name]
    if sign == "-":
        return -atom(tokens, names)
    value = total(tokens, names)
    tokens.take()
    return value


def machine(program, steps):
    registers, at = [0] * 8, 0
    for _ in range(steps):
        operation, a, b = program[at]
        if operation == "set":
            registers[a] = b
        elif operation == "add":
            registers[a] += registers[b]
        elif operation == "xor":
            registers[a] ^= registers[b]
        elif operation == "shift":
            registers[a] = (registers[a] << b | registers[a] >> 32 - b) & 0xFFFFFFFF
        elif operation == "jump" and registers[a]:
            at = b
            continue
        at = (at + 1) % len(program)
    return registers


def caesar(text, by):
    out = ""
    for c in text:
        if c.isalpha():
            first = ord("A") if c.isupper() else ord("a")
            out += chr((ord(c) - first + by) % 26 + first)
        else:
            out += c
    return out


def runs(text):
    packed, i = [], 0
    while i < len(text):
        j = i
        while j < len(text) and text[j] == text[i]:
            j += 1
        packed.append(f"{j - i}{text[i]}")
        i = j
    return "".join(packed)


def chunks(source, size):
    part = []
    for item in source:
        part.append(item)
        if len(part) == size:
            yield part
            part = []
    if part:
        yield part


def clusters(points, k, rounds):
    centres = points[:k]
    for _ in range(rounds):
        groups = [[] for _ in range(k)]
        for x, y in points:
            near = min(range(k), key=lambda i: (x - centres[i][0]) ** 2 + (y - centres[i][1]) ** 2)
            groups[near].append((x, y))
        centres = [
            (sum(x for x, _ in g) / len(g), sum(y for _, y in g) / len(g)) if g else c for g, c in zip(groups, centres)
        ]
    return centres


def solve(rows):
    rows = [list(map(float, row)) for row in rows]
    n = len(rows)
    for i in range(n):
        pivot = max(range(i, n), key=lambda k: abs(rows[k][i]))
        rows[i], rows[pivot] = rows[pivot], rows[i]
        for k in range(i + 1, n):
            factor = rows[k][i] / rows[i][i]
            for j in range(i, n + 1):
                rows[k][j] -= factor * rows[i][j]
    found = [0.0] * n
    for i in reversed(range(n)):
        found[i] = (rows[i][n] - sum(rows[i][j] * found[j] for j in range(i + 1, n))) / rows[i][i]
    return found


edit_script("the quick brown fox jumps over a dog " * 4, "a quick red fox leaps over the lazy dog " * 4)
assert knapsack([3, 7, 11, 19, 23, 31] * 4, [5, 9, 17, 21, 40, 44] * 4, 900) > 0
assert hanoi(13) == 2**13 - 1
assert ackermann(2, 60) == 123
shuffled = [i * 7919 % 1009 for i in range(1000)]
assert insertion(shuffled[:300]) == sorted(shuffled[:300]) and quick(shuffled * 8) == sorted(shuffled * 8)
assert sum(p[0] < p[-1] for p in permutations(list(range(7)))) == 2520
flood(90, 70)
table = Map()
for n in shuffled * 3:
    table.put(n, -n)
assert table.size == 1000 and 5 in table and 5000 not in table and table[77] == -77
names = {"x": 4, "rate": 0.25, "n": 10**6}
for i in range(500):
    total(Tokens(f"(x + {i}) * rate - n / ({i} + 1.5) * -(2 - x*x)"), names)
turns = [("set", 1, 77), ("add", 0, 1), ("shift", 0, 5), ("xor", 0, 1), ("add", 2, 0), ("jump", 1, 1)]
machine(turns, 60000)
caesar("It was a bright cold day in April, and the clocks were striking thirteen. " * 120, 3)
runs("".join("ab"[i * i % 7 < 4] * (i % 5 + 1) for i in range(3000)))
sum(len(part) * part[0] for part in chunks((i * i for i in range(30000) if i % 3), 16))
points = [(math.sin(i) * 50 + i % 7, math.cos(i * 1.3) * 20 - i % 11) for i in range(700)]
clusters(points, 5, 5)
solve([[(i * j + i + 3 * j) % 17 + (20 if i == j else 0) for j in range(33)] for i in range(32)])
pairs = collections.defaultdict(int)
for a in range(150):
    for b in range(a, 150):
        if (a ^ b) % 3 and not a & b & 1:
            pairs[a + b, a % 5] += 1
by_length = {}
for word in "it was the best of times it was the worst of times it was the age of wisdom".split() * 700:
    by_length.setdefault(len(word), []).append(word)
report = [f"{n}: {len(ws):>6} {max(ws)[:4]!r} {len(ws) / 7:.2%}" for n, ws in sorted(by_length.items())]
accounts = [{"id": i, "owner": f"user{i % 40}", "balance": i * 37 % 1000 - 300, "open": i % 9 != 0} for i in range(4000)]
owners = {}
for account in accounts:
    if not account["open"] or account["balance"] < 0:
        continue
    entry = owners.setdefault(account["owner"], {"sum": 0, "accounts": []})
    entry["sum"] += account["balance"]
    entry["accounts"].append(account["id"])
ranking = sorted(owners.items(), key=lambda item: item[1]["sum"], reverse=True)[:10]
transposed = list(map(list, zip(*([row["id"], row["balance"], row["owner"]] for row in accounts))))
position, low, high = 0, 0, len(shuffled)
ordered = sorted(shuffled)
for wanted in shuffled * 3:
    low, high = 0, len(ordered) - 1
    while low < high:
        middle = (low + high) // 2
        if ordered[middle] < wanted:
            low = middle + 1
        else:
            high = middle
    position += low
text = bytearray(20000)
for i in range(len(text)):
    text[i] = (i * 31 ^ i >> 3) & 255
checksum = 0
for byte in text:
    checksum = (checksum * 33 + byte) % 4294967296
days, balance = 0, 1000.0
while balance < 50000 and days < 40000:
    balance *= 1.0001
    balance += 0.05 if days % 7 else -0.01
    days += 1
while True:
    days -= 3
    if days < 0:
        break
    if days % 2:
        continue
    balance -= 0.5
is_prime = lambda n: n > 1 and all(n % d for d in range(2, math.isqrt(n) + 1))
assert sum(map(is_prime, range(3000))) == 430
