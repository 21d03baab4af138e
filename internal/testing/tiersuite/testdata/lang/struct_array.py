# struct and array with explicit sizes.
import array
import struct

print(struct.pack("<bhiqBHIQ?fd", -1, -2, -3, -4, 1, 2, 3, 4, True, 1.5, 2.25).hex(), struct.pack(">hh", 1, -1), struct.pack("!4s2xI", b"ab", 7), struct.pack("=5p", b"abc"))
print(struct.unpack("<hi", b"\x01\x00\xff\xff\xff\xff"), struct.calcsize("<bhi"), struct.calcsize("!4s2xI"), list(struct.iter_unpack(">H", b"\x00\x01\x00\x02")), struct.unpack_from(">H", b"\x00\x00\x05\x00", 1), struct.unpack("<e", struct.pack("<e", 1.5)), struct.unpack("3c", b"abc"))
s = struct.Struct(">IH")
buf = bytearray(10)
s.pack_into(buf, 2, 0xDEADBEEF, 0xCAFE)
print(buf.hex(), s.size, s.format, s.unpack(buf[2:8]))
for bad in (lambda: struct.pack("<b", 200), lambda: struct.pack("<h", "x"), lambda: struct.unpack("<i", b"abc"), lambda: struct.pack("<i"), lambda: struct.pack("z", 1), lambda: struct.pack_into("<i", bytearray(2), 0, 1), lambda: struct.pack("<I", -1), lambda: struct.pack("<f", 1e300)):
    try:
        print(bad())
    except (struct.error, OverflowError) as e:
        print(type(e).__name__, e)
print(struct.unpack("<f", struct.pack("<f", 0.1))[0], struct.unpack("<d", struct.pack("<d", 0.1))[0], struct.pack("<d", float("nan")).hex(), struct.pack("<d", -0.0).hex())
a = array.array("h", [1, 2, 3])
a.append(4)
a.extend([5])
a[1:3] = array.array("h", [9])
print(a, a.tolist(), a.itemsize, a.typecode, a.tobytes().hex(), a.index(9), a.count(1), a.pop(), a[::-1], a + a, len(a))
a.byteswap()
print(a, array.array("d", [1.5]).tolist(), array.array("B", b"ab"), array.array("w", "hé").tounicode())
for bad in (lambda: array.array("b", [200]), lambda: array.array("q", [1.5]), lambda: array.array("z"), lambda: a.append("x")):
    try:
        bad()
    except (OverflowError, TypeError, ValueError) as e:
        print(type(e).__name__, str(e).split(" (must be")[0])
header = struct.Struct("<4sHHI")
blob = b"".join(header.pack(b"REC%d" % i, i, i * 2, i ** 5) for i in range(4))
print([header.unpack_from(blob, o) for o in range(0, len(blob), header.size)])
