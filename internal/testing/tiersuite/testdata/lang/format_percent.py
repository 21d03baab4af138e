# printf-style formatting.
print("%d %i %5d|%-5d|%05d|%+d|% d|%x %X %#o %#x" % (1, 2, 3, 4, 5, 6, 7, 255, 255, 8, 255))
print("%s %r %a %10s|%-10s|%.2s|%c%c %%" % ("é", "é", "é", "right", "left", "cut", 65, "B"))
print("%f %.2f %10.3f|%e %G %g %g" % (1.5, 2.675, 3.14159, 12345.678, 1e-10, 1e5, 1e-5))
print("%(name)s is %(age)03d %(name)r" % {"name": "Al", "age": 7}, "%*d|%-*d|%.*f" % (5, 42, 5, 42, 2, 3.14159))
print("%s" % (("tuple",),), "%s %s" % ("a", None), "%s" % [1], "%s" % {"k": 1}, "no args" % (), "%d" % 3.9, "%d" % (10 ** 20), "%i" % True)
for fmt, arg in (("%d", "x"), ("%s %s", ("a",)), ("%s", ("a", "b")), ("%q", 1), ("%(k)s", {}), ("%(k)s", 5), ("%c", "ab"), ("%c", -1), ("%", 1), ("%x", 1.5), ("%d", None), ("%*d", ("a", 1)), ("%f", "1")):
    try:
        print(fmt % arg)
    except (TypeError, ValueError, KeyError, OverflowError) as e:
        print(repr(fmt), type(e).__name__, e)


class R:
    def __repr__(self):
        return "R!"

    def __int__(self):
        return 5

    def __index__(self):
        return 6

    def __float__(self):
        return 2.5


print("%s %r %d %x %.1f" % ((R(),) * 5), b"%s %d %a" % (b"x", 5, "é"), "%#X %#.3g %+.1e" % (255, 1.0, -12345))
