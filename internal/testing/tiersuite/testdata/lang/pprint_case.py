# pprint, reprlib and difflib.
import difflib
import pprint
import reprlib
from collections import Counter, OrderedDict, defaultdict, deque
from dataclasses import dataclass, field


@dataclass
class Node:
    name: str
    kids: list = field(default_factory=list)


data = {"b": [1, 2, {"nested": list(range(30))}], "a": "text " * 30, "c": (1,), "set": {3, 1, 2}, "node": Node("root", [Node("kid " * 10), Node("kid2 " * 10)])}
pprint.pprint(data)
pprint.pprint(data, width=40, depth=2, compact=True, sort_dicts=False)
print(pprint.pformat([list(range(5))] * 3, width=20, indent=2), pprint.pformat(OrderedDict(a=1)), pprint.pformat(Counter("aab")), pprint.pformat(deque([1])), pprint.pformat(defaultdict(int, a=1)), pprint.pformat(10 ** 9, underscore_numbers=True))
loop = [1]
loop.append(loop)
print(pprint.pformat(loop)[:30].split(" with")[0], pprint.isrecursive(loop), pprint.isreadable([1]), pprint.saferepr({"b": 1, "a": 2}), reprlib.repr(list(range(100))), reprlib.repr("x" * 100), reprlib.repr({i: i for i in range(10)}))
a, b = "one\ntwo\nthree\n".splitlines(True), "one\n2\nthree\nfour\n".splitlines(True)
print("".join(difflib.unified_diff(a, b, "old", "new")), "".join(difflib.ndiff(a, b)), "".join(difflib.context_diff(a, b)))
s = difflib.SequenceMatcher(None, "abcdef", "abxdef")
print(s.ratio(), s.get_opcodes(), s.find_longest_match(), [tuple(m) for m in s.get_matching_blocks()], difflib.get_close_matches("appel", ["ape", "apple", "peach"]), list(difflib.restore(difflib.ndiff(a, b), 1)) == a)
