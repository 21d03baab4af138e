# bytes, bytearray, memoryview.
b = b"hello\x00\xff"
print(b, b[0], b[1:3], b[-1], len(b), list(b[:3]), b.hex(), b.hex("-", 2), bytes.fromhex("de ad BE ef"), bytes(3), bytes([65, 66]), bytes("é", "utf-8"), b"%d-%s" % (5, b"x"))
print(b.upper(), b.find(b"l"), b.find(0xFF), b.count(b"l"), b.replace(b"l", b"LL"), b.split(b"l"), b"a,b".partition(b","), b" x ".strip(), b"ab".center(6, b"*"), b"x".join([b"1", b"2"]), b.startswith(b"he"), b"abc".translate(bytes.maketrans(b"a", b"z"), b"c"))
print(b"a" + b"b", b"ab" * 2, b"b" in b"abc", 98 in b"abc", b"a" < b"b", b"a" == "a", hash(b"a") == hash(b"a"), b"AbC".swapcase(), b"a\tb".expandtabs(4), b"x\ny\r\nz".splitlines(), b"12".isdigit(), b"42".zfill(4), b"abc".removeprefix(b"a"))
ba = bytearray(b"abc")
ba.append(100)
ba.extend(b"ef")
ba[0] = 65
ba[1:3] = b"XYZ"
del ba[-1]
ba.insert(0, 33)
print(ba, ba.pop(), ba, ba.find(b"Y"), bytes(ba), ba.copy() == ba)
ba.reverse()
ba.remove(33)
ba += b"!"
ba *= 2
print(ba, ba.decode(), len(ba))
ba.clear()
print(ba, bytearray(2), bytearray(b"q").hex())
m = memoryview(bytearray(range(12)))
m[0:2] = b"\xff\xfe"
print(m[0], m[1:4].tolist(), m.tobytes().hex(), m.nbytes, m.readonly, m.format, m.cast("H").shape, m.cast("B", (3, 4)).tolist()[1], m[::-3].tolist())
m.release()
try:
    m[0]
except ValueError as e:
    print(e)
grow = bytearray(4)
view = memoryview(grow)
try:
    grow.append(1)
except BufferError as e:
    print(e)
for bad in (lambda: b"a" + "b", lambda: bytes([256]), lambda: bytes("x"), lambda: b"abc".index(b"z"), lambda: bytes.fromhex("zz"), lambda: b"\xff".decode(), lambda: bytes(-1), lambda: b"x".join(["a"]), lambda: memoryview("x"), lambda: bytearray(b"a").__setitem__(0, 300)):
    try:
        print(bad())
    except (TypeError, ValueError) as e:
        print(type(e).__name__, e)
print(repr(b"'"), repr(b'"'), repr(b"\t\n\\"), str(b"x"), rb"\n", bytes(range(120, 135)), b"\x41\102")


class B:
    def __bytes__(self):
        return b"custom"


class Buf:
    def __buffer__(self, flags):
        return memoryview(b"buffered")


print(bytes(B()), bytes(Buf()), int.from_bytes(b"\x01\x00"), sum(b"abc"), max(b"abc"), sorted(b"cab"), bytes(reversed(b"abc")), bytes(i ^ 1 for i in b"abc"))
