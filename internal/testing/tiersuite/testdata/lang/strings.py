# str methods in ASCII, literals, escapes, translation.
s = "Hello, World"
print(s.upper(), s.lower(), s.swapcase(), s.title(), s.casefold(), "hELLO".capitalize(), s.center(20, "*"), s.ljust(15, ".") + "|", s.rjust(15) + "|", "42".zfill(5), "-42".zfill(5))
print(s.find("o"), s.find("o", 5), s.rfind("o"), s.index("W"), s.count("l"), s.count(""), s.find(""), s.find("zz"), s.startswith(("He", "x")), s.endswith("ld", 3), s.find("o", -4, -1))
print("  x y ".strip(), "xxhixx".strip("x"), "xxhi".lstrip("x"), "hixx".rstrip("x"), "a-b-c".removeprefix("a-").removesuffix("-c"), "abcabc".strip("ac"))
print("a,b,,c".split(","), " a  b c ".split(), "a b c".split(" ", 1), "a b c".rsplit(" ", 1), "".split(), "".split(","), "a\nb\r\nc\x0bd\x85e\u2028f".splitlines(), "a\nb\n".splitlines(True), "abc".partition("b"), "abc".rpartition("x"))
print("-".join(["a", "b"]), "ab" * 3, "b" in "abc", "abc" < "abd", "Z" < "a", "abc"[::-1], "abc"[5:], "x".join("123"), "" or "empty")
print("abc".replace("b", "BB"), "aaaa".replace("a", "b", 2), "abc".replace("", "-"), "tab\tx".expandtabs(8), "hello".translate(str.maketrans("el", "ip")), "hello".translate({ord("h"): None, ord("o"): "0!"}), "abc".translate(str.maketrans("a", "b", "c")))
print([f() for f in ("abc1".isalnum, "abc".isalpha, "123".isdigit, "1.5".isnumeric, "a b".isidentifier, "abc".islower, "ABC".isupper, " \t".isspace, "Ab Cd".istitle, "\n".isprintable, "é".isascii, "".isalpha, "".isascii)])
print("a\tb\\n", r"raw\n", "\x41\u00e9\U0001F600\N{SNOWMAN}", 'it''s', "con" "cat", """multi
line""", "\
continued", "nul\0in".encode(), len("nul\0in"))
print(repr("it's"), repr('say "hi"'), repr("both ' and \""), repr("\n\t\\\x00\x7f\xa0é\u200b😀\ud800"), ascii("é😀"))
print(str(b"x"), str(b"caf\xc3\xa9", "utf-8"), str(None), str([1, "a"]), str(1.0), chr(9731), ord("é"), "%s" % "x", "a" "b".upper())
for bad in (lambda: "abc"[3], lambda: "abc".index("z"), lambda: "a" * "b", lambda: "a" + 1, lambda: "".join([1]), lambda: "a".split(""), lambda: "abc".__setitem__(0, "x"), lambda: "x".encode("nope"), lambda: "x".zfill("a"), lambda: "a".ljust(3, "ab")):
    try:
        print(bad())
    except (IndexError, ValueError, TypeError, AttributeError, LookupError) as e:
        print(type(e).__name__, e)
a = "x"
a += "y"
a *= 2
print(a, hash("a") == hash("a"), "abc" == "abc", max("hello"), sorted("hello"), list(enumerate("ab")), dict.fromkeys("abca"))
print("one two three".title(), "they're bill's".title(), "ǆ".title(), "a1b2".upper(), "x".isidentifier(), "class".isidentifier(), "1x".isidentifier())


class S(str):
    def __add__(self, o):
        return S(str.__add__(self, o))

    def shout(self):
        return self.upper() + "!"


print((S("a") + "b").shout(), type(S("a").upper()).__name__, S("q") == "q", f"{S('w'):>3}")
