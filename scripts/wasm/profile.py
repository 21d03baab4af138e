"""Prints how much of a program's time the machine code of tier wasm spends on its checks:

    make build
    python3 scripts/wasm/profile.py scripts/bench/programs/nbody.py

The program has a function run. Linux's perf takes samples, as a user who may; objdump reads the
machine code from the process. A check is a comparison with the size of the memory, or with the
end of the stack, together with the instructions that make its two sides.
"""

import collections
import os
import re
import subprocess
import sys
import tempfile
import time

SECONDS = 8
RLM = os.environ.get("RLM_BIN", "bin/rlm")
JUMP = re.compile(r"(?:ja|jbe|jae|jb)\s+0x([0-9a-f]+)")
INSTRUCTION = re.compile(r"\s*([0-9a-f]+):\s+(.*)")
MAKES = re.compile(r"(lea|mov)\s+(.*),%(\w+)$")
SHARED = 8  # so many checks of a function jump to the same trap


def main(program, folder):
    endless = f"{folder}/endless.py"
    with open(program) as source, open(endless, "w") as out:
        out.write(source.read() + "\nwhile True: run()\n")
    command = [RLM, "exec", "--quiet", "--tier", "wasm", "--engine", "aot", "--timeout", "1m", endless]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as guest:
        try:
            time.sleep(2)
            samples = take_samples(guest.pid, f"{folder}/perf.data")
            begin, code = read_code(guest.pid)
        finally:
            guest.kill()
    addresses, texts = disassemble(begin, code, f"{folder}/code")
    kinds = dict(zip(addresses, mark_checks(texts)))

    shares = collections.Counter()
    for address in samples:
        inside = begin <= address < begin + len(code)
        shares[kinds.get(address, "the program") if inside else "outside of the machine code"] += 1
    for kind, n in shares.most_common():
        print(f"{100 * n / len(samples):5.1f} %  {kind}")


def take_samples(pid, file):
    record = ["perf", "record", "-q", "-F", "4999", "-p", str(pid), "-o", file, "--", "sleep", str(SECONDS)]
    subprocess.run(record, check=True)
    script = subprocess.run(["perf", "script", "-i", file, "-F", "ip"], check=True, capture_output=True, text=True)
    return [int(line, 16) for line in script.stdout.split()]


def read_code(pid):
    """Returns the address and the bytes of the machine code, which the process maps from the
    end of its own file."""
    found = []
    with open(f"/proc/{pid}/maps") as maps:
        for line in maps:
            span, access, offset, *_ = line.split()
            begin, end = (int(n, 16) for n in span.split("-"))
            if "x" in access and int(offset, 16) and end - begin > 1 << 20:
                found.append((begin, end))
    begin, end = found[-1]
    with open(f"/proc/{pid}/mem", "rb") as memory:
        memory.seek(begin)
        return begin, memory.read(end - begin)


def disassemble(begin, code, file):
    with open(file, "wb") as out:
        out.write(code)
    command = ["objdump", "-D", "-b", "binary", "-m", "i386:x86-64", "--no-show-raw-insn", f"--adjust-vma={begin}", file]
    text = subprocess.run(command, check=True, capture_output=True, text=True, errors="replace").stdout
    lines = [m.groups() for m in map(INSTRUCTION.match, text.splitlines()) if m]
    return [int(address, 16) for address, _ in lines], [text.strip() for _, text in lines]


def mark_checks(texts):
    """Returns what each instruction is for."""
    targets = collections.Counter(m[1] for m in map(JUMP.match, texts) if m)
    kinds = ["the program"] * len(texts)
    for i, text in enumerate(texts):
        jump = JUMP.match(text)
        if jump and targets[jump[1]] >= SHARED and texts[i - 1].startswith("cmp"):
            mark_sides(texts, kinds, i)
        if text.startswith("js") and texts[i - 1].startswith("decq"):
            kinds[i - 1] = kinds[i] = "counting fuel"
    return kinds


def mark_sides(texts, kinds, jump):
    """Marks a check of the memory: jump, comparison, and the instructions that make its sides."""
    kinds[jump] = kinds[jump - 1] = "checks of memory and stack"
    compared = set(re.findall(r"%(\w+)", texts[jump - 1]))
    for i in range(jump - 2, max(0, jump - 6), -1):
        made = MAKES.match(texts[i])
        if made and made[3] in compared and (made[1] == "lea" or re.fullmatch(r"\(%\w+\)", made[2])):
            kinds[i] = kinds[jump]


with tempfile.TemporaryDirectory() as scratch:
    main(sys.argv[1], scratch)
