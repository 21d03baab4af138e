# collections: Counter, deque, defaultdict, OrderedDict, ChainMap, namedtuple, User*.
from collections import ChainMap, Counter, OrderedDict, UserDict, UserList, UserString, defaultdict, deque, namedtuple

c = Counter("abracadabra")
print(c, c.most_common(2), c["z"], sorted(c.elements())[:6], c.total(), c + Counter(a=1), c - Counter(a=10), c & Counter(a=2, b=9), c | Counter(z=1), +Counter(a=-1, b=1), Counter(a=1) <= Counter(a=2))
c.update("aaa")
c.subtract({"b": 5})
print(c, dict(c), Counter(x=1) == Counter(x=1, y=0))
d = deque([1, 2, 3], maxlen=3)
d.append(4)
d.appendleft(0)
print(d, d.pop(), d.popleft(), d, d.maxlen)
d = deque("abcd")
d.rotate(1)
d.extendleft("xy")
d.insert(2, "i")
d.remove("a")
print(d, d[1], d.index("i"), d.count("x"), list(reversed(d)), "b" in d, len(d), d == deque(list(d)), d + deque("z"))
try:
    deque(maxlen=1).pop()
except IndexError as e:
    print(e)
dd = defaultdict(list)
for k, v in [("a", 1), ("b", 2), ("a", 3)]:
    dd[k].append(v)
print(dd, dd.default_factory, "q" in dd, dd.get("q"), dict(dd), defaultdict(int, a=1)["z"], defaultdict(lambda: defaultdict(int))["x"]["y"])
try:
    defaultdict(None)["k"]
except KeyError as e:
    print(repr(e))
od = OrderedDict(a=1, b=2, c=3)
od.move_to_end("a")
od.move_to_end("c", last=False)
print(od, od.popitem(last=False), od == {"a": 1, "b": 2}, od == OrderedDict(b=2, a=1), list(reversed(od)))
cm = ChainMap({"a": 1}, {"a": 2, "b": 3})
cm["c"] = 9
print(cm["a"], cm["b"], dict(cm), cm.maps, cm.parents, cm.new_child({"a": 0})["a"], len(cm), list(cm))
P = namedtuple("P", "x y z", defaults=[0])
p = P(1, 2)
print(p, p.x, p[1], p._asdict(), p._replace(z=5), P._make([1, 2, 3]), P._fields, P._field_defaults, p == (1, 2, 0), [*p], P.__doc__)
for bad in (lambda: P(1), lambda: P(1, 2, 3, 4), lambda: setattr(p, "x", 1), lambda: namedtuple("Q", "class x"), lambda: namedtuple("Q", "a a"), lambda: namedtuple("Q", "_x"), lambda: p._replace(q=1)):
    try:
        bad()
    except (TypeError, ValueError, AttributeError) as e:
        print(type(e).__name__, e)
print(namedtuple("R", "class x x", rename=True)._fields)


class Low(UserDict):
    def __setitem__(self, k, v):
        super().__setitem__(k.lower(), v)


u = Low(A=1)
u.update(B=2)
print(u, u.data, UserList([3, 1]) + [2], sorted(UserList([3, 1])), UserString("ab") + "c", UserString("x").upper())


class Pt(namedtuple("Base", "x y")):
    __slots__ = ()

    @property
    def norm(self):
        return (self.x ** 2 + self.y ** 2) ** 0.5


print(Pt(3, 4).norm, Pt(1, 2))


class LRU(OrderedDict):
    def __init__(self, n):
        super().__init__()
        self.n = n

    def put(self, k, v):
        self[k] = v
        self.move_to_end(k)
        if len(self) > self.n:
            self.popitem(last=False)


l = LRU(2)
for k in "abac":
    l.put(k, 1)
print(list(l))
