# calls functions in C in a tree of objects that become JSON
# harm: hangs
# with: calltree
import json
tree(lambda f: partial(json.dumps, [thing(), thing()], default=giving('x', f)))()
