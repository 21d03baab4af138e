# calls functions in C in a tree of objects that JSON becomes
# harm: hangs
# with: calltree
import json
tree(lambda f: partial(json.loads, '[{"a": 1}, {"b": 2}]', object_hook=f))()
