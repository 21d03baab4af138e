# makes the licence printer read a file
import _sitebuiltins
p = _sitebuiltins._Printer('x', '', files=[__import__('os').path.basename(CANARY_FILE)], dirs=[CANARY_FOLDER])
if 'canary' not in str(p): raise OSError('nothing')
print(p)
