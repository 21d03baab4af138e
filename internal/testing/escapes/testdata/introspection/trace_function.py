# takes the builtins from traced frames
import sys
found = []
def t(frame, event, arg): found.append(frame.f_builtins['open'])
sys.settrace(t)
(lambda: 0)()
sys.settrace(None)
print(found[0](CANARY_FILE).read())
