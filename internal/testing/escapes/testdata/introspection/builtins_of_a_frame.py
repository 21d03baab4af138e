# takes the builtins from its own frame
import sys
print(sys._getframe().f_builtins['open'](CANARY_FILE).read())
