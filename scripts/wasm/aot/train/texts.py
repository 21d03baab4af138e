# Texts: logs, tables, formats, patterns, encodings.
import base64, csv, difflib, hashlib, html, io, json, re, string, struct, textwrap, unicodedata, urllib.parse, zlib
from collections import Counter, defaultdict

levels = ("DEBUG", "INFO", "WARNING", "ERROR")
lines = [
    f"2023-{i % 12 + 1:02}-{i % 28 + 1:02}T{i % 24:02}:{i % 60:02}:00Z {levels[i * 7 % 4]:<8} "
    f"worker-{i % 9} request={i * 31 % 1000} took {i * 17 % 500 / 10:.1f}ms path=/api/v{i % 3}/items/{i}"
    for i in range(6000)
]
log = "\n".join(lines)
pattern = re.compile(r"^(?P<when>\S+)\s+(?P<level>[A-Z]+)\s+(\S+) request=(\d+) took ([\d.]+)ms path=(\S+)$")
by_level, slowest = defaultdict(list), []
for line in log.splitlines():
    match = pattern.match(line)
    by_level[match["level"]].append(float(match.group(5)))
    if float(match[5]) > 49:
        slowest.append((match[6].rpartition("/")[2], match["when"][:10]))
re.sub(r"\d{4}-(\d\d)-(\d\d)", r"\2.\1.", log)
re.findall(r"(?i)\b(error|warning)\b.*?v([12])/", log)
re.split(r"[\s=/]+", log[:100000])
[m.span() for m in re.finditer(r"took (4\d|3[1-5])\.", log)]
Counter(word.strip(string.punctuation).lower() for line in lines[:2500] for word in line.split()).most_common(5)
longest = max(lines, key=len).upper().replace("WORKER", "thread").title().center(150, "*")
joined = "".join(chr(ord("a") + i % 26) if i % 5 else " " for i in range(40000))
joined.count("ab"), joined.find("xyz "), joined.split(), joined.translate({ord("a"): "4", ord("e"): "3", ord(" "): None})
words = sorted(set(joined.split()), key=lambda w: (len(w), w[::-1]))
", ".join(f"{w!r:>12}|{i:05d}|{i / 7:8.3f}|{i:#x}" for i, w in enumerate(words[:2000]))
"%s is %d years and %.2f m" % ("Ann", 41, 1.7), "{0:>10}|{name:<8}|{1:,}".format("a", 1234567, name="b")


def distance(a, b):
    row = list(range(len(b) + 1))
    for i, x in enumerate(a, 1):
        above, row[0] = row[0], i
        for j, y in enumerate(b, 1):
            above, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, above + (x != y))
    return row[-1]


distance(lines[0] * 2, lines[99] * 2)
difflib.get_close_matches("wroker", ["worker", "request", "walker", "wrecker"])
list(difflib.unified_diff(lines[:60], lines[20:80]))
table = io.StringIO()
writer = csv.writer(table)
writer.writerows([i, f"name {i}", f'a "quoted", text {i}', i / 3] for i in range(1500))
table.seek(0)
rows = [{**row, "n": int(row["0"])} for row in csv.DictReader(table, fieldnames=["0", "1", "2", "3"])]
document = {"items": [{"k": i, "v": [None, True, i / 8, "t\u00e9xt \u4e2d\n"], "d": {"e": []}} for i in range(400)]}
assert json.loads(json.dumps(document, indent=1, sort_keys=True)) == document
for i in range(1500):
    record = json.loads('{"id": %d, "tags": ["x", "y"], "score": %s, "note": "line\\n%d"}' % (i, i / 3, i))
    json.dumps({"id": record["id"], "n": len(record["note"])})
wide = "Grüße, Ελλάδα, Россия, 中文, 😀 " * 200
[unicodedata.normalize(form, wide) for form in ("NFC", "NFD", "NFKD")]
wide.encode().decode(), wide.casefold(), wide.encode("utf-16"), wide.encode("ascii", "replace"), wide.split(", ")
data = log.encode()
[hashlib.new(name, data[:50000]).hexdigest() for name in ("md5", "sha1", "sha256", "sha512", "sha3_256", "blake2b")]
base64.b64encode(data), zlib.crc32(data), zlib.adler32(data)
zlib.decompress(zlib.compress(data[:60000]))
urllib.parse.urlencode({"q": "a b&c", "n": 5}), html.escape(log[:5000]), textwrap.fill(log[:3000], 60)
b"".join(struct.pack("<IhdB", i, i % 300, i / 3, i & 255) for i in range(2000))
[struct.unpack_from("<HH", data, i) for i in range(0, 4000, 4)]
