# calls functions in C in a tree of texts that cannot be encoded
# harm: hangs
# with: calltree
import codecs, itertools
def encoded(f, number=itertools.count()):
    name = f'tree {next(number)}'
    codecs.register_error(name, giving(('x', 1), f))
    texts = starmap('\udc80'.encode, repeat(('ascii', name)))
    return partial(next, map(operator.add, texts, texts))
tree(lambda f: encoded(f))()
