# calls functions in C in a tree of replacements of a regular expression
# harm: hangs
# with: calltree
import re
tree(lambda f: partial(re.compile('a').sub, giving('b', f), 'aa'))()
