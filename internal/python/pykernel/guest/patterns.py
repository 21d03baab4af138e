"""Python regular expressions as RE2 expressions, where the two agree.

A pattern is parsed by CPython's own parser and written anew for the host's RE2
engine. The result says the same only under conditions that are checked here;
where they do not hold, `exact` is False and the expression is a relaxed one: it
matches wherever the pattern does, and perhaps elsewhere. The caller then lets
Python's re decide on the lines that the host has found.
"""

import re
import _sre

try:
    from re import _constants as c
    from re import _parser as parser
except ImportError:  # CPython before 3.11
    import sre_constants as c
    import sre_parse as parser

import charsets

_MAX = 1000  # RE2's bound on counted repetition
_ASSERTS = c.ASSERT, c.ASSERT_NOT
_REPEATS = c.MAX_REPEAT, c.MIN_REPEAT, getattr(c, "POSSESSIVE_REPEAT", None)  # None before CPython 3.11
_ATOMIC_GROUP = getattr(c, "ATOMIC_GROUP", None)


class Unwritable(Exception):
    """The pattern has no RE2 expression, not even a relaxed one."""


class Translation:
    """expr: RE2 text. exact: whether it says just what the pattern says.
    newline: whether the pattern could touch a line's end.
    reach: the longest match with its surroundings, None if unbounded.
    behind: how many characters before a match's start may decide about it."""

    __slots__ = ("expr", "exact", "newline", "reach", "behind")


def translate(pattern, ascii_text, invalid, text_ends_in_newline):
    """pattern is a compiled str pattern; the flags describe the text."""
    tree = parser.parse(pattern.pattern, pattern.flags & ~re.DEBUG)
    flags = pattern.flags
    writer = _Writer(ascii_text, invalid, text_ends_in_newline)
    result = Translation()
    try:
        result.expr = writer.sequence(tree, flags)
    except (Unwritable, RecursionError):
        result.expr, writer.exact = None, False
    result.exact = writer.exact
    result.newline = _touches_newline(tree, flags)
    low, high = tree.getwidth()
    around = _around(tree)
    result.reach = None if high >= c.MAXREPEAT or high > 1 << 20 or around is None else high + around
    result.behind = 1 + sum(av[1].getwidth()[1] for op, av in _walk(tree) if op in _ASSERTS and av[0] < 0)
    return result


class _Writer:
    def __init__(self, ascii_text, invalid, text_ends_in_newline):
        self.ascii_text = ascii_text
        self.invalid = invalid
        self.text_ends_in_newline = text_ends_in_newline
        self.exact = True

    def relaxed(self, expr=""):
        self.exact = False
        return expr

    def sequence(self, tree, flags):
        return "".join(self.item(op, av, flags) for op, av in tree)

    def item(self, op, av, flags):
        method = getattr(self, "op_" + str(op).lower(), None)
        if method is None:
            raise Unwritable(str(op))
        return method(av, flags)

    # Characters.

    def narrow(self, flags):
        """Reports whether the categories mean only ASCII."""
        return bool(flags & re.ASCII)

    def check(self, code):
        if 0xD800 <= code <= 0xDFFF or code == 0xFFFD:
            if self.invalid:
                raise Unwritable("a character that stands for raw bytes")
            if code != 0xFFFD:
                raise Unwritable("a lone surrogate")

    def op_literal(self, code, flags):
        self.check(code)
        if flags & re.IGNORECASE:
            codes = charsets.variants(code, self.narrow(flags))
            if len(codes) > 1:
                return "[" + "".join(map(_escape_in_class, sorted(codes))) + "]"
        return _escape(code)

    def op_not_literal(self, code, flags):
        self.check(code)
        codes = charsets.variants(code, self.narrow(flags)) if flags & re.IGNORECASE else {code}
        return "[^" + "".join(map(_escape_in_class, sorted(codes))) + "]"

    def op_any(self, av, flags):
        return "(?s:.)" if flags & re.DOTALL else r"[^\n]"

    def op_in(self, items, flags):
        negate, parts = "", []
        for op, av in items:
            if op is c.NEGATE:
                negate = "^"
            elif op is c.LITERAL:
                parts.append(self._range(av, av, flags))
            elif op is c.RANGE:
                parts.append(self._range(*av, flags))
            elif op is c.CATEGORY:
                parts.append(self._category(av, flags))
            else:
                raise Unwritable(str(op))
        return f"[{negate}{''.join(parts)}]"

    def _range(self, low, high, flags):
        if self.invalid and (low <= 0xFFFD <= high or low <= 0xDFFF and high >= 0xD800):
            if not (low <= 0xD800 and high >= 0xFFFD):
                raise Unwritable("a range within the characters that stand for raw bytes")
        elif 0xD800 <= low <= 0xDFFF or 0xD800 <= high <= 0xDFFF:
            raise Unwritable("a lone surrogate")
        if flags & re.IGNORECASE:
            if high - low > 4096:
                raise Unwritable("a wide range without case")
            codes = set()
            for code in range(low, high + 1):
                codes |= charsets.variants(code, self.narrow(flags))
            return "".join(map(_escape_in_class, sorted(codes)))
        return _escape_in_class(low) if low == high else f"{_escape_in_class(low)}-{_escape_in_class(high)}"

    def _category(self, category, flags):
        name = str(category).removeprefix("CATEGORY_").removeprefix("UNI_")
        negated = name.startswith("NOT_")
        kind = name.removeprefix("NOT_")
        text = charsets.category(kind, self.narrow(flags), self.ascii_text, negated)
        if text is None:
            raise Unwritable(name)
        return text

    # Positions.

    def op_at(self, where, flags):
        if where is c.AT_BEGINNING:
            return "(?m:^)" if flags & re.MULTILINE else r"\A"
        if where is c.AT_BEGINNING_STRING:
            return r"\A"
        if where is c.AT_END_STRING:
            return r"\z"
        if where is c.AT_END:
            if flags & re.MULTILINE:
                return "(?m:$)"
            return self.relaxed() if self.text_ends_in_newline else r"\z"
        if self.ascii_text or self.narrow(flags):
            return r"\b" if where is c.AT_BOUNDARY else r"\B"
        return self.relaxed()

    def op_assert(self, av, flags):
        return self.relaxed()

    op_assert_not = op_assert

    # Structure.

    def op_subpattern(self, av, flags):
        group, add, remove, tree = av
        inner = self.sequence(tree, (flags | add) & ~remove)
        return f"(?:{inner})" if group is None else f"({inner})"

    def op_branch(self, av, flags):
        return "(?:" + "|".join(self.sequence(tree, flags) for tree in av[1]) + ")"

    def op_atomic_group(self, tree, flags):
        return self.relaxed("(?:" + self.sequence(tree, flags) + ")")

    def op_max_repeat(self, av, flags):
        return self._repeat(av, flags, "")

    def op_min_repeat(self, av, flags):
        return self._repeat(av, flags, "?")

    def op_possessive_repeat(self, av, flags):
        return self.relaxed(self._repeat(av, flags, ""))

    def _repeat(self, av, flags, lazy):
        low, high, tree = av
        inner = self.sequence(tree, flags)
        if tree.getwidth()[0] == 0 and high > 1:
            self.exact = False  # how empty rounds end differs between the engines
        if not inner:
            return ""
        if low > _MAX or high is not c.MAXREPEAT and high > _MAX:
            self.exact = False
            low, high = min(low, _MAX), c.MAXREPEAT
        bounds = {(0, 1): "?", (0, c.MAXREPEAT): "*", (1, c.MAXREPEAT): "+"}.get((low, high))
        if bounds is None:
            bounds = "{%d,%s}" % (low, "" if high is c.MAXREPEAT else high)
        return f"(?:{inner}){bounds}{lazy}"

    def op_groupref(self, av, flags):
        return self.relaxed(r"[^\n]*")  # relaxed expressions are for patterns that stay within a line

    op_groupref_exists = op_groupref


