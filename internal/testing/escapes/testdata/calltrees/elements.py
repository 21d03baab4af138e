# calls functions in C in a tree of texts between elements of XML
# harm: hangs
# with: calltree
import xml.parsers.expat
def reader(f):
    p = xml.parsers.expat.ParserCreate()
    p.Parse(b'<a>', False)
    p.CharacterDataHandler = f
    return p
tree(lambda f: partial(operator.call, partial(reader(f).Parse, b'x&amp;y&amp;', False)))()
