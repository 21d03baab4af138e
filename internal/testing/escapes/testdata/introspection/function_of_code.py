# makes a function with chosen builtins
import builtins, types
f = types.FunctionType(compile('open(p).read()', 'x', 'eval'), {'__builtins__': builtins, 'p': CANARY_FILE})
print(f())
