#!/usr/bin/env python3
"""Write the table of prices and windows, repl/llm/internal/prices/listed.yaml.

    prices.py [WHEEL] >listed.yaml

The figures come from the list of models in the package litellm on PyPI (MIT licence). The
script downloads the package, unless a wheel of it is given, and does not install it.
"""

import json
import pathlib
import re
import subprocess
import sys
import tempfile
import zipfile

LIST = "litellm/model_prices_and_context_window_backup.json"

# The providers whose servers do not tell prices, and how their names begin there and here.
PROVIDERS = {"openai": "", "anthropic": "", "azure": "azure/"}
MODES = {"chat", "completion", "responses"}
# A name that a model server takes: no fine-tunes, no regions.
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
LONG = re.compile(r"input_cost_per_token_above_(\d+)k_tokens")


def download(folder: str) -> pathlib.Path:
    """Download the newest wheel and return its path."""
    subprocess.run(
        [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--only-binary=:all:",
         "-d", folder, "litellm"],
        check=True, stdout=sys.stderr,
    )
    return next(pathlib.Path(folder).glob("litellm-*.whl"))


def per_million(price) -> str:
    """Return a price in dollars per million tokens, without noise of the multiplication."""
    return f"{float(price) * 1e6:.10g}"


def rates(model: dict, suffix: str = "") -> list[str]:
    """Return the prices of a model, those of long prompts with their suffix."""
    fields = [("input", "input_cost_per_token"), ("cached", "cache_read_input_token_cost"),
              ("cache_write", "cache_creation_input_token_cost"),
              ("output", "output_cost_per_token")]
    return [f"{ours}: {per_million(model[theirs + suffix])}" for ours, theirs in fields
            if model.get(theirs + suffix) is not None]


def tokens(model: dict, name: str) -> int:
    """Return a number of tokens, 0 for none."""
    value = model.get(name)
    return int(value) if isinstance(value, (int, float)) and value > 0 else 0


def row(match: str, model: dict) -> str:
    """Return a line of the table, empty if the list says nothing about the model."""
    parts = []
    priced = all(model.get(f"{way}_cost_per_token") is not None for way in ("input", "output"))
    if priced:
        parts += rates(model)
    if window := tokens(model, "max_input_tokens"):
        parts.append(f"window: {window}")
    if most := tokens(model, "max_output_tokens"):
        parts.append(f"max_output: {most}")
    for key in sorted(model):
        if priced and (found := LONG.fullmatch(key)):
            suffix = key.removeprefix("input_cost_per_token")
            if f"output_cost_per_token{suffix}" in model:
                above = int(found[1]) * 1000
                parts.append(f"long: {{above: {above}, {', '.join(rates(model, suffix))}}}")
                break
    return f"  - {{match: {match}, {', '.join(parts)}}}" if parts else ""


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        wheel = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else download(folder)
        with zipfile.ZipFile(wheel) as archive:
            models = json.loads(archive.read(LIST))
    version = wheel.name.split("-")[1]

    print(f"# Written by `make prices` from litellm {version}. Do not edit: own figures belong into")
    print("# prices.yaml, which comes first. A window is the list's limit of a prompt.")
    print("version: 1\nmodels:")
    for name, model in sorted(models.items()):
        provider = model.get("litellm_provider")
        if provider not in PROVIDERS or model.get("mode") not in MODES:
            continue
        ours = name.removeprefix(PROVIDERS[provider]).removeprefix(f"{provider}/")
        if NAME.fullmatch(ours) and (line := row(f"{provider}/{ours}", model)):
            print(line)


main()
