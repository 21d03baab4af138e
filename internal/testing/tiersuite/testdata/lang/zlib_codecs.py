# zlib, gzip in memory, zipfile in memory, codecs, quopri.
import codecs
import gzip
import io
import zipfile
import zlib

data = b"the same text again and again " * 200
z = zlib.compress(data, 9)
print(zlib.decompress(z) == data, len(z) < 100, zlib.decompress(zlib.compress(b"")), gzip.decompress(gzip.compress(data)) == data)
c = zlib.compressobj(wbits=-15)
raw = c.compress(data[:100]) + c.compress(data[100:]) + c.flush()
d = zlib.decompressobj(wbits=-15)
print((d.decompress(raw, 50) + d.decompress(d.unconsumed_tail) + d.flush()) == data, d.eof, d.unused_data)
for bad in (b"junk", z[:-5], b""):
    try:
        zlib.decompress(bad)
    except zlib.error as e:
        print(e)
f = io.BytesIO()
with zipfile.ZipFile(f, "w", zipfile.ZIP_DEFLATED) as zf:
    zf.writestr("a/b.txt", "héllo")
    zf.writestr("c.bin", data)
with zipfile.ZipFile(f) as zf:
    print(zf.namelist(), zf.read("a/b.txt").decode(), zf.getinfo("c.bin").file_size, zf.testzip())
    with zf.open("a/b.txt") as m:
        print(m.read(2))
try:
    zipfile.ZipFile(io.BytesIO(b"not a zip"))
except zipfile.BadZipFile as e:
    print(e)
with gzip.open(g := io.BytesIO(), "wt", encoding="utf-8") as w:
    w.write("line1\nline2\n")
g.seek(0)
print(gzip.open(g, "rt").readlines())
print(codecs.encode("héllo", "rot13"), codecs.decode("68690a", "hex"), codecs.encode(b"x", "base64"), codecs.lookup("utf8").name, codecs.BOM_UTF8, "\ufeffx".encode("utf-8-sig"), b"\xef\xbb\xbfx".decode("utf-8-sig"), "é".encode("punycode"), "a\\n".encode().decode("unicode_escape"), codecs.escape_decode(b"\\x41")[0])
dec = codecs.getincrementaldecoder("utf-8")()
print([dec.decode(bytes([x])) for x in "é😀".encode()], dec.decode(b"", True))
codecs.register_error("q", lambda e: ("?" * (e.end - e.start), e.end))
print("aéb😀".encode("ascii", "q"), codecs.getwriter("utf-8")(io.BytesIO()).encode("é")[0], list(codecs.iterdecode([b"\xc3", b"\xa9"], "utf-8")))
try:
    "x".encode("no-such-codec")
except LookupError as e:
    print(e)
