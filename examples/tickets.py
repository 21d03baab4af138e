# The kind of program that a model writes: it looks at the context, counts,
# searches and samples, and never loads it. Run it with
#
#   rlm exec --context TEXT examples/tickets.py
#
# on a text made by `scripts/run.sh corpus -bytes 1GiB -o TEXT`.
import collections
import re

size = len(context)
print(f"{size:,} characters, as a {type(context).__name__}")
print("begins:", context[:46].strip())

# Whole-text questions are answered by the host, over its own mapping.
severities = {s: context.count(f"| {s}\n") for s in ("INFO", "WARN", "ERROR")}
print("tickets by severity:", severities)
print("library cards lost in Kyiv are mentioned:", "Київ" in context, "- first at", f"{context.find('Київ'):,}")

# A regular expression over all of it: error codes that end in 77.
codes = collections.Counter(m.group() for m in re.finditer(r"E-\d{2}77", context))
print("error codes ending in 77:", len(codes), "kinds, most frequent", codes.most_common(3))

# Random access by line, in a text that no list of lines could hold.
lines = context.split("\n")
print(f"{len(lines):,} lines; the middle one:", lines[len(lines) // 2][:60])

# The last tickets, by slicing from the end.
tail = context[-20_000:].split("\n\n")
languages = collections.Counter(t.split(" | ")[3] for t in tail if t.startswith("LIB-") and t.count(" | ") >= 4)
print("languages of the last tickets:", dict(languages.most_common(5)))

# Join parts from far apart into something small.
step = size // 5
digest = "\n".join(context[i * step : i * step + 40].replace("\n", " ") for i in range(5))
print(digest)

FINAL({"tickets": sum(severities.values()), "errors": severities["ERROR"], "codes_ending_77": sum(codes.values())})