def _escape(code):
    char = chr(code)
    if char.isascii() and char.isalnum() or char in " _":
        return char
    return f"\\x{{{code:x}}}"


_escape_in_class = _escape


def _touches_newline(tree, flags):
    """Whether any part of the pattern can match a newline or look at one in a
    way that a cut at line ends would change."""
    for op, av in tree:
        if op is c.LITERAL:
            if av == 10:
                return True
        elif op is c.NOT_LITERAL:
            if av != 10:
                return True
        elif op is c.ANY:
            if flags & re.DOTALL:
                return True
        elif op is c.IN:
            if _class_has_newline(av):
                return True
        elif op is c.SUBPATTERN:
            if _touches_newline(av[3], (flags | av[1]) & ~av[2]):
                return True
        elif op is c.BRANCH:
            if any(_touches_newline(t, flags) for t in av[1]):
                return True
        elif op in _REPEATS:
            if _touches_newline(av[2], flags):
                return True
        elif op in (c.ASSERT, c.ASSERT_NOT):
            if _touches_newline(av[1], flags):
                return True
        elif op is _ATOMIC_GROUP:
            if _touches_newline(av, flags):
                return True
        elif op is c.GROUPREF_EXISTS:
            if any(t is not None and _touches_newline(t, flags) for t in av[1:]):
                return True
    return False


def _class_has_newline(items):
    negate = any(op is c.NEGATE for op, _ in items)
    inside = False
    for op, av in items:
        if op is c.LITERAL:
            inside |= av == 10
        elif op is c.RANGE:
            inside |= av[0] <= 10 <= av[1]
        elif op is c.CATEGORY:
            name = str(av)
            inside |= name.endswith("NOT_DIGIT") or name.endswith("NOT_WORD") or name.endswith("CATEGORY_SPACE")
            inside |= name.endswith("UNI_SPACE")
    return inside != negate


def _around(tree):
    """Returns how far lookaround reaches beyond a match, or None without a bound."""
    reach = 2
    for op, av in _walk(tree):
        if op in _ASSERTS:
            high = av[1].getwidth()[1]
            if high >= c.MAXREPEAT or high > 1 << 20:
                return None
            reach += high
        elif op is c.GROUPREF:
            return None
    return reach


def _walk(tree):
    for op, av in tree:
        yield op, av
        for part in av if isinstance(av, (tuple, list)) else (av,):
            if isinstance(part, parser.SubPattern):
                yield from _walk(part)
            elif isinstance(part, list):
                for branch in part:
                    if isinstance(branch, parser.SubPattern):
                        yield from _walk(branch)
