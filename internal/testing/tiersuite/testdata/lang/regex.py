# The re module.
import re

t = "On 2024-02-29 and 2023-12-01, call +49 30 1234 or +1 555 0100; mail a.b@x.org, c@y.de."
print(re.findall(r"\d{4}-\d\d-\d\d", t), re.findall(r"(\w[\w.]*)@(\w+)\.(\w+)", t), re.search(r"\+(\d+)", t), re.match(r"call", t), re.fullmatch(r"O.*\.", t) is not None)
m = re.search(r"(?P<y>\d+)-(?P<m>\d+)-(?P<d>\d+)", t)
print(m.group(), m.group("y", "m"), m["d"], m.groups(), m.groupdict(), m.span(), m.start("m"), m.end(2), m.lastgroup, m.lastindex, m.re.groups, m.pos, m.expand(r"\g<d>/\2/\1"), t[: m.start()])
print(re.sub(r"\d+", "#", t, count=3), re.sub(r"(\w+)@(\w+)", r"\2 at \1", t)[-25:], re.subn("a", "A", "banana"), re.sub(r"\d+", lambda q: str(int(q[0]) + 1), "a9 b99"), re.sub("x*", "-", "abxd"))
print(re.split(r"[;,]\s*", t), re.split(r"(-)", "a-b-c", maxsplit=1), re.split(r"\b", "hi you"), re.split("x*", "axbc"))
print([x.span() for x in re.finditer(r"\b\w{2}\b", t)], re.escape("a.b*c[d]"), re.compile("a").pattern, re.compile("a", re.I | re.M).flags)
print(re.findall(r"(?i)ON|AND", t), re.findall(r"(?m)^\w+$", "ab\ncd e\nfg"), re.findall(r"(?s)a.b", "a\nb"), re.findall(r"a.b", "a\nb"), re.findall(r"""(?x) \d+  # digits
   \s*   # blanks
   k""", "5 k 6k"), re.findall(r"\w+", "naïve Москва 东京"), re.findall(r"(?a)\w+", "naïve Москва"))
print(re.findall(r"(?<=\$)\d+(?!\d|\.)", "$5 $10.5 $77"), re.findall(r"(?<!\d)\d{2}(?=px)", "10px 123px 45px"), re.findall(r"(\w)\1", "aabbcd"), re.findall(r"(?P<q>['\"]).*?(?P=q)", "'a' \"b'"), re.search(r"(a)?(?(1)b|c)", "c"), re.findall(r"(?>a+)b", "aaab"), re.findall(r"a++b", "aab"))
print(re.findall(r"<.*>", "<a><b>"), re.findall(r"<.*?>", "<a><b>"), re.findall(r"x{2,3}?", "xxxxx"), re.findall(r"a|ab|abc", "abc"), re.findall(r"^|$|x", "ax"), re.findall("", "ab"), re.findall(r"[^\W\d_]+", "ab1_c"), re.findall(r"[\]\-a]", "a-]"), re.findall(r"\.|\\", r"a.\b"))
print(re.match(r"(\d+)(?:\.(\d+))?", "3").groups(), re.match(r"(\d+)(?:\.(\d+))?", "3").groups("0"), re.match("(a)|(b)", "b").group(1), re.match(r"(a)|b", "b").span(1), re.search("z", t), bool(re.match("", "")))
p = re.compile(r"b+")
print(p.search("abbb", 2), p.match("abbb", 1), p.fullmatch("abb", 1), p.findall("b bb bbb", 2), p.split("abc"), p.sub("-", "abbc"), p == re.compile("b+"), p.groupindex)
print(re.findall(rb"\w+", b"by tes"), re.sub(rb"\x00", b"", b"a\x00b"), re.IGNORECASE, re.findall("ß|ſ", "sSßſ", re.I), re.findall("[а-я]+", "Привет МИР", re.I), re.search("İ", "i̇", re.I))
for bad in ("(", "[a", "*a", "a**", "(?P<1>x)", "(?P<n>a)(?P<n>b)", r"\1", "(?<=a+)b", "a{3,1}", "(?z)", "[b-a]", "(?P=no)", "x(?i)", r"\q", "(?(2)a)"):
    try:
        re.compile(bad)
        print(bad, "fine")
    except re.error as e:
        print(bad, "->", e.msg, e.pos)
try:
    re.search("a", b"a")
except TypeError as e:
    print(e)
scan = re.compile(r"(?P<num>\d+)|(?P<op>[-+*/()])|(?P<ws>\s+)|(?P<bad>.)")
print([(m.lastgroup, m[0]) for m in scan.finditer("12+(3 * x)") if m.lastgroup != "ws"])
print(re.sub(r"(?P<a>.)(?P<b>.)", r"\g<b>\g<a>", "abcd"), re.sub("a", r"\\n\n", "a"), re.sub(".", "\\g<0>\\g<0>", "ab"), repr(re.search("b", "abc")), re.compile("x"), re.purge())
