# makes a function with builtins of its own choice
import builtins, types
f = types.FunctionType(compile('open(p).read()', 'x', 'eval'), {'__builtins__': builtins, 'p': CANARY_FILE})
print(f())
