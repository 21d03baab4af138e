# reads a file with linecache
import linecache
lines = linecache.getlines(CANARY_FILE)
if not lines: raise OSError('nothing')
print(lines)
