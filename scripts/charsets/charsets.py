"""Writes internal/python/pykernel/guest/charsets.py from the running CPython's own tables.

Run with the CPython minor version that the sandbox has:

    python3.13 scripts/charsets/charsets.py > internal/python/pykernel/guest/charsets.py
"""

import _sre
import sys

HEADER = '''"""Character classes as CPython's re has them, for expressions that another
engine runs. The tables are written by scripts/charsets/charsets.py.
"""

import _sre

try:
    from re._casefix import _EXTRA_CASES as _extra_cases
except ImportError:  # CPython before 3.11
    from sre_compile import _ignorecase_fixes as _extra_cases

# Ranges of code points, in hexadecimal.
'''

FUNCTIONS = '''

def _ranges(table):
    for item in table.split():
        low, _, high = item.partition("-")
        yield int(low, 16), int(high or low, 16)


def _complement(ranges):
    position = 0
    for low, high in ranges:
        if low > position:
            yield position, low - 1
        position = high + 1
    yield position, 0x10FFFF


_SPACE_OF_ASCII = "9-d 20"
_SPACE_IN_ASCII = "9-d 1c-20"
_texts = {}


def category(kind, narrow, ascii_text, negated):
    """The inside of an RE2 class for a category of re: DIGIT, SPACE or WORD;
    None for others. narrow: the pattern has re.ASCII. ascii_text: the text is
    ASCII, so that more need not be told apart."""
    if kind in ("DIGIT", "WORD") and (narrow or ascii_text):
        letter = kind[0]
        return "\\\\" + (letter if negated else letter.lower())
    table = {"DIGIT": DIGIT, "WORD": WORD, "SPACE": SPACE}.get(kind)
    if table is None:
        return None
    if kind == "SPACE" and (narrow or ascii_text):
        table = _SPACE_OF_ASCII if narrow else _SPACE_IN_ASCII
    key = table, negated
    if key not in _texts:
        ranges = _complement(_ranges(table)) if negated else _ranges(table)
        _texts[key] = "".join(f"\\\\x{{{low:x}}}-\\\\x{{{high:x}}}" for low, high in ranges)
    return _texts[key]


_variants = {}


def variants(code, narrow):
    """The code points that a literal matches under re.IGNORECASE."""
    if narrow:
        char = chr(code)
        return {ord(char.lower()), ord(char.upper())} if char.isascii() else {code}
    if not _variants:
        for low, high in _ranges(UPPER):
            for upper in range(low, high + 1):
                _variants.setdefault(_sre.unicode_tolower(upper), set()).add(upper)
    lower = _sre.unicode_tolower(code)
    return {x for low in (lower, *_extra_cases.get(lower, ())) for x in (low, *_variants.get(low, ()))}
'''


def ranges(predicate):
    start = None
    for code in range(sys.maxunicode + 2):
        if code <= sys.maxunicode and predicate(code):
            if start is None:
                start = code
        elif start is not None:
            yield f"{start:x}" if start == code - 1 else f"{start:x}-{code - 1:x}"
            start = None


def table(name, predicate):
    lines, line = [], ""
    for item in ranges(predicate):
        if len(line) + len(item) > 100:
            lines.append(line)
            line = ""
        line = f"{line} {item}".strip()
    lines.append(line)
    body = "\n".join(f'    "{line} "' for line in lines)
    return f"{name} = (\n{body}\n)\n"


def main():
    out = HEADER
    out += table("WORD", lambda c: chr(c).isalnum() or c == 0x5F)
    out += table("DIGIT", lambda c: chr(c).isdecimal())
    out += table("SPACE", lambda c: chr(c).isspace())
    out += "\n# Code points that have a lower case.\n"
    out += table("UPPER", lambda c: _sre.unicode_tolower(c) != c)
    sys.stdout.write(out + FUNCTIONS)


main()
