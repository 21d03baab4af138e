# calls functions in C in a tree of copies of objects
# harm: hangs
# with: calltree
import pickle
def copied(f):
    x = thing()
    x.__reduce_ex__ = giving((int, ()), f)
    return x
tree(lambda f: partial(pickle.dumps, [copied(f), copied(f)]))()
