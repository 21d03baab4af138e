# locks a shared file, which another tenant feels
# local: namespaces mounts
import fcntl, os
held = os.open(os.__file__, os.O_RDONLY)
fcntl.flock(held, fcntl.LOCK_EX)
# in another sandbox
import fcntl, os
try: fcntl.flock(os.open(os.__file__, os.O_RDONLY), fcntl.LOCK_EX | fcntl.LOCK_NB)
except BlockingIOError: print(CANARY_PROOF)
