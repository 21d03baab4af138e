# reaches a module through the imports of another
import queue
o = queue.threading._os
print(o.read(o.open(CANARY_FILE, 0), 99).decode())
