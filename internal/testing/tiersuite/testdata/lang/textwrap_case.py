# textwrap and string.Template, string constants.
import string
import textwrap

t = "The quick brown fox, having well-known long-legged jumps, naïvely jumps over the extraordinarily lazy dog.   Twice."
print(textwrap.fill(t, 30))
print(textwrap.wrap(t, 25, initial_indent="* ", subsequent_indent="  ", break_on_hyphens=False))
print(textwrap.wrap("abcdefghij", 4), textwrap.wrap("abcdefghij", 4, break_long_words=False), textwrap.wrap(""), textwrap.wrap("a  b\tc\nd", 80), textwrap.wrap("a b c d e f", 3, max_lines=2, placeholder="…"))
print(repr(textwrap.dedent("""
    one
      two

    three
    """)), repr(textwrap.dedent("\ta\n\t b")), repr(textwrap.dedent("  a\n b")))
print(textwrap.indent("a\n\nb\n", "> "), textwrap.indent("a\n\nb", "- ", lambda l: True), textwrap.shorten("Hello  wide   world of text", 16), textwrap.shorten("Hello world", 8, placeholder=".."))
w = textwrap.TextWrapper(width=10, fix_sentence_endings=True, expand_tabs=False, replace_whitespace=False, drop_whitespace=False)
print(w.wrap("ab cd. ef gh ij"), textwrap.wrap("你好世界 你好", 4))
try:
    textwrap.wrap("x", 0)
except ValueError as e:
    print(e)
T = string.Template("$who owes ${amt}EUR $$5 ${who}")
print(T.substitute(who="Al", amt=3), T.safe_substitute(who="B"), T.get_identifiers(), T.is_valid())
for bad in (lambda: T.substitute(who="x"), lambda: string.Template("$1").substitute(), lambda: string.Template("a\nb $").substitute()):
    try:
        bad()
    except (KeyError, ValueError) as e:
        print(type(e).__name__, e)
print(string.ascii_letters, string.digits, string.punctuation, string.hexdigits, repr(string.whitespace), string.capwords("the  big day"), len(string.printable))
f = string.Formatter()
print(f.format("{0} {x}", 1, x=2), list(f.parse("a{b!r:>{w}}c")), f.vformat("{}-{}", (1, 2), {}))


class Up(string.Formatter):
    def convert_field(self, v, c):
        return str(v).upper() if c == "u" else super().convert_field(v, c)


print(Up().format("{0!u} {0!r}", "x"))
