import math
from collections import Counter, OrderedDict, defaultdict, deque
from decimal import Decimal
from datetime import datetime, timedelta, timezone
from fractions import Fraction

numbers = [1, -2, 10**40, 1.5, float("inf"), -0.0, True, None, 3 + 4j, ...]
text = "naïve ☃ 🎉" * 3
raw = bytes(range(256))
buffer = bytearray(b"abc")
shared = [1, 2]
pair = {"a": shared, "b": shared}
loop = []
loop.append(loop)
ring = {"self": None}
ring["self"] = ring
sets = {1, 2}, frozenset({("x", 1)})
counts = Counter("hello world")
groups = defaultdict(list, {"k": [1]})
ordered = OrderedDict([("z", 1), ("a", 2)])
queue = deque([1, 2, 3], maxlen=3)
money = Decimal("1.10"), Fraction(1, 3)
when = datetime(2024, 2, 29, 12, 30, tzinfo=timezone.utc), timedelta(days=1, seconds=2)
span, part = range(2, 20, 3), slice(1, None, 2)
rows = [{"id": i, "name": f"row {i}", "tags": ["x", "y"]} for i in range(500)]
answer_text = rows[3]["name"]
# --- the next snippet ---
print(numbers, text, raw[:5], len(raw), buffer)
print(pair["a"] is pair["b"], pair["a"] is shared, loop[0] is loop, ring["self"] is ring)
shared.append(3)
print(pair, len(rows), rows[499], answer_text)
groups["new"].append(2)
queue.append(4)
print(counts.most_common(2), dict(groups), list(ordered), queue, queue.maxlen)
print(sets, money, when, list(span), part, math.copysign(1, numbers[5]))
# --- the next snippet ---
shared.append(4)
print(pair["b"], groups, math.floor(2.5))
