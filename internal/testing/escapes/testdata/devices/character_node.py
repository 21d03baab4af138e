# makes a character device
# root: it is the right of root
# docker: seccomp privileges
import os
try: os.chdir(CANARY_OPEN)
except OSError: pass
import stat
try: os.remove('node')
except OSError: pass
os.mknod('node', 0o600 | stat.S_IFCHR, os.makedev(1, 1))
print(CANARY_PROOF)
