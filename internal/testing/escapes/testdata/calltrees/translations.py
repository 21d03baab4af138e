# calls functions in C in a tree of translations of letters
# harm: hangs
# with: calltree
tree(lambda f: partial('ab'.translate, thing(__getitem__=giving('x', f))))()
