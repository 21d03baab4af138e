import json

rows = [
    {"id": i, "name": f"user{i}", "tags": ["a", "b", "c"], "score": i * 1.5, "ok": i % 2 == 0, "none": None}
    for i in range(5000)
]


def run():
    assert json.loads(json.dumps(rows)) == rows
