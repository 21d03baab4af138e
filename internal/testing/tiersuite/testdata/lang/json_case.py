# json: both directions, options, errors with positions.
import io
import json
from collections import OrderedDict

v = {"s": "é\"\\\n\u2028😀", "n": [1, -2.5, 1e100, 0.1], "t": True, "f": False, "z": None, "o": {"k": []}, "i": 2 ** 70}
s = json.dumps(v)
print(s)
assert json.loads(s) == v
print(json.dumps(v, ensure_ascii=False), json.dumps(v, sort_keys=True, separators=(",", ":")))
print(json.dumps({"a": [1, {"b": 2}], "c": {}}, indent=2), json.dumps([], indent=1), json.dumps((1, 2)), json.dumps({1: 1, None: 2, True: 3, 1.5: 4}), json.dumps("\x00\x1f\x7f/"))
print(json.dumps([float("nan"), float("inf")]), json.loads("[NaN, -Infinity]"), json.loads('{"a":1,"a":2}'), json.loads(' [1 , 2 ] '), json.loads('"\\ud83d\\ude00\\u00e9"'), ascii(json.loads('"\\ud800"')), json.loads(b'{"b": "\xc3\xa9"}'), json.loads("1E5"), json.loads("-0"), json.loads("-0.0"))
print(json.loads('{"x": 1.10}', parse_float=str), json.loads("[1, 2]", parse_int=lambda q: q + "!"), json.loads('{"b": 1, "a": 2}', object_pairs_hook=OrderedDict), json.loads('{"p": {"q": 1}}', object_hook=lambda d: sorted(d)))
for bad in ("", "{", "[1,]", '{"a" 1}', "{'a': 1}", "[1 2]", "nul", '"abc', '"\n"', "01", "1 2", '{"a":1,}', '"\\x"', '"\\u12"', "[1]]", "\ufeff1", "+1", ".5", "[\n\n x]"):
    try:
        print(repr(bad), json.loads(bad))
    except json.JSONDecodeError as e:
        print(repr(bad), "->", e, "|", e.msg, e.pos, e.lineno, e.colno)


class P:
    pass


loop = []
loop.append(loop)
for bad in (P(), {1, 2}, b"x", {(1, 2): 3}, loop, [float("nan")]):
    try:
        print(json.dumps(bad, allow_nan=False))
    except (TypeError, ValueError) as e:
        print(type(e).__name__, e)
print(json.dumps({1, 2}, default=sorted), json.dumps({(1, 2): 3, "k": 1}, skipkeys=True))


class Enc(json.JSONEncoder):
    def default(self, o):
        return {"re": o.real, "im": o.imag} if isinstance(o, complex) else super().default(o)


print(json.dumps([1j, 2], cls=Enc), list(json.JSONEncoder().iterencode([1, {"a": 2}])), json.JSONDecoder().raw_decode('{"a": 1} tail'))
f = io.StringIO()
json.dump({"k": [1]}, f)
f.seek(0)
print(json.load(f), json.loads("[" * 50 + "]" * 50) is not None)
big = [{"id": i, "name": f"n{i}", "tags": ["a"] * (i % 3)} for i in range(500)]
assert json.loads(json.dumps(big)) == big and json.loads(json.dumps(big, indent=1)) == big
lines = "\n".join(json.dumps(r) for r in big[:3])
print([json.loads(l)["name"] for l in lines.splitlines()], len(json.dumps(big)))


class I(int):
    pass


class S(str):
    pass


print(json.dumps([I(5), S("s"), True, 10 ** 25]), type(json.loads("1")).__name__, type(json.loads("1.0")).__name__)
