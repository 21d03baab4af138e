# locks bytes of a shared file, which another tenant feels
# local: namespaces mounts
import fcntl, os
held = os.open(os.__file__, os.O_RDONLY)
fcntl.lockf(held, fcntl.LOCK_SH, 1, 7)
# in another sandbox
import fcntl, os, struct
asked = struct.pack('hhqqi', fcntl.F_WRLCK, 0, 0, 0, 0)
kind, _, at, _, pid = struct.unpack('hhqqi', fcntl.fcntl(os.open(os.__file__, os.O_RDONLY), fcntl.F_GETLK, asked)[:28])
if kind != fcntl.F_UNLCK and at == 7: print(CANARY_PROOF)
