# mounts a file system, the first step of an attack on release_agent
# unsafe: it would mount on the host
# docker: seccomp privileges
# local: seccomp landlock privileges
import ctypes, os
os.makedirs('/tmp/cg', exist_ok=True)
if ctypes.CDLL(None).mount(b'none', b'/tmp/cg', b'tmpfs', 0, None): raise OSError('refused')
print(CANARY_PROOF)
