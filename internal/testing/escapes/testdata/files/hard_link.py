# makes a hard link to a file of the host
# local: mounts landlock namespaces
import os
try: os.chdir(CANARY_OPEN)
except OSError: pass
os.link(CANARY_FILE, 'hard')
print(open('hard').read())
