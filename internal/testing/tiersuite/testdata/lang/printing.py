# print and its arguments; stderr stays apart.
import sys

print()
print("a", "b", sep="")
print("a", "b", 3, None, [1], sep=", ", end=".\n")
print(*"abc", sep="\n")
print("no newline", end="")
print()
print("to stderr", file=sys.stderr)
print(sep="x")
print("flush", flush=True)
print("tab\there", "nul\x00byte", "é", "😀", "\u2028|", "\x1b[0m", "\r|")
print("%s" % "x", end="")
print("", end="\n\n")
print(1, sep=None, end=None)
for kw in ({"sep": 1}, {"end": 1}, {"file": 5}, {"nope": 1}):
    try:
        print("x", **kw)
    except (TypeError, AttributeError) as e:
        print(type(e).__name__, e)


class W:
    def write(self, s):
        parts.append(s)


parts = []
print("to", "object", file=W())
print(parts)


class S:
    def __str__(self):
        return "via str"

    def __repr__(self):
        return "via repr"


class Bad:
    def __str__(self):
        return 5


print(S(), [S()], f"{S()}")
try:
    print("before", Bad())
except TypeError as e:
    print(e)
sys.stdout.write("written ")
print(sys.stdout.write("again\n"))
sys.stderr.write("err\n")
print("x" * 70, len("x" * 70))
print(print, print("nested"))
for i in range(300):
    print(i, end=" ")
print()
