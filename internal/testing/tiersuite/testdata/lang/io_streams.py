# io: StringIO, BytesIO, TextIOWrapper, buffered readers, the standard streams.
import io
import sys

s = io.StringIO("line one\nline two\n\nlast")
print(s.readline(), s.read(4), s.tell(), s.readlines(), s.read(), s.seek(0), list(s), s.seek(5), s.readline(2), s.getvalue()[:4])
w = io.StringIO()
print("x", 1, file=w, end="!")
w.write("é😀")
w.writelines(["a", "b"])
w.seek(2)
w.write("ZZ")
w.truncate(5)
print(repr(w.getvalue()), w.readable(), w.writable(), w.seekable(), w.closed)
print(repr(io.StringIO("a\r\nb\rc\n", newline=None).read()), repr(io.StringIO("a\r\nb", newline="").readlines()), repr(io.StringIO("a\nb", newline="\r\n").getvalue()))
b = io.BytesIO(b"abc\ndef")
print(b.read(2), b.readline(), b.getbuffer().nbytes, b.seek(-2, io.SEEK_END), b.read(), b.tell(), b.seek(1), b.write(b"ZZ"), b.getvalue(), b.read1(2))
buf = bytearray(3)
b.seek(0)
print(b.readinto(buf), buf, b.truncate(2), b.getvalue())
t = io.TextIOWrapper(io.BytesIO("é1\nü2\n".encode("latin-1")), encoding="latin-1")
print(t.read(2), t.readline(), list(t), t.encoding, t.errors)
out = io.BytesIO()
tw = io.TextIOWrapper(out, "utf-8", newline="\r\n", write_through=True)
tw.write("é\n")
tw.flush()
print(out.getvalue(), tw.detach() is out)
r = io.BufferedReader(io.BytesIO(b"0123456789"), buffer_size=4)
print(r.peek(2)[:2], r.read(3), r.tell(), r.read())
bw = io.BufferedWriter(q := io.BytesIO())
bw.write(b"pending")
bw.flush()
print(q.getvalue())
for bad in (lambda: io.StringIO(b"x"), lambda: io.BytesIO("x"), lambda: s.write(b"b"), lambda: b.write("s"), lambda: io.StringIO("x").seek(-1), lambda: io.StringIO("x").seek(1, 1), lambda: io.TextIOWrapper(io.BytesIO(b"\xff"), "utf-8").read(), lambda: io.BytesIO().fileno()):
    try:
        print(bad())
    except (TypeError, ValueError, OSError) as e:
        print(type(e).__name__, e)
s.close()
try:
    s.read()
except ValueError as e:
    print(e)


class Upper(io.TextIOBase):
    def __init__(self):
        self.got = []

    def write(self, x):
        self.got.append(x.upper())
        return len(x)


u, old = Upper(), sys.stdout
sys.stdout = u
try:
    print("captured", 1)
finally:
    sys.stdout = old
print(u.got, sys.stdout.writable(), sys.stdout.encoding.lower(), isinstance(sys.stdout, io.TextIOBase))
with io.StringIO() as f:
    f.write("in with")
    print(f.getvalue())
print(f.closed, sys.stdout.write("direct\n"))
sys.stdout.flush()
