# loads code with marshal
import marshal
exec(marshal.loads(marshal.dumps(compile('print(open(' + repr(CANARY_FILE) + ').read())', 'x', 'exec'))))
