# makes a block device
# root: it is the right of root
# docker: seccomp privileges
import os
try: os.chdir(CANARY_OPEN)
except OSError: pass
import stat
os.mknod('block', 0o600 | stat.S_IFBLK, os.makedev(7, 0))
print(CANARY_PROOF)
