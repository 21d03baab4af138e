# sys.stdin as a stream: its names, its descriptor, what it refuses.
import io
import sys

i = sys.stdin
print(i, i.name, i.mode, i.fileno(), i.encoding, i.errors, i.readable(), i.writable(), i.isatty(), i.closed, i is sys.__stdin__)
print(i.buffer.name, i.buffer.mode, i.buffer.fileno(), i.buffer.raw.name, i.buffer.raw.mode, i.buffer.raw.fileno())
print(isinstance(i, io.TextIOWrapper), isinstance(i.buffer, io.BufferedReader), isinstance(i.buffer.raw, io.RawIOBase))
print(i.buffer.read(), i.buffer.read(5), i.buffer.read1(), i.buffer.peek(), i.buffer.readline(), i.buffer.raw.read(3), list(i.buffer))
print(repr(i.read(3)), i.readlines(), [line for line in i])
for attempt in (lambda: i.write("x"), lambda: i.buffer.write(b"x"), lambda: next(i), lambda: sys.stdout.read()):
    try:
        attempt()
    except (io.UnsupportedOperation, AttributeError, StopIteration) as e:
        print(type(e).__name__, e)
for stream in (sys.stdout, sys.stderr):
    print(stream.name, stream.mode, stream.fileno(), stream.buffer.name, stream.buffer.mode, stream.buffer.raw.mode)
sys.stdin = io.StringIO("three\n4")
print(input(), int(input()))
try:
    input()
except EOFError as e:
    print(e)
sys.stdin = i
