"""Runs the snippets of one session: a JSON text per line in, its output per line out."""

import contextlib
import io
import json
import sys

names = {}

for line in sys.stdin:
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        exec(compile(json.loads(line), "<snippet>", "exec"), names)
    print(json.dumps(out.getvalue()), flush=True)
