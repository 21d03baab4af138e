"""Questions about a long text, asked by compare.sh in the sandbox and in CPython.

`context` is the text, `context_1` JSON lines. Each answer is printed as a line:
name, milliseconds, answer. A long answer is given by its length and its hash.
"""

import collections
import csv
import hashlib
import io
import itertools
import json
import re
import time

text, n = context, len(context)
marks = [n * k // 17 + k for k in range(17)]
part = context[n // 3 : n // 3 + 24_000_000]
m = len(part)


def ask(name, question):
    start = time.perf_counter()
    try:
        answer = question()
    except Exception as error:
        answer = f"{type(error).__name__}: {error}"
    shown = repr(answer)
    if len(shown) > 48:
        digest = hashlib.sha256(shown.encode("utf-8", "surrogatepass")).hexdigest()
        shown = f"{shown[:20]}… {len(shown)} {digest[:16]}"
    print(name, round(1000 * (time.perf_counter() - start)), shown, sep="\t", flush=True)


def digest(items):
    """How many items there are, and a hash of them all."""
    count, sums = 0, hashlib.sha256()
    for count, item in enumerate(items, 1):
        sums.update(repr(item).encode("utf-8", "surrogatepass"))
    return count, sums.hexdigest()


def span(match):
    return match and (match.span(), match.group(), match.groups())


def error(question):
    try:
        return question()
    except Exception as e:
        return type(e).__name__


# Size, counts, positions.
needles = ["| ERROR\n", "LIB-", "E-77", "@branch.example", "\n\n", "Київ", "São", "ครับ", "é", "“", "図書館", "🏡", " ", "absent\0"]
ask("length", lambda: n)
for needle in needles:
    ask(f"count {needle!r}", lambda: text.count(needle))
ask("count between offsets", lambda: [text.count(s, n // 3, -n // 5) for s in needles])
ask("count of nothing", lambda: (text.count(""), text.count("", n), text.count("", n + 1), text.count("", 5, 2)))
ask("find", lambda: [text.find(s) for s in needles])
ask("find from offsets", lambda: [text.find(s, a) for s in needles[:-1] for a in marks])
ask("find between offsets", lambda: [text.find(s, a, a + 90) for s in needles for a in marks])
ask("rfind", lambda: [text.rfind(s) for s in needles])
ask("rfind between offsets", lambda: [text.rfind(s, -m, a) for s in needles for a in marks])
ask("find at the ends", lambda: [text.find("", a) for a in (0, n, n + 1, -1, -n - 9)] + [text.rfind("", 3, 7)])
ask("index, rindex", lambda: [error(lambda: f(s)) for s in needles for f in (text.index, text.rindex)])
ask("in", lambda: [s in text for s in needles])
ask("starts and ends", lambda: [(text.startswith(("LIB", text[a : a + 9]), a), text.endswith(text[a - 9 : a], 0, a)) for a in marks])

# Parts by offsets, from both ends.
ask("slices", lambda: [text[a : a + 300] for a in marks])
ask("slices from the end", lambda: [text[a - n - 7 : a - n + 200] for a in marks])
ask("slices beyond the ends", lambda: (text[n - 9 :], text[: 9 - n], text[n:], text[-n - 9 : 9], text[9:3], text[10**12 :]))
ask("long slices", lambda: [digest([text[a : a + 3_000_000]]) for a in marks[::4]])
ask("slice of a slice", lambda: [text[n // 4 : -n // 4][a:][: n // 9][-99:] for a in (0, 1000, n // 5)])
ask("characters", lambda: [text[i] for a in marks for i in (a, -a - 1)])
ask("characters beyond", lambda: [error(lambda: text[i]) for i in (n - 1, n, -n, -n - 1)])
ask("steps", lambda: [text[a : a + 70_000 : 7] + text[a + 70_000 : a : -11] for a in marks])
ask("steps over all", lambda: (text[::1_000_003], text[::-999_983]))
ask("joins of slices", lambda: "|".join(text[a : a + 50] for a in marks[::-1]) + "".join(text[i] for i in range(0, n, n // 999)))
ask("strip", lambda: [len(t) for t in (text.strip(), text.lstrip("LIB-0"), text.rstrip(), text.strip("absent"))])
ask("affixes", lambda: [len(t) for t in (text.removeprefix("LIB"), text.removesuffix("\n"), text.removeprefix("no"))])

# Lines and other parts.
for name, split in (("split by lines", lambda: text.split("\n")), ("splitlines", text.splitlines)):
    ask(name, lambda: (lambda p: (len(p), [p[len(p) * k // 9 : len(p) * k // 9 + 20] for k in range(9)], p[-3:], p[-len(p)]))(split()))
ask("splitlines with ends", lambda: text.splitlines(True)[1_000_000:1_000_099])
ask("split by a word", lambda: (lambda p: (len(p), p[:5], p[-5:], p[len(p) // 2]))(text.split("LIB-")))
ask("every line of a part", lambda: digest(part.splitlines()))
ask("every word of a part", lambda: (lambda p: (len(p), digest(p), p[-9:], p[m // 99 :][:9]))(part.split()))
ask("split with a bound", lambda: ([len(p) for p in text.split("Київ", 9)], part.split(None, 5)[:5], [len(p) for p in text.rsplit("\n\n", 9)]))
ask("partition", lambda: [len(p) for p in text.partition("図書館") + text.rpartition("図書館") + text.partition("absent\0")])
ask("StringIO", lambda: digest(io.StringIO(part, newline="")))
ask("csv", lambda: digest(csv.reader(io.StringIO(part, newline=""), delimiter="|", quoting=csv.QUOTE_NONE)))

# Regular expressions.
whole = [r"E-\d{2}77", r"LIB-\d+ \| 201\d-0[13]-\d\d \| (\w+) \| ([a-z]{2}) \| ERROR", r"(?m)^LIB-.*ERROR$", r"Київ\w*", r"[а-яё]{22,}",
         r"(?i)biblioth[eè]que \w+", r"ISBN (\d{3})-(\d)-(\d{5})-\d{3}-(\d)"]
for pattern in whole:
    ask(f"findall {pattern}", lambda: (lambda f: (digest(f), collections.Counter(f).most_common(3)[:1]))(re.findall(pattern, text)))
ask("finditer positions", lambda: digest(span(x) for x in re.finditer(r"図書館\w{2,9}|(Kyiv)|(?P<g>Łódź)", text)))
for pattern in whole + [r"\b\w{14,}\b", r"(\w)\1\1", r"(?<=\| )\w+(?= \|)", r"(?<!\d)77\b", r"[^\W\d_]{15,}", r"\s{2,}\S", r"[\u4e00-\u9fff]{9,}", r"(?i)ß\w", r"\d*$"]:
    ask(f"in a part {pattern}", lambda: digest(span(x) for x in re.finditer(pattern, part)))
    ask(f"from offsets {pattern}", lambda: [span(re.compile(pattern).search(text, a, a + 99_999)) for a in marks])
for where in ((n,), (n + 5,), (n - 99,), (-5,), (50, 10), (0, -5)):
    ask(f"search from {' to '.join('n%+d' % (x - n) if x > n // 2 else str(x) for x in where)}",
        lambda: [span(re.compile(p).search(text, *where)) for p in (r"\w+", "", r"^LIB")])
ask("search at the end", lambda: [span(re.compile(p).search(text, n - 999)) for p in (r"\w+\W*\Z", r"\s$", r"\S\s*$")])
for pattern in (r"[^|]+", r"^LIB", r"-\d+", r"(?<=LIB)-\d+", r"(?s)LIB.{50}"):
    ask(f"match at offsets {pattern}", lambda: [span(re.compile(pattern).match(text, a)) for a in (0, 3, *marks)])
    ask(f"search at offsets {pattern}", lambda: [span(re.compile(pattern).search(text, a, a + 60)) for a in (0, 3, *marks)])
for pattern in (r"(?s).*E-77", r"(?s).*?図書館.{0,9}LIB", r"(?s)(?!.*Łódź)", r"(?s)(?=.*Łódź)", r"(?:[^|]+\|){99999}"):
    ask(f"match far {pattern}", lambda: (lambda x: x and x.span())(re.match(pattern, part)))
ask("fullmatch", lambda: [span(re.compile(r"\w+").fullmatch(text, a, a + 3)) for a in marks])
ask("re.split", lambda: (digest(re.split(r"\s*\|\s*|(\d{4})", part)), [len(p) for p in re.split("(E-77)", text, maxsplit=5)]))
ask("re.sub", lambda: digest([re.sub(r"(\d+)-(\d+)", r"\2_\1", part)]))

# What a str does, on parts.
for name in ("upper", "lower", "casefold", "title", "swapcase", "isprintable", "isalpha"):
    ask(name, lambda: digest(getattr(text[a : a + 99_999], name)() for a in marks))
ask("letters of a part", lambda: collections.Counter(itertools.chain.from_iterable(part.splitlines())).most_common(40))
ask("bytes of parts", lambda: digest(text[a : a + 99_999].encode("utf-8", "surrogateescape") for a in marks))
ask("order of words", lambda: digest(sorted(set(part[:5_000_000].split()))))

# JSON lines.
lines = context_1.splitlines()
ask("JSON lines", lambda: (len(lines), digest(json.loads(line) for line in lines)))
ask("a few JSON lines", lambda: [json.loads(line) for line in lines[len(lines) // 2 :][:5] + lines[-5:]])
