"""Writes the licences of the crates that a module is linked of.

usage: licences.py CRATE >CRATE/LICENSES
"""

import json
import pathlib
import re
import subprocess
import sys


def find_crates(folder):
    """The crates that the module contains: no tools of the build, and not the module itself."""
    command = ["cargo", "metadata", "--format-version=1", "--locked", "--filter-platform=wasm32-wasip1"]
    data = json.loads(subprocess.run(command, cwd=folder, check=True, stdout=subprocess.PIPE).stdout)
    nodes = {node["id"]: node for node in data["resolve"]["nodes"]}
    packages = {package["id"]: package for package in data["packages"]}
    found, left = set(), [data["resolve"]["root"]]
    while left:
        crate = left.pop()
        if crate in found or any("proc-macro" in t["kind"] for t in packages[crate]["targets"]):
            continue
        found.add(crate)
        left += [d["pkg"] for d in nodes[crate]["deps"] if any(k["kind"] is None for k in d["dep_kinds"])]
    found.remove(data["resolve"]["root"])
    return sorted((packages[crate] for crate in found), key=lambda p: (p["name"], p["version"]))


def main():
    crates = find_crates(sys.argv[1])
    print("The module contains these crates. Each is followed by its licence; texts that several share stand once.\n")
    texts = {}
    for crate in crates:
        print(f"{crate['name']} {crate['version']}: {crate['license']}")
        folder = pathlib.Path(crate["manifest_path"]).parent
        for file in sorted([*folder.iterdir(), *folder.glob("assets/*")]):  # fonts have licences of their own
            if re.match(r"(\w+_)?(licen[cs]e|copying|notice|unlicense|copyright)", file.name, re.IGNORECASE) and file.is_file():
                text = file.read_text("utf-8", "replace").strip()
                owner = texts.setdefault(" ".join(text.split()), (text, []))
                owner[1].append(f"{crate['name']} {crate['version']}")
    for text, owners in texts.values():
        print(f"\n{'-' * 80}\n{', '.join(owners)}\n\n{text}")


main()
