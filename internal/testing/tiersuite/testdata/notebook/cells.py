# %% first look
print(type(context).__name__, isinstance(context, str))
print(len(context))
print(repr(context[:300]))

# %%
print(repr(context[-300:]))

# %%
context[:80]

# %%
len(context) // 1000, len(context) % 1000

# %% how many lines?
n_lines = context.count("\n")
print(f"{n_lines:,} newlines, {context.count(chr(13)):,} carriage returns")

# %%
print("CRLF" if "\r\n" in context else "LF only")
print("tabs:", context.count("\t"), "NULs:", context.count("\x00"))

# %%
bom = context.startswith("\ufeff")
print("BOM" if bom else "no BOM", context.isascii())

# %%
import re, json, math, collections, itertools, csv, io, hashlib, string, textwrap, unicodedata
sample = context[:200_000]
tail = context[-50_000:]
mid = context[len(context) // 2 : len(context) // 2 + 50_000]
print(len(sample), len(tail), len(mid))

# %%
lines = sample.splitlines()
for i, line in enumerate(lines[:12]):
    print(i, repr(line))

# %%
from collections import Counter
prefixes = Counter(line[:2] for line in lines)
print(prefixes.most_common(8))

# %%
print(Counter(len(line) // 20 * 20 for line in lines).most_common(5))

# %% what do tickets look like
start = context.find("## Ticket")
end = context.find("## Ticket", start + 1)
print(start, end)
print(context[start:end] if end > 0 else context[start:])

# %%
first = context.index("## Ticket 1:")
print(context[first:first + 40])

# %%
last = context.rfind("## Ticket ")
print(len(context) - last, context[last:last + 60].split("\n")[0])

# %%
total = context.count("## Ticket ")
print("tickets:", total)

# %%
last_number = int(re.match(r"## Ticket (\d+)", context[last:last + 40]).group(1))
print(last_number, last_number == total)

# %%
for word in ("ERROR", "WARN", "INFO", "timeout", "refund", "nosuchword", "Łódź", "Ωmega", "漢字"):
    print(f"{word:12} {context.count(word):>10,} {context.find(word):>6} {word in context}")

# %%
print({level: context.count(f" {level} [") for level in ["ERROR", "WARN", "INFO", "DEBUG"]})

# %%
def section(text, name, start=0):
    i = text.find(name, start)
    if i == -1:
        return None
    j = text.find("\n", i)
    return text[i:j].strip()

print(section(context, "Status:"), "|", section(context, "From:"), "|", section(context, "Nothing:"))

# %%
print(section(context, "Status:", len(context) // 2))

# %%
statuses = Counter(re.findall(r"^Status: (\w+)", sample, re.M))
print(sorted(statuses.items()))

# %%
pattern = re.compile(r"## Ticket (?P<number>\d+): (?P<title>.*)")
m = pattern.search(context)
print(m.groupdict(), m.span("number"))

# %%
m = pattern.search(context, len(context) * 9 // 10)
print(m and m.group("title").rstrip())

# %%
titles = [m["title"].rstrip("\r") for m in pattern.finditer(sample)]
print(len(titles), titles[:4], titles[-1:])

# %%
print(Counter(titles).most_common(3))

# %% emails
emails = re.findall(r"<([\w.]+@[\w.]+)>", sample)
print(len(emails), sorted(set(emails))[:5])

# %%
domains = Counter(e.split("@")[1] for e in emails)
for domain, count in domains.most_common():
    print(domain, count)

# %%
print(re.findall(r"[^\x00-\x7f]+", sample)[:12])

# %%
print(sorted({c for c in sample if ord(c) > 127})[:40])

# %%
print(Counter(unicodedata.category(c) for c in sample[:20_000]).most_common(6))

# %%
odd = [c for c in sample if unicodedata.category(c) in ("Cc", "Cs")]
print(sorted(Counter(map(repr, odd)).items()))

# %%
try:
    sample.encode("utf-8")
    print("clean")
except UnicodeEncodeError as e:
    print("bad:", e.reason, repr(e.object[e.start:e.end]), e.start)

# %%
raw = sample.encode("utf-8", "surrogateescape")
print(len(raw), hashlib.sha256(raw).hexdigest()[:16])

# %%
print(hashlib.md5(sample.encode("utf-8", errors="replace")).hexdigest())

# %% the JSON lines
records = []
for line in lines:
    if line.startswith("{"):
        records.append(json.loads(line))
print(len(records), records[0])

# %%
print(sum(r["amount"] for r in records), max(r["amount"] for r in records), min(r["id"] for r in records))

# %%
by_country = {}
for r in records:
    by_country.setdefault(r["country"], []).append(r["amount"])
for c, amounts in sorted(by_country.items()):
    print(c, len(amounts), round(sum(amounts) / len(amounts), 3))

# %%
print(json.dumps(records[0], ensure_ascii=False, sort_keys=True))
print(json.dumps(records[0], indent=1)[:120])

# %%
print(json.dumps(context[:60]))

# %%
bad = 0
for line in lines:
    try:
        json.loads(line)
    except json.JSONDecodeError as e:
        bad += 1
        reason = str(e)
print(bad, reason)

# %%
json.loads(context)

# %% the CSV lines
rows = list(csv.reader(line for line in lines if re.match(r"\d+,", line)))
print(len(rows), rows[0])

# %%
print([row for row in rows if len(row) != 4][:3])

# %%
reader = csv.DictReader(io.StringIO("id,name,amount,country\n" + "\n".join(",".join(r) for r in rows)))
table = list(reader)
print(table[0], sorted(Counter(t["country"] for t in table).items()))

# %%
out = io.StringIO()
writer = csv.writer(out, quoting=csv.QUOTE_ALL, lineterminator="\n")
writer.writerows(rows[:2])
print(out.getvalue())

# %% log lines
log = re.compile(r'^(\d{4}-\d\d-\d\d) (\d\d:\d\d:\d\d) (\w+) \[(\w+)\] user=(\d+) code=(\d+) msg="([^"]*)"', re.M)
entries = log.findall(sample)
print(len(entries), entries[0])

# %%
errors = [e for e in entries if e[2] == "ERROR"]
print(len(errors), errors[:2])

# %%
print(Counter(e[3] for e in entries).most_common())

# %%
codes = Counter(int(e[5]) for e in entries)
print(sorted(codes.items()), sum(codes.values()))

# %%
from datetime import datetime, timedelta
times = [datetime.strptime(f"{d} {t}", "%Y-%m-%d %H:%M:%S") for d, t, *_ in entries[:300]]
print(min(times), max(times), max(times) - min(times) < timedelta(days=4000))

# %%
by_day = collections.defaultdict(int)
for e in entries:
    by_day[e[0]] += 1
print(len(by_day), sorted(by_day.items())[:3])

# %%
users = {e[4] for e in entries}
print(len(users), sorted(users, key=int)[:6])

# %%
top = Counter(e[4] for e in errors).most_common(3)
print(sorted(top, key=lambda p: (-p[1], int(p[0]))))

# %%
import statistics
amounts = [r["amount"] for r in records]
print(statistics.mean(amounts), statistics.median(amounts), statistics.pstdev(amounts))

# %% the needle
pos = context.find("NEEDLE")
print(pos == context.rfind("NEEDLE"), context[pos - 10:pos + 40].strip())

# %%
print(re.search(r"NEEDLE-(\w+)", context).group(1))

# %%
print(re.search(r"NEEDLE-\d+", context))

# %%
before, sep, after = context.partition("NEEDLE")
print(len(before) + len(sep) + len(after) == len(context), sep, after[:6])

# %%
head, _, rest = context.rpartition("---")
print(len(head) > len(rest), repr(rest[:40]))

# %% chunks by hand
size = max(1, len(context) // 7)
pieces = [context[i:i + size] for i in range(0, len(context), size)]
print(len(pieces), sum(map(len, pieces)) == len(context))

# %%
print([p.count("ERROR") for p in pieces], sum(p.count("ERROR") for p in pieces) <= context.count("ERROR"))

# %%
print([p.find("ERROR") for p in pieces])

# %%
print([type(p).__name__ for p in pieces], all(isinstance(p, str) for p in pieces))

# %%
print("".join(pieces[:1]) == context[:size], pieces[0] + pieces[1][:5] == context[:size + 5])

# %%
del pieces
overlap = 20
windows = [(i, i + 100) for i in range(0, min(len(context), 1000), 100 - overlap)]
print([context[a:b].count("e") for a, b in windows])

# %%
every = [context[i] for i in range(0, len(context), max(1, len(context) // 50))]
print(repr("".join(every)))

# %%
print(repr(context[:: max(1, len(context) // 40)]))

# %%
print(repr(context[::-1][:50]) if len(context) < 10**7 else repr(context[-50:][::-1]))

# %%
print(context[-1:-30:-3], context[10:5], context[5:10], context[10**12:], context[-10**12:3])

# %%
context[len(context)]

# %%
context["a"]

# %%
print(context[len(context) - 1] == context[-1], context[0], context[-len(context)])

# %%
undefined_name

# %%
1 / 0

# %%
int(context[:10])

# %%
print(context.index("no such text at all"))

# %%
context.find(5)

# %%
context.split("")

# %%
context + 5

# %%
context[0] = "x"

# %%
context.nosuch()

# %%
print(context.startswith("\ufeff## Ticket"), context.endswith("\n"), context.endswith(("end", "END", "\x00")))

# %%
print(context.startswith(sample), context.endswith(tail), context.startswith("x", 5))

# %%
print(sample in context, mid in context, "ERROR" in tail)

# %%
print(context == context, context == sample, context != sample, context[:-1] == context[1:])

# %%
print(context < "z", context > "", "a" < context)

# %%
print(bool(context), not context, context is context, context and "some")

# %%
cache = {context: "whole", sample: "sample"}
print(cache[context], len(cache), context in cache, context[:5] in cache)

# %%
seen = {context, context, sample}
print(len(seen))

# %%
print(max(len(l) for l in lines), min(len(l) for l in lines), max(lines, key=len)[:60])

# %% loops over all lines
count = 0
for line in context.splitlines():
    if "ERROR" in line:
        count += 1
print(count)

# %%
all_lines = context.splitlines()
print(len(all_lines), repr(all_lines[0]), repr(all_lines[-1]))

# %%
print(all_lines[3:6], all_lines[-2:])

# %%
print(all_lines[len(all_lines) // 2], all_lines[len(all_lines) // 3][:20])

# %%
print([line for line in all_lines[:400] if line.startswith("Tags:")][:4])

# %%
for number, line in enumerate(all_lines, 1):
    if "NEEDLE" in line:
        print(number, line)
        break

# %%
print(next(i for i, line in enumerate(all_lines) if line.startswith("Status:")))

# %%
print(list(zip(all_lines[:5], all_lines[1:6]))[1])

# %%
print(list(itertools.islice((l.strip() for l in all_lines if "msg=" in l), 2)))

# %%
from itertools import takewhile, dropwhile
print(list(takewhile(lambda l: l != "---", all_lines))[-2:])

# %%
print(len(list(dropwhile(lambda l: "---" not in l, all_lines[:1000]))))

# %%
batch = all_lines[:10]
print(" / ".join(l.strip() for l in batch)[:150])

# %%
del all_lines
blocks = sample.split("---")
print(len(blocks), [len(b) for b in blocks[:5]])

# %%
parts = context.split("---", 2)
print(len(parts), [len(p) for p in parts[:2]], repr(parts[1][:30]))

# %%
tail_parts = context.rsplit("---", 2)
print(len(tail_parts), [len(p) for p in tail_parts[1:]])

# %%
del parts, tail_parts
print(context.split(None, 3)[:3], context.rsplit(None, 2)[1:])

# %%
words = sample.split()
print(len(words), words[:5], Counter(words).most_common(3))

# %%
vocabulary = Counter(w.lower().strip(string.punctuation) for w in words)
print(len(vocabulary), [w for w, _ in sorted(vocabulary.items(), key=lambda p: (-p[1], p[0]))[:8]])

# %%
print(len(set(words)), sorted(set(words))[:3], sorted(set(words))[-3:])

# %%
long_words = sorted({w for w in re.findall(r"\w+", sample) if len(w) > 9})
print(long_words[:8])

# %%
print(sum(c.isdigit() for c in sample), sum(c.isupper() for c in sample), sum(c.isspace() for c in sample))

# %%
print(Counter(sample).most_common(5))

# %%
letters = Counter(c for c in sample.casefold() if c.isalpha())
print(letters.most_common(6))

# %%
vowels = sum(sample.count(v) for v in "aeiou")
print(vowels, round(vowels / len(sample), 4))

# %%
print(sample.upper()[:60], sample.title()[:40], sample.swapcase()[:40])

# %%
print(context[:100].lower(), context[:40].capitalize())

# %%
clean = sample.replace("\r\n", "\n").replace("\x00", "").lstrip("\ufeff")
print(len(sample) - len(clean), clean[:20])

# %%
print(clean.translate(str.maketrans("aeiou", "AEIOU", "xyz"))[:80])

# %%
normal = unicodedata.normalize("NFD", clean)
print(len(normal) - len(clean), "".join(c for c in normal if not unicodedata.combining(c))[:60])

# %%
print(re.sub(r"\d", "#", context[:120]))

# %%
print(re.sub(r"user=(\d+)", lambda m: f"user={int(m[1]) % 10}", sample)[300:420])

# %%
masked, n = re.subn(r"[\w.]+@[\w.]+", "<email>", sample)
print(n, masked[:160])

# %%
print(re.split(r"\s*[,;|]\s*", context[:200])[:5])

# %%
print([m.span() for m in itertools.islice(re.finditer(r"\bERROR\b", context), 3)])

# %%
n = sum(1 for _ in re.finditer(r"NEEDLE|no such", context))
print(n)

# %%
print(len(re.findall(r"refund [a-z]+ed", context)))

# %%
print(len(re.findall(r"(?i)ticket 1\d*7:", context)))

# %%
print(re.findall(r"code=(5\d\d)", sample)[:5], re.findall(r"(?<=\[)\w+(?=\])", sample)[:4])

# %%
print(re.findall(r"(\w)\1", sample[:3000])[:10], re.search(r"^---$", context, re.M).start())

# %%
print(re.match(r"\W*(\w+) (\w+)", context).groups(), re.fullmatch("x", context))

# %%
p = re.compile(r"""
    Date:\s(?P<y>\d{4})-(?P<m>\d\d)  # year and month
""", re.X)
print(Counter((m["y"], m["m"]) for m in p.finditer(sample)).most_common(2))

# %%
print(re.escape(context[:15]), bool(re.search(re.escape(sample[100:130]), context)))

# %%
re.findall("(", context)

# %% helpers in the styles of agents
def peek(text, at, width=40):
    """Show what is around a position."""
    return repr(text[max(0, at - width):at + width])

print(peek(context, context.find("refund")))

# %%
def grep(pattern, text=sample, limit=3):
    hits = []
    for i, line in enumerate(text.splitlines()):
        if re.search(pattern, line):
            hits.append((i, line.strip()[:50]))
            if len(hits) >= limit:
                break
    return hits

for hit in grep(r"code=5"):
    print(hit)

# %%
print(grep("WARN", context[-3000:]))

# %%
class Ticket:
    def __init__(self, text):
        self.text = text
        self.fields = dict(re.findall(r"^(Date|From|Status|Tags): (.*?)\r?$", text, re.M))

    def __repr__(self):
        return f"Ticket({self.fields.get('Status')}, {len(self.text)} chars)"

tickets = [Ticket(t) for t in re.split(r"(?=## Ticket )", sample) if t.startswith("## Ticket")]
print(len(tickets), tickets[:3])

# %%
print(sorted(Counter(t.fields.get("Status") for t in tickets[:-1]).items()))

# %%
tags = Counter(tag.strip() for t in tickets for tag in t.fields.get("Tags", "").split(",") if tag)
print(sorted(tags.items()))

# %%
from dataclasses import dataclass, field, asdict

@dataclass(order=True)
class Row:
    amount: float
    id: int
    name: str = field(compare=False, default="")

best = sorted((Row(r["amount"], r["id"], r["name"]) for r in records), reverse=True)[:2]
print(best, asdict(best[0]))

# %%
from functools import lru_cache, reduce

@lru_cache(maxsize=None)
def occurrences(word):
    return context.count(word)

print([occurrences(w) for w in ["open", "closed", "open", "pending"]], occurrences.cache_info().hits)

# %%
print(reduce(lambda a, b: a + len(b), lines, 0))

# %%
def tickets_of(text):
    at = text.find("## Ticket ")
    while at >= 0:
        following = text.find("## Ticket ", at + 1)
        yield text[at:following if following >= 0 else None]
        at = following

print([len(t) for t in itertools.islice(tickets_of(context), 6)])

# %%
print(sum("ERROR" in t for t in itertools.islice(tickets_of(context), 500)))

# %%
state = {"position": 0, "hits": []}
while len(state["hits"]) < 5:
    at = context.find("WARN", state["position"])
    if at < 0:
        break
    state["hits"].append(at)
    state["position"] = at + 1
print(state["hits"])

# %%
positions = [context.rfind("ERROR", 0, len(context) * k // 4) for k in range(1, 5)]
print(positions)

# %%
print([context.count("ERROR", a, a + len(context) // 4 + 1) for a in range(0, len(context), len(context) // 4 + 1)])

# %%
quarters = [context.find("\n", len(context) * k // 4) for k in range(4)]
print([repr(context[q + 1:q + 20]) for q in quarters])

# %% readers
f = io.StringIO(context[:5000])
print(repr(f.readline()), repr(f.readline()), f.tell() > 0)

# %%
print(sum(1 for _ in io.StringIO(sample)), len(io.StringIO(sample).read()))

# %%
stream = io.StringIO(context)
print([next(stream).rstrip() for _ in range(3)], stream.readline().rstrip())
del stream

# %%
b = io.BytesIO(sample.encode("utf-8", "surrogateescape"))
print(b.readline(), len(b.getvalue()))

# %%
wrapper = io.TextIOWrapper(io.BytesIO(raw), encoding="utf-8", errors="surrogateescape", newline="")
print(wrapper.read(30) == sample[:30], wrapper.readline()[-12:])

# %%
print(textwrap.shorten(clean[:400], 70), textwrap.wrap(clean[:150], 50)[:2])

# %%
print(textwrap.indent(clean[:40], "> "))

# %%
import difflib
print(round(difflib.SequenceMatcher(None, titles[0], titles[-1]).ratio(), 3))
print(difflib.get_close_matches("Refnd not recieved", set(titles), n=1))

# %%
import html, urllib.parse, base64, zlib
print(html.escape(context[:80]), urllib.parse.quote(titles[0]))

# %%
print(base64.b64encode(raw[:24]).decode(), zlib.crc32(raw), len(zlib.decompress(zlib.compress(raw))) == len(raw))

# %%
import heapq, bisect
print(heapq.nlargest(3, amounts), bisect.bisect(sorted(amounts), 50))

# %%
import pprint
pprint.pprint(records[:2], width=60)

# %%
print(f"{len(context):>15,}|{context[:5]!r:<12}|{context[3:9]:^10}|{amounts[0]:.1f}")

# %%
print("%s...%s" % (context[:10].strip(), context[-10:].strip()), "{0[3]}".format(context))

# %%
report = []
for name, value in [("tickets", total), ("lines", n_lines), ("errors", context.count("ERROR"))]:
    report.append(f"- {name}: {value}")
print("\n".join(report))

# %%
print(*context[:12], sep="|")

# %%
a, b, *others = context[1:30]
print(a, b, len(others), "".join(others)[:10])

# %%
print(list(enumerate(context[3:8], 3)), list(zip(context[1:4], context[4:7])))

# %%
it = iter(context)
print(repr(next(it)), repr(next(it)), "".join(itertools.islice(it, 20)))

# %%
print(repr("".join(itertools.islice(reversed(context), 20))))

# %%
if (m := re.search(r"From: (.+?) <", context)) is not None:
    name = m[1]
print(name, name.isascii(), [hex(ord(c)) for c in name if ord(c) > 127])

# %%
match context[1:10].split():
    case ["##", kind, *rest]:
        print("kind", kind, rest)
    case other:
        print("other", other)

# %%
match records[0]:
    case {"id": int(i), "tags": [first_tag, *_]}:
        print(i, first_tag)

# %%
try:
    value = json.loads(lines[0])
except ValueError as e:
    print(type(e).__name__, e)
else:
    print(value)
finally:
    print("done")

# %%
try:
    with open("/no/such/file.txt") as f:
        print(f.read())
except OSError as e:
    print(type(e).__name__, e.filename, e.strerror)

# %%
summary = {
    "chars": len(context), "tickets": total, "levels": {l: context.count(f" {l} [") for l in ("ERROR", "WARN")},
    "first": titles[0],
}
print(json.dumps(summary, indent=2, ensure_ascii=False))

# %%
import copy, pickle
print(copy.copy(context) == context, copy.deepcopy(context) is context, pickle.loads(pickle.dumps(sample)) == sample)

# %%
text = context
lengths = [len(text), len(str(text)), len(f"{text[:9]}"), len("" + text[:9])]
print(lengths)

# %%
print(isinstance(text, (str, bytes)), issubclass(type(text), str), callable(text), hasattr(text, "splitlines"))

# %%
def walk(value):
    if isinstance(value, str):
        return len(value)
    if isinstance(value, dict):
        return {k: walk(v) for k, v in value.items()}
    return [walk(v) for v in value]

print(walk({"context": context, "list": [sample, {"tail": tail}]}))

# %%
names = [n for n, v in sorted(globals().items()) if isinstance(v, str) and not n.startswith("_")]
print([n for n in names if n in ("context", "sample", "tail", "mid", "text", "clean")])

# %% parallel, as far as it goes
from concurrent.futures import ThreadPoolExecutor
step = len(context) // 4 + 1
with ThreadPoolExecutor(max_workers=4) as pool:
    counts = list(pool.map(lambda i: context.count("\nStatus: open", i, i + step), range(0, len(context), step)))
print(len(counts), sum(counts) <= context.count("Status: open"))

# %%
import asyncio

async def look(word):
    await asyncio.sleep(0)
    return word, context.count(word)

print(await asyncio.gather(*[look(w) for w in ("open", "closed")]))

# %%
print(sum(map(len, (context[i:i + 1_000_000] for i in range(0, len(context), 1_000_000)))) == len(context))

# %%
digest = hashlib.sha256()
for i in range(0, len(context), 1 << 20):
    digest.update(context[i:i + (1 << 20)].encode("utf-8", "surrogateescape"))
print(digest.hexdigest())

# %%
print(len(context.encode("utf-8", "surrogateescape")) if len(context) < 10**8 else "too long to copy")

# %%
lowest = min(context[:1_000_000]), max(context[:1_000_000])
print(lowest)

# %%
print(context.isprintable(), context.isidentifier(), context.isalpha(), context[:2].isspace())

# %%
stripped = context.strip()
print(len(context) - len(stripped), len(context.lstrip("\ufeff#")) - len(context), len(context.rstrip("\n-")) - len(context))

# %%
print(context.removeprefix("\ufeff")[:9], len(context.removesuffix("\n")) - len(context))

# %%
del context
print("context" in globals())

# %% the context is back
print(len(context) == lengths[0], _ is not None)

# %%
f"{total} tickets, {context.count('ERROR')} errors"

# %%
conclusion = max(statuses.items(), key=lambda p: (p[1], p[0]))
print(f"Most tickets of the sample are {conclusion[0]} ({conclusion[1]} of {sum(statuses.values())}).")

# %% how regular is it?
gaps = [len(t) for t in itertools.islice(tickets_of(context), 50)]
print(min(gaps), max(gaps), round(sum(gaps) / len(gaps), 1))

# %%
import operator
print(sorted(records[:6], key=operator.itemgetter("country", "id"))[0]["id"], operator.contains(context, "refund"))

# %%
print("|".join(f"{r['id']}:{r['country']}" for r in records[:4]), end="")

# %%
table = "\n".join(f"{k:<8}{v:>6}" for k, v in sorted(statuses.items()))
print(table)

# %%
print(repr(context[first:first + 30].expandtabs(4)), context[first:first + 9].ljust(12, ".") + "|")

# %%
assert "## Ticket" in context, "no tickets at all"
assert context.count("## Ticket ") == 0, f"{'there are'} tickets"

# %%
raise ValueError(f"stopped after {len(titles) > 0}")

# %%
answer_text = " ".join(context[start:start + 60].split())
answer_text
