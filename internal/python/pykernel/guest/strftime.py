"""time.strftime as glibc has it in the locale C. WASI's libc pads years, and returns an empty text
for a format with a letter that it does not know. datetime's strftime calls this one, too."""

import re
import time

_stock = time.strftime
_DIRECTIVE = re.compile(r"%([-_0^#]*)([0-9]*)([EO]?)(.?)", re.DOTALL)
# What the libraries do alike for years of four digits.
_SHARED = re.compile(r"(?:[^%\0]|%[aAbBcdDeFghHIjmMnprRStTuUVwWxXyY%])*", re.DOTALL)
_known = {}  # format -> whether all of it is shared
_WIDEST = 1023  # as many characters a field may have

_WHOLE = {
    "c": "%a %b %e %H:%M:%S %Y", "D": "%m/%d/%y", "F": "%Y-%m-%d", "R": "%H:%M", "r": "%I:%M:%S %p",
    "T": "%H:%M:%S", "X": "%H:%M:%S", "x": "%m/%d/%y",
}
# letter -> (its number of digits, what it is padded with, its value)
_NUMBERS = {
    "C": (1, "0", lambda t: t[0] // 100),
    "d": (2, "0", lambda t: t[2]),
    "e": (2, "_", lambda t: t[2]),
    "G": (1, "0", lambda t: _iso_year(t)),
    "g": (2, "0", lambda t: _iso_year(t) % 100),
    "H": (2, "0", lambda t: t[3]),
    "I": (2, "0", lambda t: t[3] % 12 or 12),
    "j": (3, "0", lambda t: t[7]),
    "k": (2, "_", lambda t: t[3]),
    "l": (2, "_", lambda t: t[3] % 12 or 12),
    "M": (2, "0", lambda t: t[4]),
    "m": (2, "0", lambda t: t[1]),
    "S": (2, "0", lambda t: t[5]),
    "u": (1, "0", lambda t: t[6] + 1),
    "U": (2, "0", lambda t: (t[7] - 1 - (t[6] + 1) % 7 + 7) // 7),
    "V": (2, "0", lambda t: int(_stock("%V", t))),
    "W": (2, "0", lambda t: (t[7] - 1 - t[6] + 7) // 7),
    "w": (1, "0", lambda t: (t[6] + 1) % 7),
    "y": (2, "0", lambda t: t[0] % 100),
    "Y": (1, "0", lambda t: t[0]),
}
_WORDS = {
    "a": lambda t: _stock("%a", t), "A": lambda t: _stock("%A", t), "b": lambda t: _stock("%b", t),
    "B": lambda t: _stock("%B", t), "h": lambda t: _stock("%b", t), "p": lambda t: _stock("%p", t),
    "P": lambda t: _stock("%p", t).lower(), "Z": lambda t: _zone(t),
    "n": lambda t: "\n", "t": lambda t: "\t", "%": lambda t: "%",
}
# The letters that take no such modifier.
_WITHOUT = {"": "", "E": "aAbBdDeFgGhHIjklmMSUVwW", "O": "aAcDFxXY"}


def strftime(format, t=None, /):
    if not isinstance(format, str):
        return _stock(format) if t is None else _stock(format, t)  # its own errors
    if t is None:
        t = time.localtime()
    checked = _stock("%d", t)  # the errors of a time that is none
    if format not in _known:
        if len(_known) >= 256:
            _known.clear()
        _known[format] = _SHARED.fullmatch(format) is not None
    if _known[format] and 1000 < t[0] < 9999:
        return _stock(format, t)
    return _fill(format, _Time(t, checked))


strftime.__doc__ = _stock.__doc__


class _Time(tuple):
    """A time whose fields are in the ranges that C has made of them."""

    def __new__(cls, t, day):
        fields = list(t)
        fields[1], fields[2] = fields[1] or 1, int(day)
        fields[6], fields[7] = fields[6] % 7, fields[7] or 1
        made = super().__new__(cls, fields)
        made.zone, made.offset = getattr(t, "tm_zone", None), getattr(t, "tm_gmtoff", None)
        return made


def _fill(format, t):
    return _DIRECTIVE.sub(lambda match: _directive(match, t), format)


def _directive(match, t):
    flags, width, modifier, letter = match.groups()
    pads = [flag for flag in flags if flag in "-_0"]
    pad, width = pads[-1] if pads else "", min(int(width or 0), _WIDEST)
    if letter in _WITHOUT[modifier]:
        return match[0]
    if letter in _NUMBERS:
        digits, usual, value = _NUMBERS[letter]
        return _number(value(t), digits, pad or usual, width)
    if letter == "s":
        return _number(int(time.mktime(tuple(t))), 1, pad or "0", width)
    if letter == "z":
        return _offset(t, pad or "0", width)
    if letter in _WHOLE:
        text = _fill(_WHOLE[letter], t)
    elif letter in _WORDS:
        text = _WORDS[letter](t)
        if "#" in flags:
            text = text.lower() if letter in "pZ" else text.upper() if letter in "aAbBh" else text
    else:
        return match[0]
    if "^" in flags and letter != "P" and not ("#" in flags and letter in "pZ"):
        text = text.upper()
    return text.rjust(width, "0" if pad == "0" else " ")


def _number(value, digits, pad, width):
    text, sign = str(abs(value)), "-" if value < 0 else ""
    if pad == "-":
        return (sign + text).rjust(width)
    size = max(digits, width) - len(sign)
    return text.rjust(size) if pad == "_" and not sign else (
        (sign + text).rjust(size + len(sign)) if pad == "_" else sign + text.rjust(size, "0"))


def _offset(t, pad, width):
    seconds = t.offset or 0
    text = f"{abs(seconds) // 3600:02}{abs(seconds) // 60 % 60:02}"
    return ("-" if seconds < 0 else "+") + (text if pad == "-" else text.rjust(width - 1, "0"))


def _zone(t):
    return time.tzname[t[8] > 0] if t.zone is None else t.zone


def _iso_year(t):
    week = int(_stock("%V", t))
    return t[0] + (t[1] == 12 and week == 1) - (t[1] == 1 and week >= 52)
