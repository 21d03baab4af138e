"""usage: tasks.py RLM SERVERS FOLDER

Ten tasks that need several tools, each answered twice by the same scripted model: with one call
of a tool in each turn, and with one program that makes all calls. It prints a table of model
calls, tokens and time. The model takes half a second for each reply.
"""

import json
import pathlib
import subprocess
import sys

DELAY = "500ms"
rlm, servers, folder = sys.argv[1:]
folder = pathlib.Path(folder) / "logs"
folder.mkdir()


def write_logs():
    """Twelve logs of about 4 KB, each with other numbers of errors."""
    for month in range(1, 13):
        lines = [
            f"2026-{month:02}-{day:02} {'ERROR' if day % (month + 1) == 0 else 'INFO'} "
            f"request {day * month} of customer {day % 7} took {day * 13 % 97} ms, {day * 31 % 89} rows"
            for day in range(1, 29) for _ in range(2)
        ]
        (folder / f"{month:02}.log").write_text("\n".join(lines))


def read(*months):
    """The calls that read logs."""
    return [f'filesystem.read_text_file(path="{folder}/{m:02}.log")' for m in months]


def add(*pairs):
    """The calls that add numbers."""
    return [f"everything.get_sum(a={a}, b={b})" for a, b in pairs]


# What each task calls, and how its answer follows from the results r, as texts.
YEAR = range(1, 13)
TASKS = {
    "errors of the year": (read(*YEAR), 'sum(t.count("ERROR") for t in r)'),
    "errors of a quarter": (read(1, 2, 3), 'sum(t.count("ERROR") for t in r)'),
    "the worst month": (read(*YEAR), '1 + max(range(12), key=lambda i: r[i].count("ERROR"))'),
    "lines of two months": (read(5, 6), "sum(len(t.splitlines()) for t in r)"),
    "customers with errors": (
        read(1, 4, 7, 10),
        'sorted({l.split()[6] for t in r for l in t.splitlines() if "ERROR" in l})',
    ),
    "the slowest request": (read(*YEAR), "max(int(l.split()[8]) for t in r for l in t.splitlines())"),
    "rows of a half-year": (
        read(*range(1, 7)),
        "sum(int(l.split()[10]) for t in r for l in t.splitlines())",
    ),
    "five sums": (add((1, 2), (3, 4), (5, 6), (7, 8), (9, 10)), "len(r)"),
    "two sums": (add((20, 22), (1, 1)), "len(r)"),
    "a log and a sum": (read(12) + add((2, 3)), 'r[0].count("INFO")'),
}
TEXT = "text = lambda v: v if isinstance(v, str) else v['content'] if 'content' in v else str(v)\n"


def one_call_each(calls, answer):
    """The snippets of a model that calls one tool in each turn, and reads its result."""
    turns = [TEXT + "r = []"]
    turns[0] += f"\nr.append(text(await {calls[0]}))\nprint(r[-1])"
    turns += [f"r.append(text(await {call}))\nprint(r[-1])" for call in calls[1:]]
    return [*turns, f"FINAL({answer})"]


def one_program(calls, answer):
    """The snippet of a model that writes one program."""
    all_calls = ",\n    ".join(calls)
    return [f"{TEXT}import asyncio\nr = [text(v) for v in await asyncio.gather(\n    {all_calls},\n)]\nFINAL({answer})"]


def ask(question, snippets):
    """Runs the loop with a scripted model, and returns its outcome."""
    rules = [
        {"when": {"purpose": "root", "said": said}, "delay": DELAY, "reply": f"```repl\n{snippet}\n```\n"}
        for said, snippet in enumerate(snippets)
    ]
    script = folder.parent / "model.yaml"
    script.write_text(json.dumps({"version": 1, "rules": rules}))
    command = [rlm, "run", question, "--mcp", servers, "--model", f"scripted/{script}", "--json", "--quiet",
               "--max-turns", "20"]
    done = subprocess.run(command, stdout=subprocess.PIPE, check=True, timeout=300)
    outcome = json.loads(done.stdout)
    assert outcome["status"] == "answered", outcome
    return outcome


def measure(outcome):
    spent = outcome["spent"]
    return spent["calls"], spent["input_tokens"] + spent["output_tokens"], outcome["elapsed_ns"] / 1e9


write_logs()
print("| task | tool calls | model calls | tokens | seconds |\n| --- | --- | --- | --- | --- |")
sums = [0] * 7
for name, (calls, answer) in TASKS.items():
    turns, program = ask(name, one_call_each(calls, answer)), ask(name, one_program(calls, answer))
    assert turns["answer"] == program["answer"], (turns["answer"], program["answer"])
    row = [len(calls), *(pair for pairs in zip(measure(turns), measure(program)) for pair in pairs)]
    sums = [a + b for a, b in zip(sums, row)]
    print("| {} | {} | {}, {} | {:,}, {:,} | {:.1f}, {:.1f} |".format(name, *row))
print("| all | {} | {}, {} | {:,}, {:,} | {:.1f}, {:.1f} |".format(*sums))
