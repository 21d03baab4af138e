# calls functions in C in a tree of numbers that are packed
# harm: hangs
# with: calltree
import struct
tree(lambda f: partial(struct.pack, 'ii', *[thing(__index__=giving(3, f))] * 2))()
