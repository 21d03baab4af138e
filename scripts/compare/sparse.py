"""Questions about a sparse file whose answers are known, asked by compare.sh.

`context` is a text, zeros, another text; `context_1` and `context_2` are the two
texts as plain strs. Each answer is printed as a line: name, milliseconds, answer,
what it should be.
"""

import hashlib
import re
import time

text, head, tail = context, context_1, context_2
zeros = text.nbytes - len(head.encode()) - len(tail.encode())
end = len(head) + zeros  # where tail begins
size = end + len(tail)


def ask(name, want, question):
    start = time.perf_counter()
    try:
        got = question()
    except Exception as error:
        got = f"{type(error).__name__}: {error}"
    shown = [x if len(x) < 60 else hashlib.sha256(x.encode()).hexdigest()[:16] for x in (repr(got), repr(want))]
    print(name, round(1000 * (time.perf_counter() - start)), *shown, sep="\t")


def spans(pattern):
    """Where a pattern that matches no zeros matches."""
    return ([m.span() for m in re.finditer(pattern, head)]
            + [(m.start() + end, m.end() + end) for m in re.finditer(pattern, tail)])


ask("kinds", (str, str, True), lambda: (type(head), type(tail), zeros > 1 << 32))
ask("size", size, lambda: text.size)
ask("len", f"OverflowError: the context has {size:,} characters, more than len() can say: use context.size", lambda: len(text))
for s in ("ERROR", "Київ", "ł", " ", "\n"):
    ask(f"count {s!r}", head.count(s) + tail.count(s), lambda: text.count(s))
    ask(f"find {s!r}", [head.find(s), tail.find(s) + end], lambda: [text.find(s), text.find(s, len(head))])
    ask(f"rfind {s!r}", [tail.rfind(s) + end, head.rfind(s)], lambda: [text.rfind(s), text.rfind(s, 0, end)])
ask("absent between", (-1, -1, 0), lambda: tuple(f(" ", len(head), end) for f in (text.find, text.rfind, text.count)))
ask("count zeros", zeros, lambda: text.count("\0"))
ask("find zeros", (len(head), end - 1), lambda: (text.find("\0"), text.rfind("\0")))
ask("slices at the beginning", [head[a : a + 99] for a in range(0, len(head), 9999)], lambda: [text[a : a + 99] for a in range(0, len(head), 9999)])
ask("slices at the end", [tail[a : a + 99] for a in range(0, len(tail), 9999)], lambda: [text[a + end : a + end + 99] for a in range(0, len(tail), 9999)])
ask("slices from the end", [tail[-a:][:99] for a in range(1, len(tail), 9999)], lambda: [text[-a:][:99] for a in range(1, len(tail), 9999)])
ask("slices over the seams", (head[-9:] + "\0" * 9, "\0" * 9 + tail[:9]), lambda: (text[len(head) - 9 : len(head) + 9], text[end - 9 : end + 9]))
ask("slices of zeros", "\0" * 50, lambda: "".join(text[a : a + 10] for a in range(len(head), end - 10, zeros // 5)))
ask("characters", (tail[-1], head[0], "\0", tail[0]), lambda: (text[size - 1], text[-size], text[size // 2], text[end]))
ask("a long slice", (size // 2, tail), lambda: (text[-(size // 2) :].size, text[size // 2 :][end - size // 2 :]))
ask("starts and ends", (True, True, False), lambda: (text.startswith(head), text.endswith(tail), text.endswith(head)))
for p in (r"LIB-\d+", r"[а-яё]{12,}", r"(?i)київ"):
    ask(f"finditer {p}", spans(p), lambda: [m.span() for m in re.finditer(p, text)])
    ask(f"search {p}", spans(p)[len(re.findall(p, head))], lambda: re.compile(p).search(text, len(head)).span())
lines = tail.split("\n")
ask("lines", (head.count("\n") + len(lines), lines[1:]), lambda: (text.split("\n").size, text.split("\n")[1 - len(lines) :]))
