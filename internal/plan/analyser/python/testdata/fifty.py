import re
import json
from collections import Counter, defaultdict
from dataclasses import dataclass, field

@dataclass
class Finding:
    kind: str
    text: str
    score: float = 0.0
    tags: list = field(default_factory=list)

def chunk_text(text, size=4000, overlap=200):
    chunks = []
    start = 0
    while start < len(text):
        end = min(len(text), start + size)
        chunks.append(text[start:end])
        if end == len(text):
            break
        start = end - overlap
    return chunks

pattern = re.compile(r"(ERROR|WARN)\s+\[(\w+)\]\s+(.*)")
counts = Counter()
by_service = defaultdict(list)
for i, line in enumerate(context.splitlines()):
    m = pattern.match(line)
    if not m:
        continue
    level, service, message = m.groups()
    counts[level] += 1
    by_service[service].append((i, message.strip()))

findings = []
chunks = chunk_text(context)
prompts = [f"Find all incidents in this chunk {n}:\n{c}" for n, c in enumerate(chunks)]
answers = llm_query_batched(prompts)
for n, answer in enumerate(answers):
    try:
        data = json.loads(answer)
    except json.JSONDecodeError:
        data = {"incidents": []}
    for item in data.get("incidents", []):
        findings.append(Finding(kind=item["kind"], text=item.get("text", ""), score=float(item.get("score", 0))))

top = sorted(findings, key=lambda f: -f.score)[:10]
summary = {s: len(v) for s, v in by_service.items() if len(v) > 3}
print(f"{len(findings)} findings, {counts['ERROR']} errors, {len(summary)} services")
FINAL({"top": [f.text for f in top], "services": summary})
