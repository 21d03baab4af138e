# reads a file through a symbolic link
# local: mounts landlock namespaces
import os
try: os.chdir(CANARY_OPEN)
except OSError: pass
os.symlink(CANARY_FILE, 'link')
print(open('link').read())
